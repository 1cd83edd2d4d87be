// Marking samples as bad, and taking that back. Other tabs of this gallery hear of it.

import { change, tab } from "./ask.js";
import { refresh } from "./choice.js";
import { confirmed } from "./dialogs.js";
import { chosenChanged, goTo, repaint, tileAt } from "./grid.js";
import { BY_HAND, filterGiven, state, tell, wishGiven } from "./state.js";
import { complain, count, find, say } from "./words.js";

const MOST = 20_000; // rows told one by one
const others = "BroadcastChannel" in window ? new BroadcastChannel("synthsieve-marks") : null;

const asText = (given) => Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null && value !== "").map(([name, value]) => [name, String(value)]));

async function changed(sentence) {
  say(sentence);
  others?.postMessage(sentence);
  await refresh();
  tell("marked");
}

// Mark rows, or take their marks back where all of them have one.
export async function markRows(rows) {
  if (!rows.length) return;
  if (rows.length > MOST) { complain(new Error(`Up to ${count(MOST)} samples can be marked one by one: filter them and use "Mark all shown".`)); return; }
  const bad = !rows.every((row) => state.states[row] === BY_HAND);
  try {
    const told = await change("mark", { rows, bad });
    if (bad) for (const row of rows) state.states[row] = BY_HAND;
    repaint();
    await changed(`${count(told.changed)} ${bad ? "marked as bad" : "no longer marked"}`);
  } catch (error) { complain(error); }
}

export async function markChosen() {
  const rows = state.chosen.size ? [...state.chosen] : state.order.length ? [state.order[state.active]] : [];
  const inGrid = find("grid").contains(document.activeElement);
  await markRows(rows);
  if (state.chosen.size) { state.chosen.clear(); chosenChanged(); }
  if (inGrid && !tileAt(state.active)?.contains(document.activeElement)) goTo(state.active);
}

export async function markShown() {
  const many = state.order.length;
  if (!many || !(await confirmed(`Mark ${count(many)} samples as bad?`, "All samples that the filters let through now are rejected by hand, at once. Undo takes it back.", `Mark ${count(many)}`))) return;
  try {
    const told = await change("mark", { filter: asText(filterGiven()), choice: asText({ ...wishGiven(), tab }), bad: true });
    await changed(`${count(told.changed)} marked as bad`);
  } catch (error) { complain(error); }
}

export async function undo() {
  try {
    const told = await change("undo", {});
    await changed(`Taken back: ${count(told.changed)} samples`);
  } catch (error) { complain(error); }
}

export function startMarking() {
  find("mark").addEventListener("click", markChosen);
  find("mark-all").addEventListener("click", markShown);
  find("undo").addEventListener("click", undo);
  others?.addEventListener("message", () => refresh());
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
}
