// The options of the selection: counts and a preview at once, the exact selection as soon as the server has it.

import { bytes, json, tab } from "./api.js";
import { count, find, make, number, percent, showError, weight } from "./dom.js";
import { drawHistogram, scale } from "./histogram.js";
import { emit, on, state } from "./state.js";

const MIN_BUDGET = 0.001; // the lowest value of the slider
const STEPS = 1000;
const MAX_NAMED = 20; // classes in one sentence
const POLL_INTERVAL = 300; // milliseconds

let busy = false, again = false, timer = null;

const budgetAt = (position) => MIN_BUDGET ** (1 - position / STEPS);
const positionOf = (budget) => STEPS * (1 - Math.log(budget) / Math.log(MIN_BUDGET));

// Load the figures of the current request. While one load is running, only the newest of the others waits.
export async function refresh() {
  clearTimeout(timer);
  if (busy) { again = true; return; }
  busy = true;
  try {
    do {
      again = false;
      await load();
    } while (again);
  } catch (error) {
    if (state.figures) find("selection-note").textContent = error.message;
    else showError(error);
  } finally {
    busy = false;
  }
}

async function load() {
  const started = performance.now();
  const request = { ...state.request, tab };
  const previous = state.figures;
  const figures = await json("selection", request);
  if (again) { state.figures = figures; show(); return; }
  figures.key = [request.entropy_ceiling, request.keep_fraction, request.budget, figures.rejected_by_hand, figures.kept, figures.selected].join("/");
  const fresh = !previous || !previous.preview || !figures.preview || previous.key !== figures.key;
  if (fresh) {
    const content = await bytes("outcomes", request);
    const size = state.info.count;
    state.outcomes = new Uint8Array(content, 0, size);
    state.weights = new Float32Array(content, size + ((4 - (size % 4)) % 4), size);
  }
  state.figures = figures;
  figures.milliseconds = Math.round(performance.now() - started);
  find("selection-note").textContent = figures.note;
  show();
  if (fresh) emit("selection");
  if (figures.preview) timer = setTimeout(refresh, POLL_INTERVAL);
}

function row(term, value, extra = "") {
  return [make("dt", { text: term }), make("dd", {}, make("b", { text: value }), extra ? make("span", { class: "quiet", text: ` ${extra}` }) : null)];
}

function show() {
  const figures = state.figures, oracle = state.info.has_oracle;
  const tag = find("selection-state");
  const asTrained = Object.values(state.request).every((value) => value === null);
  tag.textContent = figures.preview ? `preview ${Math.round(100 * figures.done)} %` : asTrained && !figures.rejected_by_hand ? "as trained" : "exact";
  tag.title = figures.preview ? "Yield and purity are exact; the selected samples are approximate until the exact selection is ready" : "";
  tag.classList.toggle("is-preview", figures.preview);
  find("as-trained").hidden = asTrained;
  find("figures").replaceChildren(
    ...row("kept", count(figures.kept), `${percent(figures.kept / figures.drawn)} of all`),
    ...(oracle ? row("purity kept", percent(figures.purity_kept), `drawn ${percent(figures.purity_drawn)}`) : []),
    ...row("selected", count(figures.selected), `largest weight ${weight(figures.largest_weight)}`),
    ...(oracle ? row("purity selected", percent(figures.purity_selected), figures.preview ? "of the preview" : "") : []),
    ...(figures.rejected_by_hand ? row("rejected by hand", count(figures.rejected_by_hand)) : []),
    ...(figures.gradient_bound !== null && !figures.preview ? row("gradient error", number(figures.gradient_error), `at most ${number(figures.gradient_bound)}`) : []),
  );
  find("undo").disabled = !figures.undo_count;
  find("lost-classes").textContent = describeLostClasses(figures);
  updateControls();
  emit("figures");
}

// Names the classes that would have no sample left.
export function describeLostClasses({ lost_classes: lost }) {
  if (!lost.length) return "";
  const more = lost.length > MAX_NAMED ? `, and ${count(lost.length - MAX_NAMED)} more` : "";
  return `No sample is left of ${lost.length === 1 ? "class" : `${count(lost.length)} classes:`} ${lost.slice(0, MAX_NAMED).join(", ")}${more}.`;
}

// What the first slider sets: a fraction of each class if training kept one, else one ceiling for all classes.
const trainedMode = () => (state.info.trained.keep_fraction === null ? "entropy_ceiling" : "keep_fraction");
const mode = () => (state.request.keep_fraction !== null ? "keep_fraction" : state.request.entropy_ceiling !== null ? "entropy_ceiling" : trainedMode());

