// Rejecting samples by hand, and restoring them. Other tabs of this gallery are notified.

import { asText, post, tab } from "./api.js";
import { confirmed } from "./dialogs.js";
import { announce, count, find, showError } from "./dom.js";
import { goTo, highlightChanged, repaint, tileAt } from "./grid.js";
import { refresh } from "./selection.js";
import { BY_HAND, filterParams, state } from "./state.js";

const MAX_ROWS = 20_000; // in one request
const otherTabs = "BroadcastChannel" in window ? new BroadcastChannel("synthsieve-rejections") : null;

async function changed(message) {
  announce(message);
  otherTabs?.postMessage(message);
  await refresh();
}

// Reject rows, or restore them if all of them are rejected.
export async function rejectRows(rows) {
  if (!rows.length) return;
  if (rows.length > MAX_ROWS) { showError(new Error(`At most ${count(MAX_ROWS)} samples can be rejected at once: filter them and use "Reject all shown".`)); return; }
  const rejected = !rows.every((row) => state.outcomes[row] === BY_HAND);
  try {
    const result = await post("reject", { rows, rejected });
    if (rejected) for (const row of rows) state.outcomes[row] = BY_HAND;
    repaint();
    await changed(`${count(result.changed)} ${rejected ? "rejected" : "restored"}`);
  } catch (error) { showError(error); }
}

export async function rejectHighlighted() {
  const rows = state.highlighted.size ? [...state.highlighted] : state.order.length ? [state.order[state.active]] : [];
  const inGrid = find("grid").contains(document.activeElement);
  await rejectRows(rows);
  if (state.highlighted.size) { state.highlighted.clear(); highlightChanged(); }
  if (inGrid && !tileAt(state.active)?.contains(document.activeElement)) goTo(state.active);
}

export async function rejectShown() {
  const many = count(state.order.length);
  if (!state.order.length || !(await confirmed(`Reject ${many} samples?`, "All samples that pass the current filters are rejected by hand. You can undo this.", `Reject ${many}`))) return;
  try {
    const result = await post("reject", { filter: asText(filterParams()), selection: asText({ ...state.request, tab }), rejected: true });
    await changed(`${count(result.changed)} rejected`);
  } catch (error) { showError(error); }
}

export async function undo() {
  try {
    const result = await post("undo", {});
    await changed(`Undone: ${count(result.changed)} samples`);
  } catch (error) { showError(error); }
}

export function startRejections() {
  find("reject").addEventListener("click", rejectHighlighted);
  find("reject-all").addEventListener("click", rejectShown);
  find("undo").addEventListener("click", undo);
  otherTabs?.addEventListener("message", () => refresh());
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
}
