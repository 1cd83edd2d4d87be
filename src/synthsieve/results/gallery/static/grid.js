// The grid of samples. Only the visible ones are elements of the page.

import { drawCell, contentOf, names, want, onArrival } from "./tiles.js";
import { BY_HAND, KEPT, SELECTED, OUTCOME_TEXT, on, state, emit } from "./state.js";
import { count, find, make, number, announce, weight } from "./dom.js";

const MAX_HEIGHT = 12_000_000; // pixels that a browser can scroll; beyond it, the scroll bar is scaled
const SIZES = [36, 52, 72, 104, 144];
const AHEAD = 3; // rows rendered beyond the visible ones
const OUTCOME_CLASS = ["is-kept", "is-rejected", "is-rejected", "is-by-hand", "is-selected"];

let size = 2, columns = 1, rowHeight = 80, pool = [], anchor = 0, drawn = 0, settle = null, lastFirst = 0, lastTime = 0;
const grid = () => find("grid"), sizer = () => find("sizer");
export const isText = () => state.info.form === "text";

const rowCount = () => Math.ceil(state.order.length / columns);
const fullHeight = () => rowCount() * rowHeight;
const stretched = () => Math.min(fullHeight(), MAX_HEIGHT);

// From the scroll position to the full height, and back.
function topOf(scroll) {
  const short = stretched() - grid().clientHeight, full = fullHeight() - grid().clientHeight;
  return full <= short || short <= 0 ? scroll : (scroll / short) * full;
}
function scrollTo(top) {
  const short = stretched() - grid().clientHeight, full = fullHeight() - grid().clientHeight;
  grid().scrollTop = full <= short || full <= 0 ? top : (top / full) * short;
}

function measure() {
  const box = grid();
  const available = Math.max(200, box.clientWidth - 8);
  if (isText()) {
    columns = 1;
    rowHeight = names.length ? 36 : 48;
    find("text-head").classList.toggle("has-columns", names.length > 0);
    box.classList.toggle("has-columns", names.length > 0);
  } else {
    const { height, width } = state.info.tile;
    const side = SIZES[size];
    const across = state.info.form === "sound" ? side * 1.6 : side * Math.min(3, Math.max(0.5, width / height));
        columns = Math.max(1, Math.floor(available / (across + 10)));
    rowHeight = side + 32;
    box.style.setProperty("--tile-width", `${Math.floor(available / columns) - 8}px`);
    box.style.setProperty("--tile-height", `${side}px`);
    box.style.setProperty("--picture-width", `${Math.round(across)}px`);
  }
  box.style.setProperty("--row-height", `${rowHeight}px`);
  box.style.setProperty("--cells", String(Math.max(1, names.length)));
  box.setAttribute("aria-rowcount", String(rowCount()));
  box.setAttribute("aria-colcount", String(columns));
  sizer().style.height = `${stretched()}px`;
}

// Rebuild the grid after a change of order, size or width; the visible samples stay visible.
export function layout({ top = null } = {}) {
  const before = topOf(grid().scrollTop), focused = grid().contains(document.activeElement);
  const low = Math.floor(state.active / columns) * rowHeight, wasSeen = low + rowHeight > before && low < before + grid().clientHeight;
  const first = Math.round(before / rowHeight) * columns, offset = low - before;
  measure();
  const line = Math.floor((wasSeen ? state.active : first) / columns) * rowHeight;
  const keep = top ?? (wasSeen ? line - Math.max(0, Math.min(offset, grid().clientHeight - rowHeight)) : line);
  pool.forEach(({ element }) => element.remove());
  pool = [];
  scrollTo(Math.max(0, Math.min(keep, fullHeight() - grid().clientHeight)));
  render();
  if (focused) (tileAt(state.active) ?? grid()).focus({ preventScroll: true });
}

function makeTile() {
  const tile = make("div", { class: "tile", role: "gridcell", tabindex: "-1", "aria-selected": "false" });
  if (isText()) {
    tile.append(make("span", { class: "dot", "aria-hidden": "true" }), make("span", { class: "name" }), make("span", { class: "cell-number" }), make("span", { class: "cell-number" }), make("span", { class: "cells" }));
  } else {
    const frame = make("span", { class: "frame" }, make("canvas", { "aria-hidden": "true" }), make("span", { class: "cross", "aria-hidden": "true", text: "✕" }));
    if (state.info.form === "sound") frame.append(make("button", { type: "button", class: "play", tabindex: "-1", "aria-label": "Play", text: "▶" }));
    tile.append(frame, make("span", { class: "caption", "aria-hidden": "true" }, make("span", { class: "name" }), make("span", { class: "weight" })));
  }
  return tile;
}

function makeRow() {
  const element = make("div", { class: "row", role: "row" });
  const tiles = Array.from({ length: columns }, makeTile);
  element.append(...tiles);
  sizer().append(element);
  return { element, tiles, index: -1 };
}