function setMode(wanted) {
  const { entropy_ceiling: ceiling, kept, drawn } = state.figures;
  state.request.entropy_ceiling = state.request.keep_fraction = null;
  if (wanted !== trainedMode()) {
    if (wanted === "entropy_ceiling") state.request.entropy_ceiling = Number((ceiling ?? state.info.highest_entropy).toPrecision(4));
    else state.request.keep_fraction = Number(Math.max(MIN_BUDGET, kept / drawn).toPrecision(3));
  }
  showInvalid(null);
  refresh();
}

// Sliders and their numbers follow the selection, except the one that has the focus.
function updateControls() {
  const { request, info, figures } = state;
  const slider = find("ceiling"), budgetSlider = find("budget"), box = find("ceiling-number"), byFraction = mode() === "keep_fraction";
  const free = document.activeElement !== slider || (request.entropy_ceiling === null && request.keep_fraction === null);
  const value = byFraction ? request.keep_fraction ?? figures.keep_fraction ?? info.trained.keep_fraction : request.entropy_ceiling ?? figures.entropy_ceiling;
  const text = byFraction ? `${number(100 * value)} %` : value === null ? "none" : number(value);
  for (const radio of document.querySelectorAll("#mode input")) radio.checked = radio.value === mode();
  find("ceiling-label").textContent = byFraction ? "Keep of each class, lowest entropy first" : "Entropy ceiling for all classes, nats";
  box.setAttribute("aria-label", byFraction ? "Fraction of each class to keep, in percent" : "Entropy ceiling in nats, as a number");
  if (free) slider.value = byFraction ? STEPS * value : value === null ? STEPS : STEPS * scale().at(value);
  slider.setAttribute("aria-valuetext", byFraction ? text : value === null ? "no ceiling" : `${text} nats`);
  if (document.activeElement !== box) box.value = text;
  const budget = request.budget ?? (info.trained.coreset === "everything" ? 1 : figures.budget);
  if (document.activeElement !== budgetSlider || request.budget === null) budgetSlider.value = positionOf(budget);
  budgetSlider.setAttribute("aria-valuetext", percent(budget));
  if (document.activeElement !== find("budget-number")) find("budget-number").value = `${number(100 * budget)} %`;
  if (state.outcomes) drawHistogram(find("histogram"), byFraction ? null : value);
}

// Flag a box with invalid content and show why; null clears both.
function showInvalid(box, message = "") {
  for (const one of [find("ceiling-number"), find("budget-number")]) one.setAttribute("aria-invalid", String(one === box));
  find("input-note").textContent = message;
}

function typed(box, apply, { isPercent }) {
  const text = box.value.trim(), value = Number(text.replace(isPercent ? "%" : "nats", "").trim() || NaN);
  if (Number.isFinite(value) && value > 0 && value <= (isPercent ? 100 : Infinity)) {
    showInvalid(null);
    apply(isPercent ? value / 100 : value);
    refresh();
  } else showInvalid(box, `Expected ${isPercent ? "a percentage above 0, at most 100" : "an entropy in nats, above 0"}, got “${text}”: try ${isPercent ? "30" : "0.01"}.`);
}

function setFilter(value) {
  state.request = { ...state.request, entropy_ceiling: null, keep_fraction: null, [mode()]: value };
}

export function startSelection() {
  const slider = find("ceiling"), budgetSlider = find("budget");
  slider.addEventListener("input", () => {
    showInvalid(null);
    setFilter(mode() === "keep_fraction" ? Math.max(1, slider.value) / STEPS : Number(scale().value(slider.value / STEPS).toPrecision(4)));
    refresh();
  });
  budgetSlider.addEventListener("input", () => { showInvalid(null); state.request.budget = Number(budgetAt(budgetSlider.value).toPrecision(3)); refresh(); });
  find("ceiling-number").addEventListener("change", (event) => typed(event.target, setFilter, { isPercent: mode() === "keep_fraction" }));
  find("budget-number").addEventListener("change", (event) => typed(event.target, (value) => { state.request.budget = value; }, { isPercent: true }));
  for (const radio of document.querySelectorAll("#mode input")) radio.addEventListener("change", () => setMode(radio.value));
  find("as-trained").addEventListener("click", () => {
    state.request = { entropy_ceiling: null, keep_fraction: null, budget: null };
    showInvalid(null);
    slider.focus();
    refresh();
  });
  on("filter", () => { if (state.outcomes && state.figures) updateControls(); });
}
