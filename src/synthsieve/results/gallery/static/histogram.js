// Histogram of the entropies on a log scale: kept samples in colour, rejected ones in grey, and the ceiling.

import { state, KEPT, SELECTED } from "./state.js";
import { number } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const BINS = 90, WIDTH = 300, HEIGHT = 84;

function shape(tag, given) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(given)) element.setAttribute(name, value);
  return element;
}

// The scale shared by slider and histogram: from just below the lowest entropy to just above the highest.
export function scale() {
  const low = Math.log10(Math.max(state.info.lowest_entropy, 1e-16)) - 0.02;
  const high = Math.max(Math.log10(state.info.highest_entropy), low + 0.5) + 0.02;
  return {
    at: (value) => Math.min(1, Math.max(0, (Math.log10(Math.max(value, 1e-300)) - low) / (high - low))),
    value: (share) => 10 ** (low + share * (high - low)),
  };
}

let places = null;

function binned() {
  const { at } = scale();
  places ??= Uint8Array.from(state.entropy, (value) => Math.min(BINS - 1, Math.floor(at(value) * BINS)));
  const kept = new Uint32Array(BINS), rejected = new Uint32Array(BINS);
  const classes = state.filter.classes.length ? new Set(state.filter.classes) : null;
  for (let row = 0; row < places.length; row += 1) {
    if (classes && !classes.has(state.y[row])) continue;
    const outcome = state.outcomes[row];
    (outcome === KEPT || outcome === SELECTED ? kept : rejected)[places[row]] += 1;
  }
  return { kept, rejected };
}

export function drawHistogram(box, ceiling) {
  const { kept, rejected } = binned();
  const highest = Math.max(1, ...kept.map((value, bin) => value + rejected[bin]));
  const picture = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
  const all = kept.reduce((a, b) => a + b, 0), out = rejected.reduce((a, b) => a + b, 0);
  picture.setAttribute("aria-label", `Entropies on a log scale: ${all} kept, ${out} rejected${ceiling === null ? "" : `, ceiling ${number(ceiling)} nats`}`);
  const step = WIDTH / BINS;
  for (let bin = 0; bin < BINS; bin += 1) {
    const low = (HEIGHT * Math.sqrt(kept[bin] / highest)), both = HEIGHT * Math.sqrt((kept[bin] + rejected[bin]) / highest);
    const x = (bin * step).toFixed(2), width = (step - 0.4).toFixed(2);
    if (low > 0) picture.append(shape("rect", { x, width, y: (HEIGHT - low).toFixed(2), height: low.toFixed(2), class: "is-kept" }));
    if (both > low) picture.append(shape("rect", { x, width, y: (HEIGHT - both).toFixed(2), height: (both - low).toFixed(2), class: "is-rejected" }));
  }
  if (ceiling !== null) {
    const x = (scale().at(ceiling) * WIDTH).toFixed(2);
    picture.append(shape("line", { x1: x, x2: x, y1: 0, y2: HEIGHT, class: "is-ceiling" }));
  }
  box.replaceChildren(picture);
}
