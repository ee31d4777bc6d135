// Charts that are drawn only where they are looked at, from the rows of the table below them.
const MODEL = (name) => name || "unknown model";

const table = (data) => Object.fromEntries(data.columns.map((column) => [column.name, column]));
const rowsOf = (data) => Array.from({ length: data.rows }, (_, row) => row);

const ceiling = (value) => {
  if (value <= 0) return 1;
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 1.2, 1.6, 2, 2.4, 2.8, 3.2, 4, 4.8, 6, 8, 10].map((step) => step * size).find((each) => each >= value - 1e-9);
};

// As many pixels as there are, so that text in a chart is as large as around it.
const GAP = 26;
const widthOf = (figure, charts = 1) => {
  const whole = (figure.clientWidth || 1280) - 34, side = Math.max(1, Math.min(charts, Math.floor((whole + GAP) / (220 + GAP))));
  return Math.max(220, Math.round((whole - GAP * (side - 1)) / side));
};

const frame = (width, height, top, label, unit = "") => {
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img", "aria-label": label });
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    const y = height - 20 - part * (height - 34);
    svg.append(drawn("line", { x1: 40, x2: width, y1: y, y2: y, class: "grid-line" }), drawn("text", { x: 34, y: y + 4, "text-anchor": "end" }, `${significant(top * part)}${unit}`));
  }
  return svg;
};

const path = (values, x, y) => {
  let text = "", isOpen = false;
  values.forEach((value, index) => {
    if (value === null || value === undefined) { isOpen = false; return; }
    const isAlone = !isOpen && (values[index + 1] ?? null) === null; // a dot
    text += `${isOpen ? "L" : "M"}${x(index).toFixed(1)},${y(value).toFixed(1)}${isAlone ? "h2" : ""}`;
    isOpen = true;
  });
  return text;
};

const summed = (data, keys, at) => {
  const found = new Map();
  for (const row of rowsOf(data)) {
    const key = at(row);
    const sums = found.get(key) ?? keys.map(() => null);
    keys.forEach((column, index) => { const value = column?.values[row] ?? null; if (value !== null) sums[index] = (sums[index] ?? 0) + value; });
    found.set(key, sums);
  }
  return found;
};

// Times on the clocks of the report's time zone; those of tables are UTC without a zone.
const ZONE = document.body.dataset.timezone || "UTC";
const local = (time) => new Date(typeof time === "string" ? `${time.replace(" ", "T").replace("Z", "")}Z` : time).toLocaleString("sv-SE", { timeZone: ZONE }).slice(0, 16);

const instant = (time) => Date.parse(`${time.replace(" ", "T").replace("Z", "")}Z`);

const dayOf = (time) => new Date(typeof time === "string" ? `${time.slice(0, 10)}T00:00Z` : time).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" }).replace("Sept", "Sep");

// Names of days where there are several, of hours otherwise, as many as fit.
const timeLabels = (svg, times, x, width, height) => {
  const days = times.map((_, index) => index).filter((index) => local(times[index]).endsWith("00:00"));
  const marked = days.length > 2 ? days : times.map((_, index) => index);
  const step = Math.ceil(marked.length / Math.max(1, Math.floor(width / (days.length > 2 ? 76 : 64))));
  marked.filter((_, number) => number % step === 0 && x(marked[number]) < width - 36).forEach((index) => svg.append(drawn("text", { x: x(index), y: height - 4 }, days.length > 2 ? dayOf(local(times[index])) : local(times[index]).slice(11))));
};

const legendOf = (entries) => make("ul", { class: "legend" }, ...entries.map(([css, title]) => make("li", {}, make("i", { class: css === "pending" ? "" : css, style: css === "pending" ? "border:1px dashed var(--bad)" : null }), title)));

// Every hour of the period; those without a row are drawn as nothing.
const hoursOf = () => {
  const { since, until } = document.body.dataset, hour = 3600e3;
  const first = Math.floor(instant(since) / hour), last = Math.ceil(instant(until) / hour);
  return Array.from({ length: Math.max(0, last - first) }, (_, number) => (first + number) * hour);
};

