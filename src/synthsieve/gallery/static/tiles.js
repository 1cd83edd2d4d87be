// What samples look like: fetched many at a time for what can be seen now, the last few thousand kept.

import { bitmap, json } from "./ask.js";
import { state } from "./state.js";
import { complain } from "./words.js";

const BATCH = 500; // decoding one costs the server as much as decoding so many
const MOST_SHEETS = 24; // bitmaps kept: some 50 MB of 32 x 32 pixels
const AT_ONCE = 2;

const looks = new Map(); // row -> { sheet, place } or { cells }
const batches = []; // oldest first: { rows, sheet }
const open = new Set(); // rows on their way
let busy = 0, wanted = [], later = [], arrived = () => {};

const isMissing = (row) => !looks.has(row) && !open.has(row);
export const lookOf = (row) => looks.get(row);
export let names = [];

// Rows that are in sight, and rows that may be soon; whoever asked before and was not served is forgotten.
export function want(seen, soon) {
  wanted = seen;
  later = soon;
  serve();
}

export function whenArrived(act) { arrived = act; }

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
    if (state.about.form === "lines") {
      const told = await json("lines", { rows: rows.join(",") });
      names = told.names;
      rows.forEach((row, place) => looks.set(row, { cells: told.cells[place] }));
      batches.push({ rows, sheet: null });
    } else {
      const sheet = await bitmap("sheet", { rows: rows.join(",") });
      rows.forEach((row, place) => looks.set(row, { sheet, place }));
      batches.push({ rows, sheet });
    }
    forget();
    arrived();
  } catch (error) {
    complain(error);
    await new Promise((go) => { setTimeout(go, 2000); });
  } finally {
    for (const row of rows) open.delete(row);
    busy -= 1;
    serve();
  }
}

function forget() {
  while (batches.length > MOST_SHEETS) {
    const { rows, sheet } = batches.shift();
    for (const row of rows) if (looks.get(row)?.sheet === sheet) looks.delete(row);
    sheet?.close();
  }
}

// Draw one cell of a sheet into a canvas of the sheet's own pixels.
export function drawCell(canvas, sheet, place) {
  const { height, width, columns } = state.about.tile;
  const across = Math.min(columns, Math.round(sheet.width / width));
  if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
  canvas.getContext("2d").drawImage(sheet, (place % across) * width, Math.floor(place / across) * height, width, height, 0, 0, width, height);
}
