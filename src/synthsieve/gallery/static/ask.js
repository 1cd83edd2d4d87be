// Questions to the server. Answers that are refusals become errors with the server's own sentence.

export const tab = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");

export class Refusal extends Error {}

// What the first visit gave to this tab (enter.js): a request without it is refused, whatever cookie comes along.
const key = sessionStorage.getItem("synthsieve-key") ?? "";
const headers = { "X-Synthsieve-Key": key };

function address(name, given = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(given)) {
    if (value !== null && value !== undefined && value !== "") query.set(key, String(value));
  }
  const text = query.toString();
  return `/api/${name}${text ? `?${text}` : ""}`;
}

async function answer(promise) {
  let found;
  try {
    found = await promise;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal("The gallery does not answer: has `synthsieve serve` ended?");
  }
  if (found.ok) return found;
  const told = await found.json().catch(() => ({}));
  throw new Refusal(told.error ?? `The gallery answered ${found.status}.`);
}

const ask = (name, given, signal) => answer(fetch(address(name, given), { headers, signal }));

export const json = async (name, given, signal) => (await ask(name, given, signal)).json();
export const bytes = async (name, given, signal) => (await ask(name, given, signal)).arrayBuffer();
export const blob = async (name, given, signal) => (await ask(name, given, signal)).blob();
export const bitmap = async (name, given, signal) => createImageBitmap(await blob(name, given, signal));

export async function change(name, body) {
  const told = { ...headers, "Content-Type": "application/json" };
  return (await answer(fetch(`/api/${name}`, { method: "POST", headers: told, body: JSON.stringify(body) }))).json();
}