export function render() {
  const box = grid(), top = topOf(box.scrollTop), rows = rowCount();
  const first = Math.max(0, Math.floor(top / rowHeight) - AHEAD);
  const last = Math.min(rows, Math.ceil((top + box.clientHeight) / rowHeight) + AHEAD);
  const shift = box.scrollTop - top; // not 0 if the scroll bar is scaled
  const free = pool.filter((row) => row.index < first || row.index >= last);
  const there = new Map(pool.filter((row) => row.index >= first && row.index < last).map((row) => [row.index, row]));
  for (let index = first; index < last; index += 1) {
    let row = there.get(index);
    if (!row) {
      row = free.pop() ?? makeRow();
      if (!pool.includes(row)) pool.push(row);
      if (row.element.contains(document.activeElement)) box.focus({ preventScroll: true });
      row.index = index;
      fill(row);
    }
    row.element.style.transform = `translateY(${index * rowHeight + shift}px)`;
    row.element.hidden = false;
  }
  for (const row of free) {
    if (row.element.contains(document.activeElement)) box.focus({ preventScroll: true });
    row.element.hidden = true;
    row.index = -1;
  }
  drawn += 1;
  box.tabIndex = tileAt(state.active) ? -1 : 0;
  const now = performance.now(), screens = Math.abs(first - lastFirst) / Math.max(1, last - first);
  const fast = screens / Math.max(16, now - lastTime) > 0.004; // four screens a second
  lastFirst = first;
  lastTime = now;
  clearTimeout(settle);
  settle = setTimeout(() => fetchSeen(first, last), fast ? 120 : 20);
}

// Load what is visible first; a batch that is not full takes the screen below, then the one above.
function fetchSeen(first, last) {
  const seen = last - first;
  const part = (low, high) => Array.from(state.order.subarray(Math.max(0, low * columns), Math.max(0, high * columns)));
  want(part(first, last), [...part(last, last + seen), ...part(first - seen, first)]);
}

function fill(row) {
  row.element.setAttribute("aria-rowindex", String(row.index + 1));
  row.tiles.forEach((tile, column) => {
    const place = row.index * columns + column;
    tile.hidden = place >= state.order.length;
    if (tile.hidden) { delete tile.dataset.row; return; }
    tile.dataset.place = place;
    tile.setAttribute("aria-colindex", String(column + 1));
    const sample = state.order[place];
    if (tile.dataset.row !== String(sample)) { tile.dataset.row = sample; delete tile.dataset.drawn; }
    paint(tile, sample);
  });
}

// Show the outcome of a sample, whether it is highlighted, and whether it has the focus.
function paint(tile, sample) {
  const outcome = state.outcomes[sample], name = state.info.classes[state.y[sample]];
  const highlighted = state.highlighted.has(sample), active = Number(tile.dataset.place) === state.active;
  tile.className = `tile ${OUTCOME_CLASS[outcome]}${highlighted ? " is-highlighted" : ""}${active ? " is-active" : ""}`;
  tile.setAttribute("aria-selected", highlighted ? "true" : "false");
  tile.tabIndex = active ? 0 : -1;
  const heavy = outcome === SELECTED ? `×${weight(state.weights[sample])}` : "";
  let label = `Sample ${sample}, class ${name}, ${OUTCOME_TEXT[outcome]}${heavy ? `, weight ${weight(state.weights[sample])}` : ""}, entropy ${number(state.entropy[sample])}`;
  tile.querySelector(".name").textContent = name;
  if (isText()) {
    const [entropy, share] = tile.querySelectorAll(".cell-number");
    entropy.textContent = number(state.entropy[sample]);
    share.textContent = outcome === BY_HAND ? "✕ rejected" : heavy || (outcome === KEPT ? "kept" : "–");
    const content = contentOf(sample);
    if (content && tile.dataset.drawn !== "1") {
      tile.querySelector(".cells").replaceChildren(...content.cells.map((text) => make("span", { text })));
      tile.dataset.drawn = "1";
    } else if (!content) tile.querySelector(".cells").replaceChildren();
    if (content) label += `: ${content.cells.map((text, place) => (names[place] ? `${names[place]} ${text}` : text)).join(", ")}`;
  } else {
    tile.querySelector(".weight").textContent = heavy;
    const content = contentOf(sample), canvas = tile.querySelector("canvas");
    if (!content) { canvas.classList.add("is-empty"); delete tile.dataset.drawn; }
    else if (tile.dataset.drawn !== "1") { drawCell(canvas, content.sheet, content.place); canvas.classList.remove("is-empty"); tile.dataset.drawn = "1"; }
  }
  tile.setAttribute("aria-label", label);
}

export function repaint() {
  for (const row of pool) if (row.index >= 0) fill(row);
}

export const tileAt = (place) => sizer().querySelector(`.row:not([hidden]) .tile[data-place="${place}"]:not([hidden])`);

