// A table that draws only the rows in sight: search, filters, sorting, groups, export; a row opens its details.
const ROW_HEIGHT = 32;
const gridsByName = new Map();

// Which rows of a text column match is decided once for each of its words.
const matching = (column, test) => {
  const words = column.words.map(test);
  return (row) => column.values[row] !== null && words[column.values[row]];
};
const has = (word) => (text) => text.toLowerCase().includes(word);

// A name in quotes is whole: "node-1" is not node-10.
const wordsOf = (text) => text.match(/"[^"]+"|\S+/g) ?? [];
const searched = (word) => {
  const name = /^"(.+)"$/.exec(word)?.[1];
  return name ? (text) => text.toLowerCase().split(/[\s,;()]+|[.:](?=\s|$)/).includes(name) : has(word);
};

// A number as cells show it: 1,234.5 or 2 h 30 min; NaN for anything else.
const UNITS = { d: 86400, h: 3600, min: 60, kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30, tib: 2 ** 40 };
const amountOf = (text) => {
  const plain = text.replace(/,(?=\d{3}(?!\d))|[$€£¥≥]/g, "");
  const parts = [...plain.matchAll(/(-?\d*\.?\d+)\s*([^\d\s.,-]*)/g)];
  const isAll = parts.length && !parts.reduce((rest, [part]) => rest.replace(part, ""), plain).trim();
  return isAll ? parts.reduce((sum, [, number, unit]) => sum + Number(number) * (UNITS[unit.toLowerCase()] ?? 1), 0) : NaN;
};

// "> 10", "10 .. 20", or "10" for what is shown as 10; null for what is none of these.
const numberTest = (text) => {
  const [, sign, first, last] = /^\s*(>=|<=|[><=≥≤])?(.*?)(?:\.\.(.*))?$/s.exec(text);
  const low = amountOf(first), high = amountOf(last ?? first);
  if (Number.isNaN(low + high)) return null;
  if (last !== undefined) return (found) => found >= low && found <= high;
  const isOver = (found) => found > low, isUnder = (found) => found < low;
  return { ">": isOver, "<": isUnder, ">=": (found) => !isUnder(found), "≥": (found) => !isUnder(found), "<=": (found) => !isOver(found), "≤": (found) => !isOver(found) }[sign] ?? ((_, written) => amountOf(written()) === low);
};

// Names by the numbers in them: GPU 2 is before GPU 10.
const NAMES = new Intl.Collator("en", { numeric: true });
const ranked = (column) => {
  const order = column.words.map((_, word) => word).sort((one, other) => NAMES.compare(column.words[one], column.words[other]));
  column.ranks ??= order.reduce((ranks, word, rank) => { ranks[word] = rank; return ranks; }, []);
  return (row) => (column.values[row] === null ? null : column.ranks[column.values[row]]);
};

class Grid {
  constructor(section, data) {
    this.section = section;
    this.name = section.id;
    this.all = data.columns;
    this.count = data.rows;
    this.groups = data.groups;
    this.trend = data.trend;
    this.columns = data.columns.filter((column) => !column.hidden);
    this.words = "";
    this.filters = new Map();
    this.isFiltering = false;
    this.sorted = null;
    this.group = "";
    this.scroll = section.querySelector(".scroll");
    this.table = section.querySelector("table");
    this.makeTools();
    this.makeHead();
    this.scroll.addEventListener("scroll", () => requestAnimationFrame(() => this.draw()), { passive: true });
    this.apply();
  }

  makeTools() {
    this.field = make("input", { type: "search", placeholder: `Search ${grouped(this.count, 0)} row${this.count === 1 ? "" : "s"}`, "aria-label": `Search ${this.title}`, oninput: () => this.search(this.field.value) });
    this.summary = make("output", { class: "summary", "aria-live": "polite" });
    this.chips = make("span");
    const tools = make("div", { class: "tools" }, this.field, this.chips);
    if (this.groups.length && this.count > 1) tools.append(this.groupChooser());
    this.opener = make("button", { type: "button", "aria-expanded": "false", onclick: () => this.toggleFilters() }, "Filter columns");
    if (this.count > 1) tools.append(this.opener);
    tools.append(make("button", { type: "button", onclick: () => this.save() }, "Export CSV"), this.summary);
    this.scroll.before(tools);
  }