// Rows day by day, from the first to the last; null where a day has none.
const daily = (rows, dayAt) => {
  const found = new Map(rows.map((row) => [instant(`${dayAt(row).slice(0, 10)}T00:00`) / 86400e3, row]));
  const days = [...found.keys()].sort((one, other) => one - other);
  return days.length ? Array.from({ length: days.at(-1) - days[0] + 1 }, (_, number) => found.get(days[0] + number) ?? null) : [];
};

// Numbers that follow each other.
const runsOf = (numbers) => numbers.reduce((runs, number) => {
  if (runs.length && runs.at(-1).at(-1) === number - 1) runs.at(-1).push(number);
  else runs.push([number]);
  return runs;
}, []);

// Stacked areas: effective, other active, idle, allocated without data of use, allocation unknown, unallocated; pending requests above what there is.
const drawHours = async (figure, data) => {
  const columns = table(data);
  const hour = columns.hour_start_at;
  const held = columns.allocated_gpu_hours;
  const sums = summed(data, [columns.effective_gpu_hours, columns.active_gpu_hours, columns.allocated_idle_gpu_hours, held, columns.unnamed_gpu_hours, columns.usable_gpu_hours], (row) => instant(raw(hour, row)));
  const times = hoursOf();
  const pending = await pendingByHour();
  const layers = times.map((time) => {
    const [effective, active, idle, allocated, unnamed, usable] = (sums.get(time) ?? Array(6).fill(0)).map((value) => value ?? 0);
    const known = active + idle;
    return [effective, Math.max(0, active - effective), idle, Math.max(0, allocated - known), unnamed, Math.max(0, usable - allocated - unnamed), pending.get(time) ?? 0];
  });
  const classes = ["c-effective", "c-underutilized", "c-allocated_idle", "c-allocated_unmeasured", "c-unknown", "c-free", "pending"];
  const titles = ["Effective", "Other active", "Allocated, idle", "Allocated, use not measured", "Unknown", "Unallocated", "Pending requests"];
  const top = ceiling(Math.max(...layers.map((parts) => parts.reduce((one, other) => one + other, 0))));
  const width = widthOf(figure), height = 250;
  const svg = frame(width, height, top, "GPUs by use, hour by hour; pending requests above capacity");
  const x = (index) => 40 + ((width - 40) * index) / times.length;
  const y = (value) => height - 20 - (value / top) * (height - 34);
  const runs = runsOf([...times.keys()].filter((index) => sums.has(times[index])));
  classes.forEach((css, layer) => {
    const edge = (run, count) => run.flatMap((index) => {
      const level = y(layers[index].slice(0, count).reduce((one, other) => one + other, 0));
      return [[x(index), level], [x(index + 1), level]]; // an hour is as wide as it is long
    });
    const areas = runs.map((run) => `M${[...edge(run, layer + 1), ...edge(run, layer).reverse()].map((point) => point.map((each) => each.toFixed(1)).join()).join("L")}Z`);
    svg.append(drawn("path", { d: areas.join(""), class: css }));
  });
  timeLabels(svg, times, x, width, height);
  const blank = runs.flat().length < times.length ? " Blank: hours without data." : "";
  const there = classes.map((css, layer) => [css, titles[layer]]).filter((_, layer) => layers.some((parts) => parts[layer] > top / 1000)); // less is rounding, too thin to draw
  figure.append(svg, legendOf(there), make("p", { class: "soft" }, `Vertical axis: GPUs. Horizontal axis: ${ZONE}.${blank}`));
};

const pendingByHour = async () => {
  const template = templateOf("scheduler_pressure");
  if (!template) return new Map();
  const data = await payload(template);
  const columns = table(data);
  const found = new Map();
  for (const row of rowsOf(data)) {
    if (raw(columns.resource, row) !== "gpu") continue;
    const time = instant(raw(columns.hour_start_at, row));
    found.set(time, (found.get(time) ?? 0) + (columns.unscheduled_units_avg?.values[row] ?? 0));
  }
  return found;
};

