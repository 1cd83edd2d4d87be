// Questions to the server. Answers that are refusals become errors with the server's own sentence.

export const tab = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");

export class Refusal extends Error {}

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

export async function json(name, given, signal) {
  return (await answer(fetch(address(name, given), { signal }))).json();
}

export async function bytes(name, given, signal) {
  return (await answer(fetch(address(name, given), { signal }))).arrayBuffer();
}

export async function bitmap(name, given, signal) {
  const found = await answer(fetch(address(name, given), { signal }));
  return createImageBitmap(await found.blob());
}

export async function change(name, body) {
  const headers = { "Content-Type": "application/json" };
  return (await answer(fetch(`/api/${name}`, { method: "POST", headers, body: JSON.stringify(body) }))).json();
}

export { address };