// Move the focus to a position, scrolling no more than needed.
export function goTo(place, { focus = true } = {}) {
  if (!state.order.length) return;
  state.active = Math.min(state.order.length - 1, Math.max(0, place));
  const box = grid(), low = Math.floor(state.active / columns) * rowHeight, top = topOf(box.scrollTop);
  if (low < top) scrollTo(low);
  else if (low + rowHeight > top + box.clientHeight) scrollTo(low + rowHeight - box.clientHeight);
  render();
  repaint();
  if (focus) tileAt(state.active)?.focus({ preventScroll: true });
}

function highlight(first, last, { only }) {
  if (only) state.highlighted.clear();
  for (let place = Math.min(first, last); place <= Math.max(first, last); place += 1) state.highlighted.add(state.order[place]);
  highlightChanged();
}

function toggle(place) {
  const sample = state.order[place];
  if (!state.highlighted.delete(sample)) state.highlighted.add(sample);
  anchor = place;
  highlightChanged();
}

export function highlightChanged() {
  const many = state.highlighted.size;
  find("highlighted-count").textContent = many ? `${count(many)} highlighted` : "";
  if (many) announce(`${count(many)} highlighted`);
  repaint();
}

function clicked(event) {
  const tile = event.target.closest(".tile");
  if (!tile) return;
  const place = Number(tile.dataset.place);
  if (event.target.closest(".play")) { goTo(place); emit("play"); return; }
  if (event.shiftKey) { highlight(anchor, place, { only: !(event.ctrlKey || event.metaKey) }); goTo(place); return; }
  if (event.ctrlKey || event.metaKey) { toggle(place); goTo(place); return; }
  anchor = place;
  if (state.highlighted.size) { state.highlighted.clear(); highlightChanged(); }
  goTo(place);
  emit("open");
}

function pressed(event) {
  if (event.altKey || !state.order.length) return;
  const page = Math.max(1, Math.floor(grid().clientHeight / rowHeight) - 1) * columns, all = state.order.length;
  const line = state.active - (state.active % columns), wide = event.ctrlKey || event.metaKey;
  const moves = {
    ArrowRight: state.active + 1, ArrowLeft: state.active - 1, ArrowDown: state.active + columns, ArrowUp: state.active - columns,
    PageDown: state.active + page, PageUp: state.active - page,
    Home: wide ? 0 : line, End: wide ? all - 1 : Math.min(all - 1, line + columns - 1),
  };
  if (event.key in moves) {
    event.preventDefault();
    const outside = moves[event.key] < 0 || moves[event.key] >= all;
    const place = outside && event.key.startsWith("Arrow") ? state.active : moves[event.key];
    goTo(place);
    if (event.shiftKey) highlight(anchor, state.active, { only: true });
    else anchor = state.active;
  } else if (event.key === "Enter") { event.preventDefault(); emit("open"); }
  else if (event.key === " ") { event.preventDefault(); toggle(state.active); }
  else if (wide && event.key === "a") { event.preventDefault(); highlight(0, all - 1, { only: true }); }
}

function showHead() {
  const head = find("text-head");
  head.hidden = !isText();
  if (!isText()) return;
  head.replaceChildren(...["", "class", "entropy", "weight"].map((text) => make("span", { text })), make("span", { class: "cells" }, ...(names.length ? names : ["sample"]).map((text) => make("span", { text }))));
  head.style.setProperty("--cells", String(Math.max(1, names.length)));
}

export function resize(by) {
  size = Math.min(SIZES.length - 1, Math.max(0, size + by));
  const place = state.active;
  layout();
  goTo(place, { focus: false });
}

export function startGrid() {
  if (matchMedia("(max-width: 700px)").matches) size = 1;
  if (state.info.form === "sound") size += 1;
  const box = grid();
  box.classList.add(`form-${state.info.form}`);
  find("sizes").hidden = isText();
  let waiting = false;
  box.addEventListener("scroll", () => {
    find("text-head").scrollLeft = box.scrollLeft;
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; render(); });
  }, { passive: true });
  box.addEventListener("click", clicked);
  box.addEventListener("keydown", pressed);
  find("smaller").addEventListener("click", () => resize(-1));
  find("larger").addEventListener("click", () => resize(1));
  let width = 0, heads = -1;
  new ResizeObserver(() => {
    if (!box.clientWidth || box.clientWidth === width) { if (box.clientWidth) render(); return; }
    width = box.clientWidth;
    layout();
  }).observe(box);
  onArrival(() => {
    if (isText() && heads !== names.length) { heads = names.length; showHead(); layout(); }
    repaint();
  });
  on("order", () => { anchor = 0; state.highlighted.clear(); highlightChanged(); layout({ top: 0 }); });
  on("order-kept", () => layout());
  on("selection", repaint);
}

// For benchmarks.
export const framesDrawn = () => drawn;
