// What the page knows. Parts change it and tell the others by an event's name.

export const KEPT = 0, HIGH_ENTROPY = 1, OTHER_LABEL = 2, BY_HAND = 3, SELECTED = 4;
export const STATE_WORDS = ["kept, not selected", "rejected: entropy", "rejected: another class", "marked as bad", "selected"];

export const state = {
  about: null,
  y: null, judge: null, entropy: null, // a number a sample
  states: null, weights: null, // of the choice of now
  figures: null,
  order: new Uint32Array(0), // rows as they are shown
  wish: { ceiling: null, keep: null, budget: null }, // null: as training had it
  filter: { classes: [], status: "all", judge: "all", lowest_entropy: "", highest_entropy: "", lowest_weight: "", highest_weight: "" },
  sort: "entropy_by_class", descending: false,
  chosen: new Set(), // rows picked out by hand, to be marked together
  active: 0, // place in the order that has the focus
};

const told = new EventTarget();
export const tell = (name) => told.dispatchEvent(new Event(name));
export const hear = (name, act) => told.addEventListener(name, act);

export const wishGiven = () => ({ ...state.wish });

export function filterGiven() {
  return { ...state.filter, classes: state.filter.classes.join(",") };
}

// Whether the rows shown depend on who was picked.
export function orderFollowsChoice() {
  const { status, lowest_weight, highest_weight } = state.filter;
  return status !== "all" || lowest_weight !== "" || highest_weight !== "" || state.sort === "weight" || state.sort === "rank";
}

export const isFiltered = () => Object.entries(filterGiven()).some(([, value]) => value !== "" && value !== "all");
