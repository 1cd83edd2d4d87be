// Details of one sample: its properties, its neighbors, its Langevin chain.

import { bitmap, json, tab } from "./api.js";
import { goTo, isText } from "./grid.js";
import { rejectRows } from "./rejections.js";
import { play } from "./audio.js";
import { BY_HAND, on, state } from "./state.js";
import { drawCell } from "./tiles.js";
import { showError, find, make, number, weight } from "./dom.js";

let shown = null, controller = null;
const panel = () => find("details");
export const isOpen = () => shown !== null;
export const shownRow = () => shown;

export async function open(row, { focus = true } = {}) {
  controller?.abort();
  controller = new AbortController();
  const { signal } = controller;
  shown = row;
  try {
    const facts = await json("sample", { row, ...state.request, tab }, signal);
    panel().hidden = false;
    document.body.classList.add("has-details");
    build(facts, signal);
    if (focus) find("details-title").focus({ preventScroll: true });
    panel().scrollTop = 0;
  } catch (error) { showError(error); }
}

export function close({ focus = true } = {}) {
  if (shown === null) return;
  controller?.abort();
  shown = null;
  panel().hidden = true;
  document.body.classList.remove("has-details");
  if (focus) goTo(state.active);
}

function build(facts, signal) {
  const rejected = state.outcomes[facts.row] === BY_HAND;
  const head = make("div", { class: "head" },
    make("h2", { id: "details-title", tabindex: "-1", text: `Sample ${facts.row}` }),
    make("button", { type: "button", class: "plain", "aria-label": "Close the details", title: "Close (Esc)", text: "✕", onclick: () => close() }));
  const actions = make("div", { class: "actions" },
    make("button", { type: "button", id: "details-reject", class: rejected ? "" : "danger", text: rejected ? "Restore" : "Reject", onclick: () => rejectRows([facts.row]) }),
    state.info.form === "sound" ? make("button", { type: "button", text: "▶ Play", onclick: () => play("sound", facts.row) }) : null,
    make("button", { type: "button", "aria-label": "Previous sample", title: "Previous sample", text: "←", onclick: () => step(-1) }),
    make("button", { type: "button", "aria-label": "Next sample", title: "Next sample", text: "→", onclick: () => step(1) }));
  const agree = (name) => (name === null || name === facts.label ? "" : "is-other");
  const list = make("dl", { class: "facts" });
  const line = (term, value, kind = "") => list.append(make("dt", { text: term }), make("dd", { text: value, class: kind }));
  line("requested class", facts.label);
  line("classifier", facts.classifier, agree(facts.classifier));
  if (state.info.has_oracle) line("oracle", facts.oracle ?? "–", agree(facts.oracle));
  line("outcome", facts.preview ? `${facts.outcome} (preview)` : facts.outcome);
  line("entropy", `${number(facts.entropy, 4)} nats`);
  line("weight", facts.weight ? weight(facts.weight) : "0");
  line("rank in its class", facts.rank === null ? "–" : String(facts.rank));
  line("log-density", number(facts.log_density, 4));
  line("distance to the nearest real", number(facts.distance, 4));
  line("seed of the chain", facts.seed, "seed");
  const near = make("div", { class: "strip" }), real = make("div", { class: "strip" }), chain = make("div", { class: "strip chain" });
  const part = (title, box) => make("section", { class: "part" }, make("h3", { text: title }), box);
  const top = make("div", { class: isText() ? "" : "top" }, portrait(facts), actions);
  panel().replaceChildren(head, top, list,
    part("Nearest real examples", real), part("Langevin chain from p0 to the end, by step", chain), part("Neighbors in the pool", near));
  showNear(facts.row, near, real, signal).catch(showError).then(() => showChain(facts, chain, signal))
    .catch((error) => { if (error.name !== "AbortError") chain.replaceChildren(make("p", { class: "quiet", text: error.message })); });
}

