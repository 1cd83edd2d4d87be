// Starts the page: constant data are loaded once, then every module is started.

import { bytes, json } from "./api.js";
import { refresh, startSelection } from "./selection.js";
import { close, isOpen, shownRow, startDetails } from "./details.js";
import { anyDialog, showExport, showKeys, startDialogs } from "./dialogs.js";
import { list, startFilters } from "./filters.js";
import { highlightChanged, framesDrawn, goTo, resize, startGrid } from "./grid.js";
import { rejectHighlighted, rejectRows, startRejections, undo } from "./rejections.js";
import { play } from "./audio.js";
import { on, state } from "./state.js";
import { startTheme } from "./theme.js";
import { showError, find, make } from "./dom.js";

async function begin() {
  startTheme();
  state.info = await json("info");
  const [y, entropy] = await Promise.all(["y", "entropy"].map((name) => bytes("column", { name })));
  state.y = new Int32Array(y);
  state.entropy = new Float64Array(entropy);
  state.outcomes = new Uint8Array(state.info.count);
  state.weights = new Float32Array(state.info.count);
  find("title").textContent = state.info.title;
  find("variant").textContent = state.info.variant;
  document.title = `${state.info.title} · synthsieve gallery`;
  showLegend();
  startSelection();
  startFilters();
  startDialogs();
  startRejections();
  startDetails();
  await refresh();
  startGrid();
  await list();
  document.body.classList.add("is-ready");
}

// The same symbols that tiles have: a dot for text; an underlined, faded or crossed-out image.
function symbol() {
  if (state.info.form === "text") return make("span", { class: "dot", "aria-hidden": "true" });
  return make("span", { class: "frame", "aria-hidden": "true" }, make("span", { class: "swatch" }), make("span", { class: "cross", text: "✕" }));
}

function showLegend() {
  const entries = [["is-selected", "selected, × weight"], ["is-kept", "kept, represented by another"], ["is-rejected", "rejected by the filter"], ["is-by-hand", "rejected by hand"]];
  find("legend").append(...entries.map(([kind, text]) => make("span", { class: kind }, symbol(), text)));
}

function side(show) {
  document.body.classList.toggle("has-side", show);
  find("open-side").setAttribute("aria-expanded", show ? "true" : "false");
}

const typing = (target) => target.closest("input[type=text], textarea, select, [contenteditable]") !== null;

document.addEventListener("keydown", (event) => {
  if (anyDialog() || !state.info) return;
  if (event.key === "Escape") {
    if (isOpen()) close();
    else if (document.body.classList.contains("has-side")) { side(false); find("open-side").focus(); }
    else if (state.highlighted.size) { state.highlighted.clear(); highlightChanged(); }
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  const acts = {
    x: () => (find("details").contains(document.activeElement) ? rejectRows([shownRow()]) : rejectHighlighted()), u: undo, "?": showKeys, e: () => showExport().catch(showError),
    p: () => { if (state.info.form === "sound" && state.order.length) play("sound", state.order[state.active]); },
    "+": () => resize(1), "=": () => resize(1), "-": () => resize(-1),
    g: () => goTo(state.active), f: () => { side(true); find("ceiling").focus(); },
  };
  if (event.key in acts) { event.preventDefault(); acts[event.key](); }
});

// Without its data the page is useless: show why.
function giveUp(error) {
  document.querySelector("main").replaceChildren(make("p", { class: "empty", role: "alert", text: error.message }));
}

find("open-tab").addEventListener("click", () => window.open("/", "_blank")); // a tab opened by this one inherits its key
on("play", () => play("sound", state.order[state.active]));
find("open-side").addEventListener("click", () => side(!document.body.classList.contains("has-side")));
window.synthsieve = { framesDrawn }; // for benchmarks

begin().catch(giveUp);
