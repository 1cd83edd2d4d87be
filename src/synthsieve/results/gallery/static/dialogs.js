// Dialogs: keyboard shortcuts, confirmation, export.

import { asText, json, post, tab } from "./api.js";
import { describeLostClasses } from "./selection.js";
import { state } from "./state.js";
import { showError, count, find, make, announce } from "./dom.js";

const KEYS = [
  ["arrows", "move; with Shift, highlight"], ["Page Up, Page Down", "one screen"], ["Home, End", "start or end of the line; with Ctrl, of the list"],
  ["Enter", "open the details"], ["Esc", "close them"], ["Space, Ctrl + click", "highlight one"], ["Shift + click", "highlight a range"], ["Ctrl + A", "highlight all shown"],
  ["x", "reject or restore"], ["u", "undo"], ["p", "play a sound"], ["+ and −", "size of the images"],
  ["f", "go to the filters"], ["g", "go to the samples"], ["e", "export"], ["?", "this list"],
];
const FORMATS = {
  parquet: "Parquet: every sample of the pool, with its outcome", images: "PNG files, one folder per class", sounds: "WAV files, one folder per class",
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
  const figures = state.figures;
  find("export-what").textContent = `${count(figures.selected)} selected samples of ${count(figures.drawn)} drawn${figures.rejected_by_hand ? `, ${count(figures.rejected_by_hand)} rejected by hand` : ""}. The files go to a new folder inside the run.${figures.preview ? " The exact selection is still being computed; the export waits for it." : ""}`;
  find("export-lost").textContent = describeLostClasses(figures);
  showStatus({ state: "idle" });
  dialog.showModal();
  const now = await json("export").catch(() => null);
  if (now?.state === "running") follow();
}

function showStatus(status) {
  find("export-progress").hidden = status.state !== "running" && status.state !== "failed";
  find("export-done").hidden = status.state !== "done";
  find("export-go").disabled = status.state === "running";
  const bar = find("export-bar");
  bar.hidden = status.state === "failed";
  if (status.state === "running") {
    if (status.total) { bar.max = status.total; bar.value = status.done; } else bar.removeAttribute("value");
    find("export-status").textContent = status.total ? `${status.message || "writing"}: ${count(status.done)} of ${count(status.total)}` : status.message || "starting";
  } else if (status.state === "failed") find("export-status").textContent = status.message;
  else if (status.state === "done") {
    find("export-path").textContent = status.path;
    const more = status.more_files ? [make("li", { class: "quiet", text: `and ${count(status.more_files)} more` })] : [];
    find("export-files").replaceChildren(...status.files.map((name) => make("li", { text: name })), ...more);
    announce(`Written to ${status.path}`);
  }
}

async function follow() {
  for (;;) {
    const status = await json("export");
    showStatus(status);
    if (status.state !== "running") return;
    await new Promise((go) => { setTimeout(go, 300); });
  }
}

async function begin() {
  const formats = [...document.querySelectorAll("#formats input:checked")].map((box) => box.value);
  const lost = state.figures.lost_classes.length;
  if (lost && !(await confirmed(`Export without ${lost === 1 ? "one class" : `${count(lost)} classes`}?`, `${describeLostClasses(state.figures)} A model trained on the export alone will not know ${lost === 1 ? "it" : "them"}.`, "Export anyway"))) return;
  try {
    showStatus({ state: "running", message: "starting" });
    await post("export", { formats, selection: asText({ ...state.request, tab }), allow_empty_classes: lost > 0 });
    await follow();
  } catch (error) {
    showStatus({ state: "failed", message: error.message });
  }
}

export function startDialogs() {
  find("keys").append(...KEYS.flatMap(([keys, words]) => [make("dt", {}, make("kbd", { text: keys })), make("dd", { text: words })]));
  find("open-keys").addEventListener("click", showKeys);
  find("open-export").addEventListener("click", () => showExport().catch(showError));
  find("export-close").addEventListener("click", () => find("export-dialog").close());
  find("export-go").addEventListener("click", begin);
  find("formats").append(...state.info.formats.map((name, place) => make("label", {}, make("input", { type: "checkbox", value: name, checked: place < 2 }), make("span", { text: FORMATS[name] ?? name }))));
}
