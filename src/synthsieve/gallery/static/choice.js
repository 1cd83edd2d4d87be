// Ceiling and budget: numbers and a preview at once, the true picks as soon as the server has them.

import { bytes, json, tab } from "./ask.js";
import { drawHistogram, scale } from "./histogram.js";
import { hear, state, tell, wishGiven } from "./state.js";
import { complain, count, find, make, number, percent, weight } from "./words.js";

const SMALLEST = 0.001; // the lowest budget of the slider
const STEPS = 1000;
const MOST_NAMED = 20; // classes in one sentence
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

const keyOf = (figures, wish) => [wish.ceiling, wish.keep, wish.budget, figures.marked, figures.kept, figures.selected].join("/");

function row(term, value, extra = "") {
  return [make("dt", { text: term }), make("dd", {}, make("b", { text: value }), extra ? make("span", { class: "quiet", text: ` ${extra}` }) : null)];
}

function show() {
  const told = state.figures;
  const tag = find("picks-state");
  const same = Object.values(state.wish).every((value) => value === null);
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
  find("lost-classes").textContent = lostInWords(told);
  place();
  tell("figures");
}

// Classes of which no sample would be left, or nothing.
export function lostInWords(told) {
  const lost = told.lost_classes;
  if (!lost.length) return "";
  const more = lost.length > MOST_NAMED ? `, and ${count(lost.length - MOST_NAMED)} more` : "";
  return `No sample is left of ${lost.length === 1 ? "class" : `${count(lost.length)} classes:`} ${lost.slice(0, MOST_NAMED).join(", ")}${more}.`;
}

// What the first slider sets: a share of each class where training kept one, else one ceiling for all classes.
const trainedMode = () => (state.about.trained.keep_fraction === null ? "ceiling" : "keep");
const mode = () => (state.wish.keep !== null ? "keep" : state.wish.ceiling !== null ? "ceiling" : trainedMode());

function setMode(wanted) {
  const { ceiling, kept, drawn } = state.figures;
  state.wish.ceiling = state.wish.keep = null;
  if (wanted !== trainedMode()) {
    if (wanted === "ceiling") state.wish.ceiling = Number((ceiling ?? state.about.highest_entropy).toPrecision(4));
    else state.wish.keep = Number(Math.max(SMALLEST, kept / drawn).toPrecision(3));
  }
  complainOf(null);
  refresh();
}

// Sliders and their numbers follow the choice, unless a hand is on them.
function place() {
  const { ceiling, keep, budget } = state.figures;
  const slider = find("ceiling"), share = find("budget"), box = find("ceiling-number"), now = mode();
  const free = document.activeElement !== slider || (state.wish.ceiling === null && state.wish.keep === null);
  const shown = now === "keep" ? state.wish.keep ?? keep ?? state.about.trained.keep_fraction : state.wish.ceiling ?? ceiling;
  const words = now === "keep" ? `${number(100 * shown)} %` : shown === null ? "none" : number(shown);
  for (const radio of document.querySelectorAll("#mode input")) radio.checked = radio.value === now;
  find("ceiling-label").textContent = now === "keep" ? "Keep of each class, lowest entropy first" : "Entropy ceiling for all classes, nats";
  box.setAttribute("aria-label", now === "keep" ? "Share of each class to keep, in percent" : "Entropy ceiling in nats, as a number");
  if (free) slider.value = now === "keep" ? STEPS * shown : shown === null ? STEPS : STEPS * scale().at(shown);
  slider.setAttribute("aria-valuetext", now === "keep" ? words : shown === null ? "no ceiling" : `${words} nats`);
  if (document.activeElement !== box) box.value = words;
  const part = state.wish.budget ?? (state.about.trained.coreset === "everything" ? 1 : budget);
  if (document.activeElement !== share || state.wish.budget === null) share.value = placeOf(part);
  share.setAttribute("aria-valuetext", percent(part));
  if (document.activeElement !== find("budget-number")) find("budget-number").value = `${number(100 * part)} %`;
  if (state.states) drawHistogram(find("histogram"), now === "keep" ? null : shown);
}

// Say what is wrong with a box's content, and mark the box; nothing is wrong with null.
function complainOf(box, sentence = "") {
  for (const one of [find("ceiling-number"), find("budget-number")]) one.setAttribute("aria-invalid", String(one === box));
  find("knob-note").textContent = sentence;
}

function typed(box, toWish, { share }) {
  const text = box.value.trim(), value = Number(text.replace(share ? "%" : "nats", "").trim() || NaN);
  const most = share ? 100 : Infinity;
  if (Number.isFinite(value) && value > 0 && value <= most) {
    complainOf(null);
    toWish(share ? value / 100 : value);
    refresh();
  } else complainOf(box, `Expected ${share ? "a percentage above 0, at most 100" : "an entropy in nats, above 0"}, got “${text}”: try ${share ? "30" : "0.01"}.`);
}

function setFirst(value) {
  if (mode() === "keep") state.wish = { ...state.wish, keep: value, ceiling: null };
  else state.wish = { ...state.wish, ceiling: value, keep: null };
}

export function startChoice() {
  const slider = find("ceiling"), share = find("budget");
  slider.addEventListener("input", () => {
    complainOf(null);
    setFirst(mode() === "keep" ? Math.max(1, slider.value) / STEPS : Number(scale().value(slider.value / STEPS).toPrecision(4)));
    refresh();
  });
  share.addEventListener("input", () => { complainOf(null); state.wish.budget = Number(budgetAt(share.value).toPrecision(3)); refresh(); });
  find("ceiling-number").addEventListener("change", (event) => typed(event.target, setFirst, { share: mode() === "keep" }));
  find("budget-number").addEventListener("change", (event) => typed(event.target, (value) => { state.wish.budget = value; }, { share: true }));
  for (const radio of document.querySelectorAll("#mode input")) radio.addEventListener("change", () => setMode(radio.value));
  find("as-trained").addEventListener("click", () => {
    state.wish = { ceiling: null, keep: null, budget: null };
    complainOf(null);
    slider.focus();
    refresh();
  });
  hear("filter", () => { if (state.states && state.figures) place(); });
}
