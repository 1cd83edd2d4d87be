// The state of the page. Modules change it and notify the others by events.

export const KEPT = 0, BY_HAND = 3, SELECTED = 4;
export const OUTCOME_TEXT = ["kept, not selected", "rejected: entropy", "rejected: another class", "rejected by hand", "selected"];

export const state = {
  info: null,
  y: null, entropy: null, // a number for each sample
  outcomes: null, weights: null, // of the current selection
  figures: null,
  order: new Uint32Array(0), // rows as they are shown
  request: { entropy_ceiling: null, keep_fraction: null, budget: null }, // null: as in training
  filter: { classes: [], status: "all", oracle: "all", lowest_entropy: "", highest_entropy: "", lowest_weight: "", highest_weight: "" },
  sort: "entropy_by_class", descending: false,
  highlighted: new Set(), // rows to be rejected together
  active: 0, // position in the order that has the focus
};

const events = new EventTarget();
export const emit = (name) => events.dispatchEvent(new Event(name));
export const on = (name, act) => events.addEventListener(name, act);

export const filterParams = () => ({ ...state.filter, classes: state.filter.classes.join(",") });

// Whether the rows shown depend on the selection.
export function orderDependsOnSelection() {
  const { status, lowest_weight, highest_weight } = state.filter;
  return status !== "all" || lowest_weight !== "" || highest_weight !== "" || state.sort === "weight" || state.sort === "rank";
}

export const isFiltered = () => Object.values(filterParams()).some((value) => value !== "" && value !== "all");