  groupChooser() {
    const options = this.groups.filter((name) => this.column(name)).map((name) => make("option", { value: name }, `Group by ${this.column(name).title.toLowerCase()}`));
    return make("select", { "aria-label": "Group rows", onchange: (event) => { this.group = event.currentTarget.value; this.makeHead(); this.apply(); } }, make("option", { value: "" }, "No groups"), ...options);
  }

  get title() { return this.section.querySelector("h3").firstChild.textContent.trim(); }
  column(name) { return this.all.find((column) => column.name === name); }

  // Widths are fixed by what the column can hold, so that nothing moves while rows come and go.
  makeHead() {
    this.shown = this.group ? this.groupColumns() : this.columns;
    const widths = this.shown.map((column) => {
      const longest = isText(column) ? column.words.reduce((most, word) => Math.max(most, word.length), 0) : ["kwh", "joules", "duration"].includes(column.kind) ? 11 : 7;
      return Math.min(column.kind === "long" ? 44 : 30, Math.max(longest, Math.min(column.title.length, 12)) + 3);
    });
    const group = make("colgroup", {}, ...widths.map((width) => make("col", { style: `width:${width}ch` })));
    const heads = this.shown.map((column) => {
      const way = this.sorted?.column !== column ? "none" : this.sorted.isDown ? "descending" : "ascending";
      const cell = make("th", { scope: "col", "aria-sort": way, title: column.doc || null, class: isNumeric(column) ? "number" : null });
      cell.append(make("button", { type: "button", onclick: () => this.sort(column, cell) }, column.title));
      return cell;
    });
    const head = make("thead", {}, make("tr", {}, ...heads));
    this.heads = heads;
    this.table.querySelector("colgroup")?.remove();
    this.table.classList.add("virtual");
    this.table.style.minWidth = `${widths.reduce((one, other) => one + other, 0)}ch`;
    this.table.tHead.replaceWith(head);
    head.before(group);
    this.opener.hidden = Boolean(this.group);
    if (this.hasFields) head.append(this.filterFields());
  }

  groupColumns() {
    const by = this.column(this.group);
    return [by, { name: "", title: "Rows", kind: "number", total: "count" }, ...this.columns.filter((column) => column.total && column !== by)];
  }

  get hasFields() { return this.isFiltering && !this.group; }

  toggleFilters() {
    this.isFiltering = !this.isFiltering;
    this.opener.setAttribute("aria-expanded", String(this.isFiltering));
    if (!this.isFiltering) this.filters.clear();
    this.makeHead();
    this.apply();
  }

  filterFields() {
    const cells = this.columns.map((column) => make("td", {}, make("input", {
      "aria-label": `Filter ${column.title}`, placeholder: isText(column) ? "text" : column.kind === "share" ? "> 50" : "> 10",
      value: this.filters.get(column.name)?.text ?? null,
      oninput: ({ currentTarget: field }) => {
        field.setAttribute("aria-invalid", String(!isText(column) && /\w/.test(field.value) && !numberTest(field.value)));
        this.filter(column.name, field.value);
      },
    })));
    return make("tr", { class: "filters" }, ...cells);
  }

  filter(name, text, isExact = false) {
    if (text || isExact) this.filters.set(name, { text, isExact }); else this.filters.delete(name);
    this.apply();
  }

  // Only the rows that an address names, whatever was chosen before.
  narrow(filters, words) {
    this.filters = filters;
    this.ungroup();
    this.search(words);
  }

  ungroup() {
    this.group = "";
    const chooser = this.section.querySelector("select");
    if (chooser) chooser.value = "";
    this.makeHead();
  }

  search(words) { this.words = words.trim().toLowerCase(); if (this.field.value.trim().toLowerCase() !== this.words) this.field.value = words; this.apply(); }

  tests() {
    const texts = this.all.filter(isText);
    const found = wordsOf(this.words).map((word) => {
      const each = texts.map((column) => matching(column, searched(word)));
      return (row) => each.some((test) => test(row));
    });
    for (const [name, { text, isExact }] of this.filters) {
      const column = this.column(name);
      if (!column) continue;
      if (isExact && !text) { found.push((row) => !raw(column, row)); continue; }
      if (isText(column)) { found.push(matching(column, isExact ? (word) => word === text : has(text.toLowerCase()))); continue; }
      const test = numberTest(text), factor = { share: 100, joules: 1 / 3.6e6 }[column.kind] ?? 1; // as it is written
      if (test) found.push((row) => column.values[row] !== null && test(factor * column.values[row], () => written(column, row)));
      else if (/\w/.test(text)) found.push(() => false);
    }
    return found;
  }

