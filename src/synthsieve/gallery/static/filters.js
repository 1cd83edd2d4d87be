// What is shown and in which order; the classes with their yield, purity and picks.

import { bytes, tab } from "./ask.js";
import { filterGiven, hear, isFiltered, orderFollowsChoice, state, tell, wishGiven } from "./state.js";
import { complain, count, find, make, percent, say } from "./words.js";

const STATUS = [["all", "all"], ["selected", "selected"], ["kept", "kept"], ["rejected", "rejected"], ["marked", "marked"]];
const RANGES = ["lowest_entropy", "highest_entropy", "lowest_weight", "highest_weight"];

let asked = 0, aborting = null;

// Ask for the rows that pass the filter; an older question that is still open is given up.
export async function list({ keepPlace = false } = {}) {
  aborting?.abort();
  aborting = new AbortController();
  const mine = (asked += 1);
  try {
    const given = { ...filterGiven(), ...wishGiven(), tab, sort: state.sort, descending: state.descending ? 1 : 0 };
    const content = await bytes("order", given, aborting.signal);
    if (mine !== asked) return;
    const row = state.order[state.active];
    state.order = new Uint32Array(content);
    find("filter-note").textContent = "";
    const same = keepPlace ? state.order.indexOf(row) : -1;
    state.active = same >= 0 ? same : keepPlace ? Math.min(state.active, Math.max(0, state.order.length - 1)) : 0;
    tell(keepPlace ? "order-kept" : "order");
    showCount();
  } catch (error) {
    if (error.name !== "AbortError") { find("filter-note").textContent = error.message; complain(error); }
  }
}

function showCount() {
  const shown = state.order.length, all = state.about.count;
  find("count").textContent = shown === all ? `${count(all)} samples` : `${count(shown)} of ${count(all)} samples`;
  find("empty").hidden = shown > 0;
  find("grid").hidden = shown === 0;
  find("mark-all").disabled = shown === 0;
}

function filterChanged() {
  find("clear-filters").hidden = !isFiltered();
  find("all-classes").hidden = !state.filter.classes.length;
  tell("filter");
  showClasses();
  list();
}

function clear() {
  state.filter = { ...state.filter, classes: [], status: "all", judge: "all" };
  for (const name of RANGES) { state.filter[name] = ""; find(name).value = ""; }
  find("judge").value = "all";
  document.querySelector('#status input[value="all"]').checked = true;
  filterChanged();
  say("Filters cleared");
}

function toggleClass(index) {
  const now = new Set(state.filter.classes);
  if (now.has(index)) now.delete(index); else now.add(index);
  state.filter.classes = [...now].sort((a, b) => a - b);
  filterChanged();
}

let classRows = [];

function makeClasses() {
  classRows = state.about.classes.map((name, index) => {
    const button = make("button", { type: "button", class: "class", "aria-pressed": "false", text: name, title: `Show class ${name} alone, or with others`, onclick: () => toggleClass(index) });
    const bar = make("span", { class: "bar-fill" });
    const share = make("span", { class: "bar-text" });
    const purity = make("td", { class: "number" }), picks = make("td", { class: "number" });
    const row = make("tr", {}, make("th", { scope: "row" }, button), make("td", { class: "yield" }, make("span", { class: "bar-track", "aria-hidden": "true" }, bar), share), purity, picks);
    return { row, button, bar, share, purity, picks };
  });
  document.querySelector("#classes tbody").replaceChildren(...classRows.map(({ row }) => row));
}

function showClasses() {
  const told = state.figures;
  if (!told) return;
  classRows.forEach(({ button, bar, share, purity, picks }, index) => {
    const part = told.drawn_per_class[index] ? told.kept_per_class[index] / told.drawn_per_class[index] : 0;
    bar.style.width = `${100 * part}%`;
    share.textContent = `${Math.round(100 * part)} %`;
    purity.textContent = state.about.judge ? percent(told.purity_kept_per_class[index], 0) : "–";
    picks.textContent = count(told.selected_per_class[index]);
    button.setAttribute("aria-pressed", state.filter.classes.includes(index) ? "true" : "false");
  });
}

export function startFilters() {
  makeClasses();
  find("status").append(...STATUS.map(([value, words]) => make("label", {},
    make("input", { type: "radio", name: "status", value, checked: value === "all", onchange: () => { state.filter.status = value; filterChanged(); } }),
    make("span", { text: words }))));
  find("judge-pair").hidden = !state.about.judge;
  find("judge").addEventListener("change", (event) => { state.filter.judge = event.target.value; filterChanged(); });
  for (const name of RANGES) {
    find(name).addEventListener("change", (event) => { state.filter[name] = event.target.value.trim(); filterChanged(); });
  }
  find("sort").addEventListener("change", (event) => {
    state.sort = event.target.value;
    state.descending = state.sort === "weight" || state.sort === "log_density";
    showDirection();
    list();
  });
  find("direction").addEventListener("click", () => { state.descending = !state.descending; showDirection(); list(); });
  find("clear-filters").addEventListener("click", () => { clear(); find("status").querySelector("input:checked").focus(); });
  find("empty-clear").addEventListener("click", () => { clear(); });
  find("all-classes").addEventListener("click", () => { state.filter.classes = []; filterChanged(); classRows[0].button.focus(); });
  hear("figures", showClasses);
  hear("choice", () => { if (orderFollowsChoice()) list({ keepPlace: true }); });
}

function showDirection() {
  find("direction").textContent = state.descending ? "↓" : "↑";
  find("direction").setAttribute("aria-label", state.descending ? "Descending" : "Ascending");
}
