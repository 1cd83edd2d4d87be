// Dialogs: the keys, a question, an export.

import { change, json, tab } from "./ask.js";
import { lostInWords } from "./choice.js";
import { state, wishGiven } from "./state.js";
import { complain, count, find, make, say } from "./words.js";

const KEYS = [
  ["arrows", "move; with Shift, pick out"], ["Page Up, Page Down", "a screen"], ["Home, End", "ends of the line; with Ctrl, of the list"],
  ["Enter", "open the details"], ["Esc", "close them"], ["Space, Ctrl + click", "pick out one"], ["Shift + click", "pick out a range"], ["Ctrl + A", "pick out all shown"],
  ["x", "mark as bad, or take the mark back"], ["u", "undo the last mark"], ["p", "play a sound"], ["+ and −", "size of the pictures"],
  ["f", "to the filters"], ["g", "to the samples"], ["e", "export"], ["?", "this list"],
];
const FORMATS = {
  parquet: "Parquet: every sample of the pool, with its fate", images: "PNG files, one folder per class", sounds: "WAV files, one folder per class",
  npz: "NumPy arrays (.npz)", hf: "for Hugging Face datasets", csv: "CSV",
};

export const anyDialog = () => document.querySelector("dialog[open]");

export function confirmed(title, text, yes) {
  const dialog = find("confirm-dialog");
  find("confirm-title").textContent = title;
  find("confirm-text").textContent = text;
  find("confirm-yes").textContent = yes;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((done) => { dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true }); });
}

export function showKeys() {
  find("keys-dialog").showModal();
}

export async function showExport() {
  const dialog = find("export-dialog");
  const told = state.figures;
  find("export-what").textContent = `${count(told.selected)} selected samples of ${count(told.drawn)} drawn${told.marked ? `, ${count(told.marked)} rejected by hand` : ""}. The files go into a new folder inside the run.${told.preview ? " The true picks are still being chosen; the export waits for them." : ""}`;
  find("export-lost").textContent = lostInWords(told);
  showTold({ state: "idle" });
  dialog.showModal();
  const now = await json("export").catch(() => null);
  if (now?.state === "running") follow();
}

function showTold(told) {
  find("export-progress").hidden = told.state !== "running" && told.state !== "failed";
  find("export-done").hidden = told.state !== "done";
  find("export-go").disabled = told.state === "running";
  const bar = find("export-bar");
  bar.hidden = told.state === "failed";
  if (told.state === "running") {
    if (told.total) { bar.max = told.total; bar.value = told.done; } else bar.removeAttribute("value");
    find("export-said").textContent = told.total ? `${told.message || "writing"}: ${count(told.done)} of ${count(told.total)}` : told.message || "beginning";
  } else if (told.state === "failed") find("export-said").textContent = told.message;
  else if (told.state === "done") {
    find("export-path").textContent = told.path;
    const more = told.more_files ? [make("li", { class: "quiet", text: `and ${count(told.more_files)} more` })] : [];
    find("export-files").replaceChildren(...told.files.map((name) => make("li", { text: name })), ...more);
    say(`Written to ${told.path}`);
  }
}

async function follow() {
  for (;;) {
    const told = await json("export");
    showTold(told);
    if (told.state !== "running") return;
    await new Promise((go) => { setTimeout(go, 300); });
  }
}

async function begin() {
  const formats = [...document.querySelectorAll("#formats input:checked")].map((box) => box.value);
  const lost = state.figures.lost_classes.length;
  if (lost && !(await confirmed(`Export without ${lost === 1 ? "one class" : `${count(lost)} classes`}?`, `${lostInWords(state.figures)} A model that learns from the export alone will not know ${lost === 1 ? "it" : "them"}.`, "Export anyway"))) return;
  try {
    showTold({ state: "running", message: "beginning" });
    const choice = Object.fromEntries(Object.entries(wishGiven()).filter(([, value]) => value !== null).map(([name, value]) => [name, String(value)]));
    await change("export", { formats, choice: { ...choice, tab }, allow_empty_classes: lost > 0 });
    await follow();
  } catch (error) {
    showTold({ state: "failed", message: error.message });
  }
}

export function startDialogs() {
  find("keys").append(...KEYS.flatMap(([keys, words]) => [make("dt", {}, make("kbd", { text: keys })), make("dd", { text: words })]));
  find("open-keys").addEventListener("click", showKeys);
  find("open-export").addEventListener("click", () => showExport().catch(complain));
  find("export-close").addEventListener("click", () => find("export-dialog").close());
  find("export-go").addEventListener("click", begin);
  find("formats").append(...state.about.formats.map((name, place) => make("label", {}, make("input", { type: "checkbox", value: name, checked: place < 2 }), make("span", { text: FORMATS[name] ?? name }))));
}
