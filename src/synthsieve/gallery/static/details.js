// One sample in full: what is known of it, who is near, how its chain came there.

import { bitmap, json, tab } from "./ask.js";
import { goTo, isLines } from "./grid.js";
import { markRows } from "./marking.js";
import { play } from "./sounds.js";
import { BY_HAND, hear, state, wishGiven } from "./state.js";
import { drawCell } from "./tiles.js";
import { complain, find, make, number, weight } from "./words.js";

let shown = null, aborting = null;
const panel = () => find("details");
export const isOpen = () => shown !== null;
export const shownRow = () => shown;

export async function open(row, { focus = true } = {}) {
  aborting?.abort();
  aborting = new AbortController();
  const { signal } = aborting;
  shown = row;
  try {
    const facts = await json("sample", { row, ...wishGiven(), tab }, signal);
    panel().hidden = false;
    document.body.classList.add("has-details");
    build(facts, signal);
    if (focus) find("details-title").focus({ preventScroll: true });
    panel().scrollTop = 0;
  } catch (error) { complain(error); }
}

export function close({ focus = true } = {}) {
  if (shown === null) return;
  aborting?.abort();
  shown = null;
  panel().hidden = true;
  document.body.classList.remove("has-details");
  if (focus) goTo(state.active);
}

function build(facts, signal) {
  const marked = state.states[facts.row] === BY_HAND;
  const head = make("div", { class: "head" },
    make("h2", { id: "details-title", tabindex: "-1", text: `Sample ${facts.row}` }),
    make("button", { type: "button", class: "plain", "aria-label": "Close the details", title: "Close (Esc)", text: "✕", onclick: () => close() }));
  const actions = make("div", { class: "actions" },
    make("button", { type: "button", id: "details-mark", class: marked ? "" : "danger", text: marked ? "Take the mark back" : "Mark as bad", onclick: () => markRows([facts.row]) }),
    state.about.form === "sound" ? make("button", { type: "button", text: "▶ Play", onclick: () => play("sound", facts.row) }) : null,
    make("button", { type: "button", "aria-label": "Previous sample", title: "Previous sample", text: "←", onclick: () => step(-1) }),
    make("button", { type: "button", "aria-label": "Next sample", title: "Next sample", text: "→", onclick: () => step(1) }));
  const agree = (name) => (name === null || name === facts.asked ? "" : "is-other");
  const list = make("dl", { class: "facts" });
  const line = (term, value, kind = "") => list.append(make("dt", { text: term }), make("dd", { text: value, class: kind }));
  line("asked for", facts.asked);
  line("classifier", facts.classifier, agree(facts.classifier));
  if (state.about.judge) line("judge", facts.judge ?? "–", agree(facts.judge));
  line("fate", facts.preview ? `${facts.reason} (preview)` : facts.reason);
  line("entropy", `${number(facts.entropy, 4)} nats`);
  line("weight", facts.weight ? weight(facts.weight) : "0");
  line("rank in its class", facts.rank === null ? "–" : String(facts.rank));
  line("log-density", number(facts.log_density, 4));
  line("to the nearest real", number(facts.distance, 4));
  line("chain's seed", facts.seed, "seed");
  const near = make("div", { class: "strip" }), real = make("div", { class: "strip" }), chain = make("div", { class: "strip chain" });
  const part = (title, box) => make("section", { class: "part" }, make("h3", { text: title }), box);
  const top = make("div", { class: isLines() ? "" : "top" }, portrait(facts), actions);
  panel().replaceChildren(head, top, list,
    part("Nearest real examples", real), part("Its chain, from p0 to the end, by steps", chain), part("Neighbours in the pool", near));
  showNear(facts.row, near, real, signal).catch(complain).then(() => showChain(facts, chain, signal))
    .catch((error) => { if (error.name !== "AbortError") chain.replaceChildren(make("p", { class: "quiet", text: error.message })); });
}

function portrait(facts) {
  if (!isLines()) {
    const picture = make("canvas", { class: "portrait", role: "img", "aria-label": `Sample ${facts.row}, asked to be ${facts.asked}` });
    bitmap("picture", { row: facts.row }).then((found) => {
      picture.width = found.width;
      picture.height = found.height;
      picture.getContext("2d").drawImage(found, 0, 0);
    }).catch(complain);
    return make("div", { class: "portrait-box" }, picture);
  }
  const box = make("div", { class: "read" });
  json("lines", { rows: facts.row }).then((told) => box.replaceChildren(told.names.length ? cellsOf(told.names, told.cells[0]) : make("blockquote", { text: told.cells[0][0] }))).catch(complain);
  return box;
}

function cellsOf(names, cells) {
  return make("table", { class: "cells-table" }, make("tbody", {}, ...cells.map((text, place) => make("tr", {}, make("th", { scope: "row", text: names[place] }), make("td", { text })))));
}

