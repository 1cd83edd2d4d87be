// Which samples are shown, in which order; the table of classes.

import { bytes, tab } from "./api.js";
import { filterParams, on, isFiltered, orderDependsOnSelection, state, emit } from "./state.js";
import { showError, count, find, make, percent, announce } from "./dom.js";

const STATUS = [["all", "all"], ["selected", "selected"], ["kept", "kept"], ["rejected", "rejected"], ["by_hand", "by hand"]];
const RANGES = ["lowest_entropy", "highest_entropy", "lowest_weight", "highest_weight"];

let latest = 0, controller = null;

// Load the rows that pass the filter; an older request is aborted.
export async function list({ keepPlace = false } = {}) {
  controller?.abort();
  controller = new AbortController();
  const request = (latest += 1);
  try {
    const given = { ...filterParams(), ...state.request, tab, sort: state.sort, descending: state.descending ? 1 : 0 };
    const content = await bytes("order", given, controller.signal);
    if (request !== latest) return;
    const row = state.order[state.active];
    state.order = new Uint32Array(content);
    find("filter-note").textContent = "";
    const same = keepPlace ? state.order.indexOf(row) : -1;
    state.active = same >= 0 ? same : keepPlace ? Math.min(state.active, Math.max(0, state.order.length - 1)) : 0;
    emit(keepPlace ? "order-kept" : "order");
    showCount();
  } catch (error) {
    if (error.name !== "AbortError") { find("filter-note").textContent = error.message; showError(error); }
  }
}

function showCount() {
  const shown = state.order.length, all = state.info.count;
  find("count").textContent = shown === all ? `${count(all)} samples` : `${count(shown)} of ${count(all)} samples`;
  find("empty").hidden = shown > 0;
  find("grid").hidden = shown === 0;
  find("reject-all").disabled = shown === 0;
}

function filterChanged() {
  find("clear-filters").hidden = !isFiltered();
  find("all-classes").hidden = !state.filter.classes.length;
  emit("filter");
  showClasses();
  list();
}

function clear() {
  state.filter = { ...state.filter, classes: [], status: "all", oracle: "all" };
  for (const name of RANGES) { state.filter[name] = ""; find(name).value = ""; }
  find("oracle").value = "all";
  document.querySelector('#status input[value="all"]').checked = true;
  filterChanged();
  announce("Filters cleared");
}

function toggleClass(index) {
  const now = new Set(state.filter.classes);
  if (now.has(index)) now.delete(index); else now.add(index);
  state.filter.classes = [...now].sort((a, b) => a - b);
  filterChanged();
}

let classRows = [];

function makeClasses() {
  classRows = state.info.classes.map((name, index) => {
    const button = make("button", { type: "button", class: "class", "aria-pressed": "false", text: name, title: `Show class ${name} alone, or with others`, onclick: () => toggleClass(index) });
    const bar = make("span", { class: "bar-fill" });
    const share = make("span", { class: "bar-text" });
    const purity = make("td", { class: "number" }), selected = make("td", { class: "number" });
    const row = make("tr", {}, make("th", { scope: "row" }, button), make("td", { class: "yield" }, make("span", { class: "bar-track", "aria-hidden": "true" }, bar), share), purity, selected);
    return { row, button, bar, share, purity, selected };
  });
  document.querySelector("#classes tbody").replaceChildren(...classRows.map(({ row }) => row));
}

function showClasses() {
  const { figures } = state;
  if (!figures) return;
  classRows.forEach(({ button, bar, share, purity, selected }, index) => {
    const part = figures.drawn_per_class[index] ? figures.kept_per_class[index] / figures.drawn_per_class[index] : 0;
    bar.style.width = `${100 * part}%`;
    share.textContent = `${Math.round(100 * part)} %`;
    purity.textContent = state.info.has_oracle ? percent(figures.purity_kept_per_class[index], 0) : "–";
    selected.textContent = count(figures.selected_per_class[index]);
    button.setAttribute("aria-pressed", state.filter.classes.includes(index) ? "true" : "false");
  });
}

export function startFilters() {
  makeClasses();
  find("status").append(...STATUS.map(([value, words]) => make("label", {},
    make("input", { type: "radio", name: "status", value, checked: value === "all", onchange: () => { state.filter.status = value; filterChanged(); } }),
    make("span", { text: words }))));
  find("oracle-pair").hidden = !state.info.has_oracle;
  find("oracle").addEventListener("change", (event) => { state.filter.oracle = event.target.value; filterChanged(); });
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
  on("figures", showClasses);
  on("selection", () => { if (orderDependsOnSelection()) list({ keepPlace: true }); });
}

function showDirection() {
  find("direction").textContent = state.descending ? "↓" : "↑";
  find("direction").setAttribute("aria-label", state.descending ? "Descending" : "Ascending");
}
