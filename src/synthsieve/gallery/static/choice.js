// Ceiling and budget: numbers and a preview at once, the true picks as soon as the server has them.

import { bytes, json, tab } from "./ask.js";
import { drawHistogram, scale } from "./histogram.js";
import { hear, state, tell, wishGiven } from "./state.js";
import { complain, count, find, make, number, percent, weight } from "./words.js";

const SMALLEST = 0.001; // the lowest budget of the slider
const STEPS = 1000;
const POLL = 300; // milliseconds between questions whether the true picks are there

let asking = null, again = false, polling = null;

const budgetAt = (place) => SMALLEST ** (1 - place / STEPS);
const placeOf = (budget) => STEPS * (1 - Math.log(budget) / Math.log(SMALLEST));

// Ask for the figures of the wish of now. While one question is open a newer one waits, and only the newest is asked.
export async function refresh() {
  clearTimeout(polling);
  if (asking) { again = true; return; }
  asking = true;
  try {
    do {
      again = false;
      await ask();
    } while (again);
  } catch (error) {
    if (state.figures) find("choice-note").textContent = error.message;
    else complain(error);
  } finally {
    asking = null;
  }
}

async function ask() {
  const started = performance.now();
  const wish = { ...wishGiven(), tab };
  const was = state.figures;
  const figures = await json("choice", wish);
  if (again) { state.figures = figures; show(); return; }
  const fresh = !was || !was.preview || !figures.preview || was.key !== keyOf(figures, wish);
  figures.key = keyOf(figures, wish);
  if (fresh) {
    const content = await bytes("states", wish);
    const size = state.about.count;
    state.states = new Uint8Array(content, 0, size);
    state.weights = new Float32Array(content, size + ((4 - (size % 4)) % 4), size);
  }
  state.figures = figures;
  figures.milliseconds = Math.round(performance.now() - started);
  find("choice-note").textContent = figures.note;
  show();
  if (fresh) tell("choice");
  if (figures.preview) polling = setTimeout(refresh, POLL);
}

const keyOf = (figures, wish) => [wish.ceiling, wish.budget, figures.marked, figures.kept, figures.selected].join("/");

function row(term, value, extra = "") {
  return [make("dt", { text: term }), make("dd", {}, make("b", { text: value }), extra ? make("span", { class: "quiet", text: ` ${extra}` }) : null)];
}

function show() {
  const told = state.figures;
  const tag = find("picks-state");
  const same = state.wish.ceiling === null && state.wish.budget === null;
  tag.textContent = told.preview ? `preview ${Math.round(100 * told.done)} %` : same && !told.marked ? "as trained" : "exact";
  tag.title = told.preview ? "Yield and purity are exact; these picks are quick ones until the true ones are chosen" : "";
  tag.classList.toggle("is-preview", told.preview);
  find("as-trained").hidden = same;
  const judged = state.about.judge;
  find("figures").replaceChildren(
    ...row("kept", count(told.kept), `${percent(told.kept / told.drawn)} of all`),
    ...(judged ? row("purity kept", percent(told.purity_kept), `drawn ${percent(told.purity_drawn)}`) : []),
    ...row("selected", count(told.selected), `heaviest ${weight(told.largest_weight)}`),
    ...(judged ? row("purity selected", percent(told.purity_selected), told.preview ? "of the preview" : "") : []),
    ...(told.marked ? row("marked as bad", count(told.marked)) : []),
    ...(told.gradient_bound !== null && !told.preview ? row("gradient error", number(told.gradient_error), `at most ${number(told.gradient_bound)}`) : []),
  );
  find("undo").disabled = !told.can_undo;
  place();
  tell("figures");
}

// Sliders and their numbers follow the choice, unless a hand is on them.
function place() {
  const { ceiling, budget } = state.figures;
  const shown = state.wish.ceiling ?? ceiling;
  const slider = find("ceiling"), share = find("budget");
  if (document.activeElement !== slider || state.wish.ceiling === null) slider.value = shown === null ? STEPS : STEPS * scale().at(shown);
  slider.setAttribute("aria-valuetext", shown === null ? "no ceiling" : `${number(shown)} nats`);
  if (document.activeElement !== find("ceiling-number")) find("ceiling-number").value = shown === null ? "none" : number(shown);
  const part = state.wish.budget ?? (state.about.trained.coreset === "everything" ? 1 : budget);
  if (document.activeElement !== share || state.wish.budget === null) share.value = placeOf(part);
  share.setAttribute("aria-valuetext", percent(part));
  if (document.activeElement !== find("budget-number")) find("budget-number").value = `${number(100 * part)} %`;
  if (state.states) drawHistogram(find("histogram"), shown);
}

function typed(text, toWish) {
  const value = Number(text.replace("%", "").replace("nats", "").trim());
  if (Number.isFinite(value) && value > 0) toWish(value);
  else if (state.figures) place();
}

export function startChoice() {
  const slider = find("ceiling"), share = find("budget");
  slider.addEventListener("input", () => { state.wish.ceiling = Number(scale().value(slider.value / STEPS).toPrecision(4)); refresh(); });
  share.addEventListener("input", () => { state.wish.budget = Number(budgetAt(share.value).toPrecision(3)); refresh(); });
  find("ceiling-number").addEventListener("change", (event) => typed(event.target.value, (value) => { state.wish.ceiling = value; refresh(); }));
  find("budget-number").addEventListener("change", (event) => typed(event.target.value, (value) => { state.wish.budget = Math.min(1, value / 100); refresh(); }));
  find("as-trained").addEventListener("click", () => {
    state.wish = { ceiling: null, budget: null };
    slider.focus();
    refresh();
  });
  hear("filter", () => { if (state.states && state.figures) place(); });
}