  apply() {
    const tests = this.tests();
    const rows = [];
    for (let row = 0; row < this.count; row += 1) if (tests.every((test) => test(row))) rows.push(row);
    this.rows = rows;
    this.items = this.group ? this.groupRows(rows) : rows;
    if (this.sorted) this.order();
    this.scroll.scrollTop = 0;
    this.showCount();
    this.draw(true);
  }

  showCount() {
    const what = this.group ? `${grouped(this.items.length, 0)} groups of ` : "";
    this.summary.textContent = this.rows.length === this.count && !what ? "" : `${what}${grouped(this.rows.length, 0)} of ${grouped(this.count, 0)} rows`;
    const hidden = [...this.filters].filter(([, each]) => each.isExact || !this.hasFields);
    this.chips.replaceChildren(...hidden.map(([name, { text }]) => make("button", { type: "button", class: "chip", "aria-label": `Remove filter ${text}`, onclick: () => { this.filter(name, ""); this.makeHead(); } }, `${this.column(name)?.title ?? name}: ${text || UNKNOWN} ×`)));
  }

  groupRows(rows) {
    const by = this.column(this.group);
    const weight = this.column("allocated_gpu_hours") ?? this.column("gpu_hours");
    const groups = new Map();
    for (const row of rows) {
      const key = by.values[row] ?? -1;
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(row);
    }
    return [...groups].map(([key, members]) => ({ key, cells: this.shown.map((column) => this.totalOf(column, by, key, members, weight)), members }));
  }

  totalOf(column, by, key, members, weight) {
    if (column === by) return key < 0 ? null : by.words[key];
    if (column.total === "count") return members.length;
    let sum = 0, whole = 0, most = null;
    // The value of an instance is a part of its board's.
    const gpuOf = (row) => raw(this.column("device_uuid"), row), isBoard = (row) => !raw(this.column("gpu_instance_id"), row);
    const isOfBoards = column.total === "mean" && this.trend === "device";
    const boards = new Set(isOfBoards ? members.filter((row) => isBoard(row) && column.values[row] !== null).map(gpuOf) : []);
    for (const row of members) {
      const found = column.values[row];
      if (found === null || (boards.size && !isBoard(row) && boards.has(gpuOf(row)))) continue;
      const part = column.total === "mean" ? (weight ? weight.values[row] ?? 0 : 1) : 1;
      sum += found * part; whole += part; most = most === null ? found : Math.max(most, found);
    }
    if (most === null) return null;
    return column.total === "max" ? most : column.total === "mean" ? (whole ? sum / whole : null) : sum;
  }

  sort(column, head) {
    const before = head.getAttribute("aria-sort");
    const isDown = before === "none" ? isNumeric(column) : before === "ascending";
    for (const each of this.heads) each.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
    this.sorted = { column, isDown };
    this.order();
    this.scroll.scrollTop = 0;
    this.draw(true);
  }

  // What is unknown is last, whichever way the rest is sorted.
  order() {
    const { column, isDown } = this.sorted;
    const index = this.shown.indexOf(column);
    if (index < 0) return;
    const way = isDown ? -1 : 1;
    const at = this.group ? (item) => item.cells[index] : isText(column) ? ranked(column) : (row) => column.values[row];
    this.items = [...this.items].sort((one, other) => {
      const first = at(one), second = at(other);
      if (first === second) return 0;
      if (first === null) return 1;
      if (second === null) return -1;
      return (typeof first === "string" ? NAMES.compare(first, second) : first - second) * way;
    });
  }

  draw(isNew = false) {
    const from = Math.max(0, Math.floor(this.scroll.scrollTop / ROW_HEIGHT) - 6);
    const count = Math.ceil((this.scroll.clientHeight || 640) / ROW_HEIGHT) + 14;
    if (!isNew && this.from === from) return;
    this.from = from;
    const to = Math.min(this.items.length, from + count);
    const body = make("tbody");
    const gap = (rows) => (rows > 0 ? [make("tr", { class: "gap", "aria-hidden": "true" }, make("td", { colspan: this.shown.length, style: `height:${rows * ROW_HEIGHT}px` }))] : []);
    body.append(...gap(from));
    for (let position = from; position < to; position += 1) body.append(this.group ? this.groupRow(this.items[position]) : this.row(this.items[position], position));
    body.append(...gap(this.items.length - to));
    if (!this.items.length) body.append(make("tr", {}, make("td", { colspan: this.shown.length }, "No row matches.")));
    const kept = document.activeElement?.dataset?.position;
    const hadFocus = this.table.tBodies[0].contains(document.activeElement);
    this.table.tBodies[0].replaceWith(body);
    this.table.setAttribute("aria-rowcount", this.items.length + 1);
    if (hadFocus) body.querySelector(`[data-position="${kept}"]`)?.focus({ preventScroll: true });
  }