function portrait(facts) {
  if (!isText()) {
    const picture = make("canvas", { class: "portrait", role: "img", "aria-label": `Sample ${facts.row}, requested class ${facts.label}` });
    bitmap("image", { row: facts.row }).then((found) => {
      picture.width = found.width;
      picture.height = found.height;
      picture.getContext("2d").drawImage(found, 0, 0);
    }).catch(showError);
    return make("div", { class: "portrait-box" }, picture);
  }
  const box = make("div", { class: "read", tabindex: "0", role: "region", "aria-label": "The whole sample" });
  json("text", { rows: facts.row }).then(({ names, cells }) => box.replaceChildren(names.length ? cellsOf(names, cells[0]) : make("blockquote", { text: cells[0][0] }))).catch(showError);
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
  const found = await json("neighbors", { row }, signal);
  const sounds = state.info.form === "sound";
  const pool = found.pool.map(({ row: other, distance, label }) => ({ other, caption: `${label}\n${number(distance)}`, label: `Neighbor: sample ${other}, class ${label}, distance ${number(distance)}`, act: () => open(other) }));
  const examples = found.real.map(({ row: other, distance, label }) => ({ other, caption: `${label}\n${number(distance)}`, label: `Real example ${other}, ${label}, distance ${number(distance)}${sounds ? ": play" : ""}`, act: sounds ? () => play("real-sound", other) : null, large: !sounds }));
  await Promise.all([fillStrip(near, pool, "sheet", "text", signal), fillStrip(real, examples, "real-sheet", "real-text", signal)]);
}

async function fillStrip(box, entries, sheetName, textName, signal) {
  if (!entries.length) { box.replaceChildren(make("p", { class: "quiet", text: "none" })); return; }
  const rows = entries.map(({ other }) => other).join(",");
  if (isText()) {
    const { names, cells } = await json(textName, { rows }, signal);
    box.replaceChildren(...entries.map(({ caption, act }, place) => textCard(caption, cells[place], names, act)));
    return;
  }
  let sheet = null;
  const cards = entries.map(({ caption, label, act, large }, place) => card("seen", caption, label, large ? () => enlarge(sheet, place, label) : act));
  box.replaceChildren(...cards.map(({ element }) => element));
  sheet = await bitmap(sheetName, { rows }, signal);
  cards.forEach(({ body }, place) => { const canvas = make("canvas"); drawCell(canvas, sheet, place); body.replaceChildren(canvas); });
}

async function showChain(facts, box, signal) {
  if (!state.info.has_chains) { box.replaceChildren(make("p", { class: "quiet", text: "The chains of this pool cannot be replayed." })); return; }
  box.replaceChildren(make("p", { class: "quiet", text: "Replaying…" }));
  const chain = await json("chain", { row: facts.row }, signal);
  if (isText()) {
    box.replaceChildren(...chain.steps.map((step, place) => textCard(`step ${step}`, chain.cells[place], chain.names, null)));
    return;
  }
  const sheet = await bitmap("chain-sheet", { row: facts.row }, signal);
  const cards = chain.steps.map((step, place) => {
    const made = card("seen", String(step), `After ${step} steps`, () => enlarge(sheet, place, `After ${step} steps`));
    const canvas = make("canvas");
    drawCell(canvas, sheet, place);
    made.body.append(canvas);
    return made.element;
  });
  box.replaceChildren(...cards);
}

// Show a real example, or a step of the chain, in place of the sample.
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
  on("open", () => open(state.order[state.active], { focus: true }));
  const again = () => { if (shown !== null) json("sample", { row: shown, ...state.request, tab }).then(update).catch(showError); };
  on("selection", again);
}

// The selection has changed: update what depends on it.
function update(facts) {
  if (facts.row !== shown) return;
  const list = panel().querySelector(".facts");
  if (!list) return;
  const values = { outcome: facts.preview ? `${facts.outcome} (preview)` : facts.outcome, weight: facts.weight ? weight(facts.weight) : "0", "rank in its class": facts.rank === null ? "–" : String(facts.rank) };
  for (const term of list.querySelectorAll("dt")) if (term.textContent in values) term.nextElementSibling.textContent = values[term.textContent];
  const rejected = state.outcomes[facts.row] === BY_HAND, button = find("details-reject");
  button.textContent = rejected ? "Restore" : "Reject";
  button.className = rejected ? "" : "danger";
}
