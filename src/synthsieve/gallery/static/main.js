// The page begins: what never changes is asked once, then every part is started.

import { bytes, json } from "./ask.js";
import { refresh, startChoice } from "./choice.js";
import { close, isOpen, shownRow, startDetails } from "./details.js";
import { anyDialog, showExport, showKeys, startDialogs } from "./dialogs.js";
import { list, startFilters } from "./filters.js";
import { chosenChanged, framesDrawn, goTo, resize, startGrid } from "./grid.js";
import { markChosen, markRows, startMarking, undo } from "./marking.js";
import { play } from "./sounds.js";
import { hear, state } from "./state.js";
import { startTheme } from "./theme.js";
import { complain, find, make } from "./words.js";

async function begin() {
  startTheme();
  state.about = await json("about");
  const [y, judge, entropy] = await Promise.all(["y", "judge", "entropy"].map((name) => bytes("column", { name })));
  state.y = new Int32Array(y);
  state.judge = new Int32Array(judge);
  state.entropy = new Float64Array(entropy);
  state.states = new Uint8Array(state.about.count);
  state.weights = new Float32Array(state.about.count);
  find("title").textContent = state.about.title;
  find("arm").textContent = state.about.arm;
  document.title = `${state.about.title} · synthsieve gallery`;
  showLegend();
  startChoice();
  startFilters();
  startDialogs();
  startMarking();
  startDetails();
  await refresh();
  startGrid();
  await list();
  document.body.classList.add("is-ready");
}

// The very marks that tiles have: a dot before a line; a line below a picture, a faded one, a cross over it.
function mark() {
  if (state.about.form === "lines") return make("span", { class: "dot", "aria-hidden": "true" });
  return make("span", { class: "frame", "aria-hidden": "true" }, make("span", { class: "swatch" }), make("span", { class: "cross", text: "✕" }));
}

function showLegend() {
  const words = [["is-selected", "selected, × how many it stands for"], ["is-kept", "kept, another stands for it"], ["is-rejected", "rejected by the sieve"], ["is-marked", "marked as bad"]];
  find("legend").append(...words.map(([kind, text]) => make("span", { class: kind }, mark(), text)));
}

function side(show) {
  document.body.classList.toggle("has-side", show);
  find("open-side").setAttribute("aria-expanded", show ? "true" : "false");
}

const typing = (target) => target.closest("input[type=text], textarea, select, [contenteditable]") !== null;

document.addEventListener("keydown", (event) => {
  if (anyDialog() || !state.about) return;
  if (event.key === "Escape") {
    if (isOpen()) close();
    else if (document.body.classList.contains("has-side")) { side(false); find("open-side").focus(); }
    else if (state.chosen.size) { state.chosen.clear(); chosenChanged(); }
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  const acts = {
    x: () => (find("details").contains(document.activeElement) ? markRows([shownRow()]) : markChosen()), u: undo, "?": showKeys, e: () => showExport().catch(complain),
    p: () => { if (state.about.form === "sound" && state.order.length) play("sound", state.order[state.active]); },
    "+": () => resize(1), "=": () => resize(1), "-": () => resize(-1),
    g: () => goTo(state.active), f: () => { side(true); find("ceiling").focus(); },
  };
  if (event.key in acts) { event.preventDefault(); acts[event.key](); }
});

// Without its data the page can do nothing: the reason stays on the screen.
function giveUp(error) {
  document.querySelector("main").replaceChildren(make("p", { class: "empty", role: "alert", text: error.message }));
}

find("open-tab").addEventListener("click", () => window.open("/", "_blank")); // a tab that we open has our key too
hear("play", () => play("sound", state.order[state.active]));
find("open-side").addEventListener("click", () => side(!document.body.classList.contains("has-side")));
window.synthsieve = { framesDrawn }; // for whoever measures

begin().catch(giveUp);
