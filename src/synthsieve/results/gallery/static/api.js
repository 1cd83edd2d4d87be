// Requests to the server. Errors carry the server's message.

export const tab = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");

export class ApiError extends Error {}

// The first visit stored this key in the tab (enter.js); requests without it are refused, with or without the cookie.
const headers = { "X-Synthsieve-Key": sessionStorage.getItem("synthsieve-key") ?? "" };

// An object as strings, without missing values.
export const asText = (values) => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) => [name, String(value)]));

async function checked(promise) {
  let response;
  try {
    response = await promise;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The gallery does not respond: is `synthsieve serve` still running?");
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new ApiError(body.error ?? `The gallery responded with status ${response.status}.`);
}

function get(name, params, signal) {
  const query = new URLSearchParams(asText(params ?? {})).toString();
  return checked(fetch(`/api/${name}${query ? `?${query}` : ""}`, { headers, signal }));
}

export const json = async (name, params, signal) => (await get(name, params, signal)).json();
export const bytes = async (name, params, signal) => (await get(name, params, signal)).arrayBuffer();
export const blob = async (name, params, signal) => (await get(name, params, signal)).blob();
export const bitmap = async (name, params, signal) => createImageBitmap(await blob(name, params, signal));

export async function post(name, body) {
  const options = { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body) };
  return (await checked(fetch(`/api/${name}`, options))).json();
}