  row(row, position) {
    const cells = this.shown.map((column) => {
      const text = written(column, row);
      const css = column.kind === "severity" ? `severity ${text}` : isNumeric(column) ? "number" : null;
      return make("td", { class: css, title: isText(column) && text.length > 24 ? text : null }, text);
    });
    return make("tr", {
      tabindex: position === this.from || position === 0 ? "0" : "-1", "data-position": position, "aria-rowindex": position + 2,
      onclick: () => { if (!getSelection().toString()) openRow(this, row); },
      onkeydown: (event) => this.key(event, position, row),
    }, ...cells);
  }

  // Whether a figure of any row is unknown or a lower bound; of a GPU that is split it is the board's or that of all its instances.
  lacks(column, members) {
    const isUnknown = (row) => column.values[row] === null || Boolean(column.least?.[row]), isBoard = (row) => !raw(this.column("gpu_instance_id"), row);
    if (this.trend !== "device") return members.some(isUnknown);
    const gpus = new Map();
    for (const row of members) {
      const key = raw(this.column("device_uuid"), row);
      gpus.set(key, [...(gpus.get(key) ?? []), row]);
    }
    return [...gpus.values()].some((rows) => {
      const instances = rows.filter((row) => !isBoard(row));
      return rows.filter(isBoard).every(isUnknown) && (!instances.length || instances.some(isUnknown));
    });
  }

  // Whether a group's sum or maximum is a lower bound.
  isLeast(column, members) { return ["sum", "max"].includes(column.total) && this.lacks(column, members); }

  groupRow(item) {
    const cells = this.shown.map((column, index) => {
      const found = item.cells[index];
      const text = found === null ? UNKNOWN : typeof found === "string" ? found : writtenAs(column.kind, found, this.isLeast(column, item.members));
      return make("td", { class: typeof found === "string" ? null : "number" }, text);
    });
    const open = () => { const name = this.group; this.ungroup(); this.filter(name, item.cells[0] ?? "", true); };
    return make("tr", { tabindex: "0", onclick: open, onkeydown: (event) => { if (event.key === "Enter") open(); } }, ...cells);
  }

  key(event, position, row) {
    if (event.key === "Enter") { openRow(this, row); return; }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = Math.min(this.items.length - 1, Math.max(0, position + step));
    const top = next * ROW_HEIGHT;
    if (top < this.scroll.scrollTop) this.scroll.scrollTop = top;
    if (top + 3 * ROW_HEIGHT > this.scroll.scrollTop + this.scroll.clientHeight) this.scroll.scrollTop = top + 3 * ROW_HEIGHT - this.scroll.clientHeight;
    this.draw();
    this.table.querySelector(`[data-position="${next}"]`)?.focus({ preventScroll: true });
  }

  save() {
    // As in the report's CSV files: no formula, also after blanks or with full-width signs.
    const safe = (text) => plain(text.replace(/^(?:[\t\r]|[\s\0- \x7f-\xa0\xad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f]*[=+\-@\uff0b\uff0d\uff1d\uff20])/, "'$&"));
    const quoted = (found) => {
      const text = typeof found === "string" ? safe(found) : String(found ?? "");
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const columns = this.group ? this.shown : this.all;
    const cells = (item) => (this.group ? item.cells : columns.map((column) => raw(column, item)));
    const isLeast = (item, column) => (this.group ? this.isLeast(column, item.members) : Boolean(column.least?.[item]));
    const line = (item) => { const found = cells(item); return [...found, columns.filter((column, index) => found[index] !== null && isLeast(item, column)).map((column) => column.name).join(", ")]; };
    const lines = [[...columns.map((column) => column.name || "rows"), "at_least"], ...this.items.map(line)];
    const text = `${lines.map((cells) => cells.map(quoted).join(",")).join("\n")}\n`;
    const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: `${this.name}.csv` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
}

const gridOf = async (name) => {
  if (!gridsByName.has(name)) {
    const template = templateOf(name);
    if (!template) return null;
    gridsByName.set(name, payload(template).then((data) => new Grid(document.getElementById(name), data)));
  }
  return gridsByName.get(name);
};