const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const drawWeek = async (figure, data) => {
  const columns = table(data);
  const sums = summed(data, [columns.allocated_idle_gpu_hours, columns.usable_gpu_hours, columns.unnamed_gpu_hours, columns.allocated_unmeasured_gpu_hours], (row) => `${columns.weekday.values[row]} ${columns.hour_of_day.values[row]}`);
  const shareOf = (idle, known) => (known > 0 && idle !== null ? idle / known : null);
  const shares = new Map([...sums].map(([key, [idle, usable, unnamed]]) => [key, shareOf(idle, usable - (unnamed ?? 0))]));
  if (![...shares.values()].some((share) => share !== null)) { figure.hidden = true; return; }
  const most = Math.max(...[...shares.values()].map((share) => share ?? 0), 0.01);
  const cells = (day) => Array.from({ length: 24 }, (_, hour) => {
    const share = shares.get(`${day + 1} ${hour}`);
    const text = share === undefined || share === null ? "no data" : `${writtenAs("share", share, sums.get(`${day + 1} ${hour}`)[3] > 0)} idle`;
    const color = share === undefined || share === null ? "transparent" : `color-mix(in srgb, var(--allocated_idle) ${Math.round(4 + (96 * share) / most)}%, var(--card))`;
    return make("td", { style: `background:${color}`, title: `${DAYS[day]} ${hour}:00: ${text}` }, make("span", { class: "spoken" }, text));
  });
  const head = make("tr", {}, make("td", {}), ...Array.from({ length: 24 }, (_, hour) => make("th", { scope: "col" }, hour % 3 ? make("span", { class: "spoken" }, String(hour)) : String(hour))));
  const rows = DAYS.map((name, day) => make("tr", {}, make("th", { scope: "row" }, name), ...cells(day)));
  const heat = make("table", { class: "heat" }, make("caption", { class: "spoken" }, "Idle share of schedulable GPUs by weekday and hour"), make("thead", {}, head), make("tbody", {}, ...rows));
  figure.append(make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Idle GPUs by weekday and hour" }, heat), make("p", { class: "soft" }, "Idle share of schedulable GPUs: 0 %", make("span", { class: "scale" }), `${points(100 * most)} %`));
};

const drawForecast = async (figure, data) => {
  const columns = table(data);
  const held = columns.allocated_gpu_hours;
  const models = new Map();
  for (const row of rowsOf(data)) {
    const model = `${MODEL(raw(columns.gpu_model, row))}${columns.cluster?.words.length > 1 ? ` (${raw(columns.cluster, row)})` : ""}`;
    if (!models.has(model)) models.set(model, []);
    models.get(model).push(row);
  }
  if (![...models.values()].some((rows) => rows.length > 1)) { figure.hidden = true; return; } // one day is no line
  const box = make("div", { class: "small" });
  const isCounted = (row) => row !== null && raw(columns.kind, row) !== "left out"; // nor is it whole
  const at = (column, row) => { const found = isCounted(row) ? column?.values[row] ?? null : null; return found === null ? null : found / 24; };
  if (!rowsOf(data).some(isCounted)) { figure.hidden = true; return; }
  const isForecast = rowsOf(data).some((row) => at(columns.expected_gpu_hours, row) !== null);
  if (!isForecast) figure.querySelector("figcaption").textContent = "Allocated GPUs by model, day by day";
  for (const [model, unordered] of models) {
    const rows = daily(unordered, (row) => raw(columns.day, row));
    const series = ["low_gpu_hours", "expected_gpu_hours", "high_gpu_hours", "usable_gpu_hours"].map((name) => rows.map((row) => at(columns[name], row)));
    const [low, expected, high, usable] = series;
    const past = rows.map((row) => at(held, row));
    const top = ceiling(Math.max(...[...high, ...usable, ...past].map((value) => value ?? 0)));
    const width = widthOf(figure, models.size), height = 150;
    const svg = frame(width, height, top, `${model}: allocated GPUs${isForecast ? " and forecast" : ""}`);
    const x = (index) => 40 + ((width - 44) * index) / Math.max(1, rows.length - 1);
    const y = (value) => height - 20 - (value / top) * (height - 34);
    const forward = rows.map((_, index) => index).filter((index) => high[index] !== null);
    if (forward.length) {
      const edge = [...forward.map((index) => `${x(index)},${y(high[index])}`), ...[...forward].reverse().map((index) => `${x(index)},${y(low[index] ?? 0)}`)];
      svg.append(drawn("polygon", { points: edge.join(" "), class: "band" }));
    }
    svg.append(drawn("path", { d: path(usable, x, y), class: "line-c" }), drawn("path", { d: path(past, x, y), class: "line-a" }), drawn("path", { d: path(expected, x, y), class: "line-b" }));
    svg.append(drawn("text", { x: 40, y: height - 4 }, dayOf(raw(columns.day, rows[0]))), drawn("text", { x: width, y: height - 4, "text-anchor": "end" }, dayOf(raw(columns.day, rows.at(-1)))));
    box.append(make("div", {}, make("h3", {}, model), svg));
  }
  const expected = isForecast ? [make("span", { class: "key-b" }), "Forecast, 80 % interval"] : [];
  const key = make("p", { class: "soft keys" }, make("span", { class: "key-a" }), "Allocated", ...expected, make("span", { class: "key-c" }), "Schedulable. Vertical axis: GPUs.");
  figure.append(box, key);
};

const drawQuotas = async (figure, data) => {
  const columns = table(data);
  const all = rowsOf(data).filter((row) => raw(columns.is_parent, row) !== "yes" && ((columns.guaranteed_gpu_hours?.values[row] ?? 0) > 0 || (columns.delivered_gpu_hours?.values[row] ?? 0) > 0)), rows = all.slice(0, 24);
  if (!rows.length) { figure.hidden = true; return; }
  const value = (name, row) => columns[name]?.values[row] ?? 0;
  const shown = (name, row) => (raw(columns[name], row) === null ? UNKNOWN : significant(value(name, row)));
  const isKnown = (name, row) => (columns[name]?.values[row] ?? null) !== null;
  const most = Math.max(...rows.map((row) => Math.max(value("guaranteed_gpu_hours", row), value("delivered_gpu_hours", row) + value("unmet_gpu_hours", row))), 1e-9);
  const lines = rows.map((row) => {
    const delivered = value("delivered_gpu_hours", row), borrowed = Math.min(delivered, value("borrowed_gpu_hours", row)), unmet = value("unmet_gpu_hours", row), guaranteed = value("guaranteed_gpu_hours", row);
    const promised = shown("guaranteed_gpu_hours", row);
    const wide = (hours) => `${(100 * hours) / most}%`;
    const bar = drawn("svg", { class: "bar", style: "height:16px;overflow:visible", role: "img", "aria-label": `delivered ${significant(delivered)}, borrowed ${shown("borrowed_gpu_hours", row)}, not met ${shown("unmet_gpu_hours", row)}, guaranteed ${promised} GPU-h` });
    bar.append(drawn("rect", { class: isKnown("borrowed_gpu_hours", row) ? "c-effective" : "c-active_unmeasured", x: 0, width: wide(delivered - borrowed), height: 16 }), drawn("rect", { class: "c-underutilized", x: wide(delivered - borrowed), width: wide(borrowed), height: 16 }), drawn("rect", { class: "pending", x: wide(delivered), width: wide(unmet), height: 16 }));
    if (isKnown("guaranteed_gpu_hours", row)) bar.append(drawn("line", { x1: wide(guaranteed), x2: wide(guaranteed), y1: -3, y2: 19, stroke: "var(--fg)", "stroke-width": 2 }));
    return make("tr", {}, make("th", { scope: "row" }, `${raw(columns.quota, row)}${columns.cluster?.words.length > 1 ? ` (${raw(columns.cluster, row)})` : ""}`), make("td", { class: "wide" }, `${raw(columns.scheduler, row)} · ${raw(columns.resource, row)}`), make("td", { style: "width:55%" }, bar), make("td", { class: "number" }, `${significant(delivered)} of ${promised}`));
  });
  const without = rows.every((row) => isKnown("borrowed_gpu_hours", row)) ? [] : [["c-active_unmeasured", "Delivered, borrowed part unknown"]];
  const classes = [null, "wide", null, "number"];
  figure.append(make("div", { class: "scroll", role: "region", "aria-label": "Chart of quotas", tabindex: "0" }, make("table", {}, make("caption", { class: "spoken" }, "Quotas"), make("thead", {}, make("tr", {}, ...["Quota", "Scheduler and resource", "GPU-hours", "Delivered of guaranteed"].map((title, index) => make("th", { scope: "col", class: classes[index] }, title)))), make("tbody", {}, ...lines))),
    make("ul", { class: "legend" }, ...legendOf([["c-effective", "Delivered, not borrowed"], ["c-underutilized", "Borrowed"], ["pending", "Guaranteed, requested and not delivered"], ...without]).children, make("li", {}, make("i", { style: "width:2px;background:var(--fg)" }), "Guarantee")));
  if (all.length > rows.length) figure.append(make("p", { class: "soft" }, `${rows.length} of ${all.length} quotas; all are in the table below.`));
};

// Cumulative shares of time over percent, by cluster and model: what the table's quantiles show.
const QUANTILES = [["value_p10", 0.1], ["value_p25", 0.25], ["value_p50", 0.5], ["value_p75", 0.75], ["value_p90", 0.9], ["value_p95", 0.95], ["value_p99", 0.99], ["value_max", 1]];
const SHOWN = [["GPU utilization, %", "line-a", "key-a"], ["SM activity, %", "line-b", "key-b"], ["Memory used, %", "line-c", "key-c"]];
const drawDistributions = async (figure, data) => {
  const columns = table(data);
  const names = new Map();
  for (const row of rowsOf(data)) {
    if (!["cluster", "model"].includes(raw(columns.scope, row)) || !SHOWN.some(([signal]) => signal === raw(columns.signal, row))) continue;
    const name = raw(columns.scope, row) === "cluster" ? `All of ${raw(columns.name, row)}` : raw(columns.name, row);
    names.set(name, [...(names.get(name) ?? []), row]);
  }
  if (!names.size) { figure.hidden = true; return; } // a team has no row of these
  const box = make("div", { class: "small" });
  for (const [name, rows] of [...names].slice(0, 9)) {
    const width = widthOf(figure, Math.min(9, names.size)), height = 150;
    const svg = frame(width, height, 100, `${name}: share of GPU-hours up to each value`, " %");
    const x = (value) => 40 + ((width - 44) * Math.min(value, 100)) / 100, y = (part) => height - 20 - part * (height - 34);
    for (const row of rows) {
      const zero = columns.zero_ratio?.values[row] ?? 0;
      const points = [...(zero ? [[0, zero]] : []), ...QUANTILES.map(([column, part]) => [columns[column]?.values[row] ?? 0, part])];
      const reached = points.map(([value, part], index) => [value, Math.max(...points.slice(0, index + 1).map(([, each]) => each), part)]);
      const line = [...reached, [100, 1]].map(([value, part], index) => `${index ? "L" : "M"}${x(value).toFixed(1)},${y(part).toFixed(1)}`).join("");
      svg.append(drawn("path", { d: line, class: SHOWN.find(([signal]) => signal === raw(columns.signal, row))[1] }));
    }
    svg.append(drawn("text", { x: 40, y: height - 4 }, "0 %"), drawn("text", { x: width, y: height - 4, "text-anchor": "end" }, "100 %"));
    box.append(make("div", {}, make("h3", {}, name), svg));
  }
  const keys = SHOWN.filter(([signal]) => [...names.values()].flat().some((row) => signal === raw(columns.signal, row))).flatMap(([signal, , css]) => [make("span", { class: css }), signal.replace(", %", "")]);
  figure.append(box, make("p", { class: "soft keys" }, ...keys), make("p", { class: "soft" }, "Vertical axis: share of GPU-hours at or below the value. Horizontal axis: the value. A curve further to the right means more use."));
};

// A bar for each row: its parts, and their sum in words.
const bars = (figure, caption, rows, parts, kind) => {
  const sum = (values) => values.reduce((one, other) => one + other, 0);
  const most = Math.max(...rows.map(([, values]) => sum(values ?? [0])), 1e-9);
  const lines = rows.map(([name, values, isLeast]) => {
    if (!values) return make("tr", {}, make("th", { scope: "row" }, name), make("td", {}), make("td", { class: "number" }, "—"));
    const text = parts.map(([, title], index) => `${title.toLowerCase()} ${writtenAs(kind, values[index])}`).filter((_, index) => values[index]).join(", ");
    const bar = drawn("svg", { class: "bar", style: "height:16px", role: "img", "aria-label": text });
    bar.append(drawn("title", {}, text));
    values.forEach((value, index) => bar.append(drawn("rect", { class: parts[index][0], x: `${(100 * sum(values.slice(0, index))) / most}%`, width: `${(100 * value) / most}%`, height: 16 })));
    return make("tr", {}, make("th", { scope: "row" }, name), make("td", { style: "width:75%" }, bar), make("td", { class: "number" }, writtenAs(kind, sum(values), isLeast)));
  });
  const used = parts.filter((_, index) => rows.some(([, values]) => values?.[index] > 0));
  figure.append(make("table", { class: "bars" }, make("caption", { class: "spoken" }, caption), make("tbody", {}, ...lines)), legendOf(used));
};

const COSTS = [["c-active_unmeasured", "Active", "active_cost"], ["c-allocated_idle", "Idle", "idle_cost"], ["c-allocated_unmeasured", "Use not measured", "unmeasured_cost"], ["c-free", "Unallocated", "unallocated_cost"], ["c-unavailable", "Unavailable", "unavailable_cost"], ["c-unknown", "Allocation unknown", "unknown_cost"]];
const drawCost = async (figure, data) => {
  const columns = table(data);
  const sums = summed(data, COSTS.map(([, , name]) => columns[name]), (row) => raw(columns.team, row) || "No team");
  if (!sums.size || !columns.total_cost) { figure.hidden = true; return; }
  const { values: costs, least } = columns.total_cost;
  const lower = new Set(rowsOf(data).filter((row) => costs[row] === null || least?.[row]).map((row) => raw(columns.team, row) || "No team"));
  const rows = [...sums].map(([team, values]) => [team, values.map((value) => value ?? 0), lower.has(team)]).sort(([, one], [, other]) => other.reduce((a, b) => a + b) - one.reduce((a, b) => a + b));
  bars(figure, "Cost by team", rows.slice(0, 20), COSTS, "money");
  if (rows.length > 20) figure.append(make("p", { class: "soft" }, `20 of ${rows.length} teams; all are in the table below.`));
};

// GPU-hours whose energy is due, by day of the report's time zone and by GPU model: those of the ledger without unavailable ones.
const dueEnergy = async () => {
  const template = templateOf("gpu_hour_balance"), due = new Map(), times = hoursOf();
  if (!template) return due;
  const data = await payload(template), columns = table(data);
  const hours = summed(data, [columns.capacity_gpu_hours, columns.unavailable_gpu_hours], (row) => `${raw(columns.dimension, row)}\n${raw(columns.value, row)}`);
  for (const [key, [capacity, unavailable]] of hours) due.set(key, (capacity ?? 0) - (unavailable ?? 0));
  const dayOfUtc = (time) => `day\n${new Date(time).toISOString().slice(0, 10)}`, counts = new Map(), days = new Map();
  for (const time of times) counts.set(dayOfUtc(time), (counts.get(dayOfUtc(time)) ?? 0) + 1);
  for (const time of times) {
    const day = `day\n${local(time).slice(0, 10)}`;
    days.set(day, (days.get(day) ?? 0) + (due.get(dayOfUtc(time)) ?? 0) / counts.get(dayOfUtc(time)));
  }
  return new Map([...due, ...days]);
};

const ENERGIES = [["c-active_unmeasured", "Active", "active_joules"], ["c-allocated_idle", "Allocated, idle", "allocated_idle_joules"], ["c-free", "Idle baseline", "idle_joules"], ["c-allocated_unmeasured", "Active or idle", "unsplit_joules"], ["c-unknown", "Unattributed", "unattributed_joules"]];
const drawEnergy = async (figure, data) => {
  const columns = table(data);
  const keyOf = (row) => `${raw(columns.dimension, row)}\n${raw(columns.value, row)}`;
  const sums = summed(data, ENERGIES.map(([, , name]) => columns[name]), keyOf);
  const due = await dueEnergy(), measured = summed(data, [columns.measured_gpu_hours], keyOf);
  const isLeast = (dimension, value) => (measured.get(`${dimension}\n${value}`)?.[0] ?? 0) < 0.995 * (due.get(`${dimension}\n${value}`) ?? 0);
  const of = (dimension) => [...sums].map(([key, joules]) => [...key.match(/(.*?)\n(.*)/s).slice(1), joules.some((each) => each !== null) ? joules.map((each) => (each ?? 0) / 3.6e6) : null]).filter(([each]) => each === dimension).sort();
  const isDaily = of("day").length > 1, rows = of(isDaily ? "day" : "GPU model");
  if (!rows.length) { figure.hidden = true; return; }
  const start = instant(`${rows[0][1]}T00:00`);
  const found = isDaily
    ? daily(rows, ([, day]) => day).map((row, number) => [dayOf(new Date(start + number * 86400e3).toISOString()), row === null ? null : row[2], row !== null && isLeast("day", row[1])])
    : rows.map(([dimension, model, parts]) => [MODEL(model), parts, isLeast(dimension, model)]);
  if (!isDaily) figure.querySelector("figcaption").textContent = "Energy by GPU model";
  bars(figure, "Energy", found, ENERGIES, "kwh");
};

const CHARTS = { cost: drawCost, energy: drawEnergy, distributions: drawDistributions, hours: drawHours, week: drawWeek, forecast: drawForecast, quotas: drawQuotas };

const drawChart = async (figure) => {
  if (figure.dataset.drawn) return;
  figure.dataset.drawn = "yes";
  figure.hidden = false;
  await CHARTS[figure.dataset.chart](figure, await payload(templateOf(figure.dataset.grid)));
};

// Trend of a container or a GPU: percent of its time, step by step.
const TREND_TITLES = { sm: "SM activity", engine: "Engine activity", memory: "Memory used" };
const drawTrend = (trend, found) => {
  const [first, ...series] = found;
  const lanes = trend.figures.map((figure, index) => {
    const values = series[index];
    if (values.every((value) => value === null)) return "";
    const width = 480, height = 72;
    const svg = drawn("svg", { class: "lane", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${TREND_TITLES[figure]} over time, percent` });
    for (const part of [0, 50, 100]) { const y = 60 - part / 2; svg.append(drawn("line", { x1: 26, x2: width, y1: y, y2: y, class: "grid-line" }), drawn("text", { x: 22, y: y + 4, "text-anchor": "end", style: "font-size:10px;fill:var(--soft)" }, String(part))); }
    const x = (at) => 26 + ((width - 26) * at) / Math.max(1, values.length - 1);
    svg.append(drawn("path", { d: path(values, x, (value) => 60 - Math.min(100, value) / 2), class: "line-a" }));
    return make("div", {}, make("h3", {}, `${TREND_TITLES[figure]}, %`), svg);
  });
  const since = new Date(new Date(trend.since).getTime() + first * 3600e3 * trend.hours), until = new Date(since.getTime() + series[0].length * 3600e3 * trend.hours);
  return [...lanes.filter(Boolean), make("p", { class: "soft" }, `${local(since)} to ${local(until)} ${ZONE}, one point per ${trend.hours === 1 ? "hour" : `${trend.hours} hours`}`)];
};