function card(kind, caption, label, act) {
  const body = make("span", { class: "card-body" });
  const element = make("button", { type: "button", class: `card ${kind}`, "aria-label": label, title: label, onclick: act });
  element.append(body, make("span", { class: "card-caption", text: caption }));
  return { element, body };
}

function textCard(caption, cells, names, act) {
  const text = cells.map((cell, place) => (names[place] ? `${names[place]}: ${cell}` : cell)).join(" · ");
  const inner = [make("span", { class: "card-text", text }), make("span", { class: "card-caption", text: caption })];
  return act ? make("button", { type: "button", class: "card line", onclick: act }, ...inner) : make("div", { class: "card line" }, ...inner);
}

async function showNear(row, near, real, signal) {
  const told = await json("neighbours", { row }, signal);
  const sounds = state.about.form === "sound";
  const pool = told.pool.map(({ row: other, distance, asked }) => ({ other, caption: `${asked}\n${number(distance)}`, label: `Neighbour: sample ${other}, class ${asked}, distance ${number(distance)}`, act: () => open(other) }));
  const examples = told.real.map(({ row: other, distance, label }) => ({ other, caption: `${label}\n${number(distance)}`, label: `Real example ${other}, ${label}, distance ${number(distance)}${sounds ? ": play" : ""}`, act: sounds ? () => play("real-sound", other) : null, large: !sounds }));
  await Promise.all([fillStrip(near, pool, "sheet", "lines", signal), fillStrip(real, examples, "real-sheet", "real-lines", signal)]);
}

async function fillStrip(box, entries, sheetName, linesName, signal) {
  if (!entries.length) { box.replaceChildren(make("p", { class: "quiet", text: "none" })); return; }
  const rows = entries.map(({ other }) => other).join(",");
  if (isLines()) {
    const told = await json(linesName, { rows }, signal);
    box.replaceChildren(...entries.map(({ caption, act }, place) => textCard(caption, told.cells[place], told.names, act)));
    return;
  }
  let sheet = null;
  const cards = entries.map(({ caption, label, act, large }, place) => card("seen", caption, label, large ? () => enlarge(sheet, place, label) : act));
  box.replaceChildren(...cards.map(({ element }) => element));
  sheet = await bitmap(sheetName, { rows }, signal);
  cards.forEach(({ body }, place) => { const canvas = make("canvas"); drawCell(canvas, sheet, place); body.replaceChildren(canvas); });
}

async function showChain(facts, box, signal) {
  if (!state.about.replayable) { box.replaceChildren(make("p", { class: "quiet", text: "This pool's chains cannot be replayed." })); return; }
  box.replaceChildren(make("p", { class: "quiet", text: "Replaying…" }));
  const told = await json("chain", { row: facts.row }, signal);
  if (isLines()) {
    box.replaceChildren(...told.steps.map((step, place) => textCard(`step ${step}`, told.cells[place], told.names, null)));
    return;
  }
  const sheet = await bitmap("chain-sheet", { row: facts.row }, signal);
  const cards = told.steps.map((step, place) => {
    const made = card("seen", String(step), `After ${step} steps`, () => enlarge(sheet, place, `After ${step} steps`));
    const canvas = make("canvas");
    drawCell(canvas, sheet, place);
    made.body.append(canvas);
    return made.element;
  });
  box.replaceChildren(...cards);
}

// A real example, or a step of the chain, in the place of the portrait.
function enlarge(sheet, place, words) {
  if (!sheet) return;
  const canvas = make("canvas", { class: "portrait", role: "img", "aria-label": words });
  drawCell(canvas, sheet, place);
  panel().querySelector(".portrait-box").replaceChildren(canvas, make("span", { class: "card-caption", text: words }));
}

export function step(by) {
  const place = Math.min(state.order.length - 1, Math.max(0, state.active + by));
  goTo(place, { focus: false });
  open(state.order[place]);
}

export function startDetails() {
  hear("open", () => open(state.order[state.active], { focus: true }));
  const again = () => { if (shown !== null) json("sample", { row: shown, ...wishGiven(), tab }).then(update).catch(complain); };
  hear("choice", again);
}

// The choice has changed: what it decides is told anew, the rest stays.
function update(facts) {
  if (facts.row !== shown) return;
  const list = panel().querySelector(".facts");
  if (!list) return;
  const values = { fate: facts.preview ? `${facts.reason} (preview)` : facts.reason, weight: facts.weight ? weight(facts.weight) : "0", "rank in its class": facts.rank === null ? "–" : String(facts.rank) };
  for (const term of list.querySelectorAll("dt")) if (term.textContent in values) term.nextElementSibling.textContent = values[term.textContent];
  const marked = state.states[facts.row] === BY_HAND, button = find("details-mark");
  button.textContent = marked ? "Take the mark back" : "Mark as bad";
  button.className = marked ? "" : "danger";
}
