// Loads the content of tiles in batches, visible ones first, and caches the last few thousand.

import { bitmap, json } from "./api.js";
import { state } from "./state.js";
import { showError } from "./dom.js";

const BATCH = 500; // samples; the server needs about as long for one
const MAX_SHEETS = 24; // bitmaps kept: some 50 MB of 32 x 32 pixels
const AT_ONCE = 2;

const contents = new Map(); // row -> { sheet, place } or { cells }
const batches = []; // oldest first: { rows, sheet }
const open = new Set(); // rows on their way
let busy = 0, wanted = [], later = [], arrived = () => {};

const isMissing = (row) => !contents.has(row) && !open.has(row);
export const contentOf = (row) => contents.get(row);
export let names = [];

// Request visible rows, and rows that may be visible soon; earlier requests that were not served are dropped.
export function want(seen, soon) {
  wanted = seen;
  later = soon;
  serve();
}

export function onArrival(act) { arrived = act; }

function serve() {
  while (busy < AT_ONCE) {
    const missing = wanted.filter(isMissing).slice(0, BATCH);
    if (!missing.length) { if (busy) return; later = later.filter(isMissing); if (later.length < BATCH / 4) return; }
    const soon = later.filter(isMissing).slice(0, BATCH - missing.length);
    if (!missing.length && !soon.length) return;
    fetchBatch([...missing, ...soon]);
  }
}

async function fetchBatch(rows) {
  busy += 1;
  for (const row of rows) open.add(row);
  try {
    if (state.info.form === "text") {
      const text = await json("text", { rows: rows.join(",") });
      names = text.names;
      rows.forEach((row, place) => contents.set(row, { cells: text.cells[place] }));
      batches.push({ rows, sheet: null });
    } else {
      const sheet = await bitmap("sheet", { rows: rows.join(",") });
      rows.forEach((row, place) => contents.set(row, { sheet, place }));
      batches.push({ rows, sheet });
    }
    forget();
    arrived();
  } catch (error) {
    showError(error);
    await new Promise((go) => { setTimeout(go, 2000); });
  } finally {
    for (const row of rows) open.delete(row);
    busy -= 1;
    serve();
  }
}

function forget() {
  while (batches.length > MAX_SHEETS) {
    const { rows, sheet } = batches.shift();
    for (const row of rows) if (contents.get(row)?.sheet === sheet) contents.delete(row);
    sheet?.close();
  }
}

// Draw one cell of a sheet into a canvas, pixel by pixel.
export function drawCell(canvas, sheet, place) {
  const { height, width, columns } = state.info.tile;
  const across = Math.min(columns, Math.round(sheet.width / width));
  if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
  canvas.getContext("2d").drawImage(sheet, (place % across) * width, Math.floor(place / across) * height, width, height, 0, 0, width, height);
}
