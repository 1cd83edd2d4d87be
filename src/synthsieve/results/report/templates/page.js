// Nothing here is needed to read the page: it adds values under the pointer, sorting, and a ceiling that can be moved.
"use strict";
(() => {
  // Values: what a mark's <title> says, at once and near the pointer.
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("aria-hidden", "true");
  let held = null;
  const release = () => {
    if (held) held.title.textContent = held.text;
    held = null;
    tip.remove();
  };
  document.addEventListener("pointerover", (event) => {
    const mark = event.target.closest && event.target.closest(".chart .mark");
    if (held && held.mark === mark) return;
    release();
    const title = mark && mark.querySelector("title");
    if (!title || !title.textContent) return;
    held = { mark, title, text: title.textContent };
    title.textContent = ""; // or the browser would show it a second time
    tip.textContent = held.text;
    document.body.append(tip);
  });
  document.addEventListener("pointermove", (event) => {
    if (!held) return;
    const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
    const below = event.clientY + 18;
    const top = below + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : below;
    tip.style.left = Math.max(8, left) + "px";
    tip.style.top = top + "px";
  });
  document.addEventListener("pointerleave", release);
  addEventListener("scroll", release, { passive: true });

  // Sorting: within each group of rows, by the number behind a cell or by its words.
  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
  };
  const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b));
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "descending" || !head.classList.contains("number");
        const order = head.getAttribute("aria-sort") === "ascending" ? "descending" : down ? "ascending" : "descending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", order);
        for (const body of table.tBodies) {
          const rows = [...body.rows].filter((row) => !row.classList.contains("group"));
          rows.sort((a, b) => compare(value(a, column), value(b, column)) * (order === "ascending" ? 1 : -1));
          body.append(...rows);
        }
      });
    });
  }

  // The ceiling: a slider over the entropies shown, even on a log scale.
  const form = document.querySelector("form.ceiling");
  const samples = [...document.querySelectorAll(".sample[data-entropy]")];
  if (form && samples.length) {
    const slider = form.querySelector("input");
    const output = form.querySelector("output");
    const entropy = (sample) => Math.max(Number(sample.dataset.entropy), 1e-300);
    const found = samples.map(entropy);
    const [lowest, highest] = [Math.log(Math.min(...found)), Math.log(Math.max(...found))];
    const rim = 0.03 * (highest - lowest) + 0.001;
    const [low, high] = [lowest - rim, highest + rim];
    const ceiling = () => Math.exp(low + (slider.value / 1000) * (high - low));
    const written = (number) => (number < 1e-4 ? number.toExponential(1) : String(Number(number.toPrecision(3))));
    const draw = () => {
      const limit = ceiling();
      let below = 0;
      for (const sample of samples) {
        const above = entropy(sample) >= limit;
        sample.classList.toggle("above", above);
        below += above ? 0 : 1;
      }
      slider.setAttribute("aria-valuetext", written(limit) + " nats");
      output.textContent = below + " of the " + samples.length + " shown lie below " + written(limit) + " nats";
    };
    form.addEventListener("submit", (event) => event.preventDefault());
    slider.addEventListener("input", draw);
    form.hidden = false;
  }

  // Paper has no folds.
  const folded = [];
  addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details:not([open])")) {
      fold.open = true;
      folded.push(fold);
    }
  });
  addEventListener("afterprint", () => {
    while (folded.length) folded.pop().open = false;
  });
})();
