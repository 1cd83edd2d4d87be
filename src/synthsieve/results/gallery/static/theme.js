// Light, dark, or as the system; stored in the browser.

import { find } from "./dom.js";

const THEMES = [["", "as the system"], ["light", "light"], ["dark", "dark"]];
const KEY = "synthsieve-theme";

function remembered() {
  try { return localStorage.getItem(KEY) ?? ""; } catch { return ""; }
}

function use(theme) {
  const [value, words] = THEMES.find(([name]) => name === theme) ?? THEMES[0];
  if (value) document.documentElement.dataset.theme = value;
  else delete document.documentElement.dataset.theme;
  find("theme").setAttribute("aria-label", `Theme: ${words}`);
  find("theme").title = `Theme: ${words}`;
  try { localStorage.setItem(KEY, value); } catch { /* a browser that keeps nothing */ }
  return value;
}

export function startTheme() {
  let now = use(remembered());
  find("theme").addEventListener("click", () => {
    const place = THEMES.findIndex(([name]) => name === now);
    now = use(THEMES[(place + 1) % THEMES.length][0]);
  });
}
