// Tables that can be sorted and filtered. The page says everything without it.
(() => {
  "use strict";
  const ENOUGH_ROWS = 12;

  const rank = (cell) => {
    if (cell.classList.contains("unknown") || cell.textContent === "—") return null;
    if (!cell.classList.contains("number")) return cell.textContent.trim().toLowerCase();
    const number = Number.parseFloat(cell.dataset.rank ?? cell.textContent.replaceAll(/[<>≤≥,]/g, ""));
    return Number.isNaN(number) ? null : number;
  };

  // What is unknown stands last, whichever way the rest is sorted.
  const order = (one, other, down) => {
    if (one === other) return 0;
    if (one === null) return 1;
    if (other === null) return -1;
    const up = typeof one === "string" ? one.localeCompare(other, "en", { numeric: true }) : one - other;
    return down ? -up : up;
  };

  const sort = (table, heading, index) => {
    const isNumber = heading.classList.contains("number");
    const before = heading.getAttribute("aria-sort");
    const down = before ? before === "ascending" : isNumber;
    for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [rank(row.cells[index]), row]);
    rows.sort((one, other) => order(one[0], other[0], down));
    body.append(...rows.map((each) => each[1]));
  };

  const makeSortable = (table) => {
    const headings = table.tHead.rows[table.tHead.rows.length - 1].cells;
    [...headings].forEach((heading, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sort(table, heading, index));
      heading.append(button);
    });
  };

  const makeFilter = (table) => {
    const scroll = table.closest(".scroll");
    const name = scroll.getAttribute("aria-label") ?? document.getElementById(scroll.getAttribute("aria-labelledby")).textContent;
    const [box, label, field, told] = ["p", "label", "input", "output"].map((tag) => document.createElement(tag));
    box.className = "filter";
    field.type = "search";
    field.setAttribute("aria-label", `Filter ${name}`);
    label.append("Filter rows ", field);
    box.append(label, told);
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      told.textContent = words.length ? ` ${shown} of ${table.tBodies[0].rows.length}` : "";
    });
    scroll.before(box);
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    if (table.tBodies[0].rows.length > 1) makeSortable(table);
    if (table.tBodies[0].rows.length >= ENOUGH_ROWS) makeFilter(table);
  }
})();
