// Formatting of numbers, and DOM helpers. Text is set by textContent only, so data are never markup.

export const count = (value) => value.toLocaleString("en");
export const percent = (value, digits = 1) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(digits)}\u00a0%`);

export function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(digits - 1);
  return String(Number(value.toPrecision(digits)));
}

export const weight = (value) => (value === 0 ? "0" : value >= 100 ? count(Math.round(value)) : String(Number(value.toFixed(1))));

export function make(tag, given = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") element.className = value;
    else if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const find = (id) => document.getElementById(id);

let clearing;
export function announce(message) {
  find("announcement").textContent = message;
}

export function showError(error) {
  if (error.name === "AbortError") return;
  const toast = find("toast");
  toast.textContent = error.message;
  toast.hidden = false;
  clearTimeout(clearing);
  clearing = setTimeout(() => { toast.hidden = true; }, 8000);
}
