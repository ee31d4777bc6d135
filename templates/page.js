// Tabs, links into them, the search over all tables, and the panel of a row. The page is readable without it.
document.documentElement.classList.add("scripted");
const tabs = [...document.querySelectorAll("section.tab")];
const dialog = document.getElementById("detail");
// On a phone they are two lines until they are touched.
for (const text of document.querySelectorAll(".answer .detail, .masthead .window")) text.addEventListener("click", () => text.classList.toggle("open"));

const show = (id) => {
  const tab = tabs.find((each) => each.id === id) ?? tabs.find((each) => each.contains(document.getElementById(id))) ?? tabs[0];
  for (const each of tabs) each.classList.toggle("on", each === tab);
  for (const link of document.querySelectorAll(".tabs a")) {
    if (link.hash === `#${tab.id}`) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  const waiting = [...tab.querySelectorAll("section.grid > details[open]")].map((each) => gridOf(each.parentElement.id));
  for (const figure of tab.querySelectorAll("figure.chart")) waiting.push(drawChart(figure));
  return { tab, ready: Promise.all(waiting) };
};

// #tab, #table, or #table?q=words&field=value&row=number
const route = async () => {
  const [id, query] = location.hash.slice(1).split(/\?(.*)/s);
  document.querySelector(`#${CSS.escape(id || "overview")} > details`)?.setAttribute("open", "");
  const { tab, ready } = show(id || "overview");
  if (id && id !== tab.id) { await ready; document.getElementById(id)?.scrollIntoView(); } else if (!query) requestAnimationFrame(() => scrollTo(0, 0));
  if (!query) { if (dialog.open) dialog.close(); return; }
  const grid = await gridOf(id);
  if (!grid) return;
  const wanted = new URLSearchParams(query);
  const fields = [...wanted].filter(([name]) => name !== "q" && name !== "row");
  grid.narrow(new Map(fields.map(([name, text]) => [name, { text, isExact: true }])), wanted.get("q") ?? "");
  document.getElementById(id).scrollIntoView();
  if (wanted.has("row")) openRow(grid, Number(wanted.get("row")));
};

const go = (hash) => { if (location.hash === hash) route(); else location.hash = hash; };

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-grid]");
  if (link && templateOf(link.dataset.grid)) {
    event.preventDefault();
    go(`#${link.dataset.grid}?${link.dataset.query}`);
    return;
  }
  const button = event.target.closest("button[data-sql]");
  if (button) openSql(button.dataset.sql);
});

for (const each of document.querySelectorAll("section.grid > details")) each.addEventListener("toggle", () => { if (each.open && each.closest(".tab").classList.contains("on")) gridOf(each.parentElement.id); });

const openPanel = (title, ...parts) => {
  document.getElementById("detail-title").textContent = title;
  dialog.querySelector(".body").replaceChildren(...parts);
  if (!dialog.open) dialog.showModal();
};
dialog.querySelector(".close").addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
dialog.addEventListener("close", () => { if (location.hash.includes("row=")) history.replaceState(null, "", `#${tabs.find((tab) => tab.classList.contains("on")).id}`); });

const openSql = async (name) => {
  const statements = await payload(document.getElementById("statements"));
  const text = statements[name];
  const copy = make("button", { type: "button", class: "plain", onclick: () => navigator.clipboard?.writeText(text) }, "Copy");
  openPanel(`SQL of ${name}`, make("p", { class: "soft" }, "The statement and its values. gpureport sql runs it over the lake.  ", copy), make("pre", { tabindex: "0" }, make("code", {}, text)));
};

const TREND_KEYS = { container: ["cluster", "namespace", "pod", "container", "pod_uid"], device: ["cluster", "device_uuid", "gpu_instance_id"] };
const LABELS = ["pod", "workload", "title", "node_name", "quota", "claim", "signal", "value", "namespace"];

const openRow = async (grid, row) => {
  const at = (name) => { const column = grid.column(name); return column ? raw(column, row) : null; };
  const gpu = at("gpu_index") ? `GPU ${at("gpu_index")}` : at("device_uuid");
  const label = grid.trend === "device" ? [at("node_name"), gpu].filter(Boolean).join(", ") : LABELS.map(at).find(Boolean) ?? grid.title;
  const parts = [];
  if (grid.trend) {
    const trends = (await payload(document.getElementById("trends")))[grid.trend];
    const key = TREND_KEYS[grid.trend].map((name) => at(name) ?? "").join("\n");
    if (trends?.of?.[key]) parts.push(...drawTrend(trends, trends.of[key]));
  }
  const listed = grid.all.filter((column) => raw(column, row) !== null && raw(column, row) !== "");
  parts.push(make("dl", {}, ...listed.filter((column) => column.kind !== "code").map((column) => make("div", {}, make("dt", { title: column.doc || null }, column.title), make("dd", {}, written(column, row))))));
  for (const column of listed.filter((each) => each.kind === "code")) parts.push(make("details", {}, make("summary", {}, column.title), make("pre", { tabindex: "0" }, make("code", {}, raw(column, row)))));
  parts.push(...related(grid, at));
  openPanel(label, ...parts);
};

const related = (grid, at) => {
  const links = [];
  const add = (name, text, fields) => {
    const query = new URLSearchParams(at("cluster") ? { cluster: at("cluster"), ...fields } : fields);
    if (Object.values(fields).every(Boolean) && grid.name !== name && templateOf(name)) links.push(make("li", {}, make("a", { href: `#${name}`, "data-grid": name, "data-query": String(query) }, text)));
  };
  const pod = { namespace: at("namespace"), pod: at("pod") }, gpu = { device_uuid: at("device_uuid") };
  add("findings", "Findings of this pod", { q: Object.values(pod).every(Boolean) && `"${pod.namespace}/${pod.pod}"` });
  add("findings", "Findings of this GPU", gpu);
  add("containers", "Containers", grid.name === "workload" ? { namespace: at("namespace"), workload: at("workload") } : pod);
  add("devices", "GPU", gpu);
  add("devices", "GPUs of this node", { node_name: at("node_name") });
  return links.length ? [make("h3", {}, "Related"), make("ul", {}, ...links)] : [];
};
dialog.addEventListener("click", (event) => { if (event.target.closest("a")) dialog.close(); });

// One search over teams, workloads, containers, GPUs and findings.
const find = document.getElementById("find"), hits = document.getElementById("hits");
const SEARCHED = ["workload", "containers", "devices", "findings", "quota_fair_share", "dra_claim"].filter(templateOf);
const HITS_MAX = 6;

const search = async (words) => {
  const found = [];
  for (const name of SEARCHED) {
    const data = await payload(templateOf(name));
    const texts = data.columns.filter((column) => isText(column) && column.kind !== "code" && column.kind !== "long");
    const tests = words.map((word) => texts.map((column) => matching(column, searched(word))));
    const rows = [];
    let count = 0;
    for (let row = 0; row < data.rows; row += 1) {
      if (tests.every((each) => each.some((test) => test(row)))) { count += 1; if (rows.length < HITS_MAX) rows.push(row); }
    }
    if (count) found.push({ name, data, rows, count });
  }
  return found;
};

let requested = 0;
const showFound = async () => {
  const words = wordsOf(find.value.toLowerCase());
  const number = (requested += 1);
  const found = words.length ? await search(words) : [];
  if (number !== requested) return;
  hits.replaceChildren(...found.flatMap(({ name, data, rows, count }) => {
    const title = document.querySelector(`#${name} h3`).firstChild.textContent.trim();
    const shown = data.columns.filter((column) => isText(column) && !column.hidden && column.kind !== "long").slice(0, 4);
    const buttons = rows.map((row) => make("button", { type: "button", role: "option", onclick: () => { hits.hidden = true; go(`#${name}?q=${encodeURIComponent(words.join(" "))}&row=${row}`); } }, shown.map((column) => raw(column, row)).filter(Boolean).join(" · ")));
    const all = make("button", { type: "button", role: "option", onclick: () => { hits.hidden = true; go(`#${name}?q=${encodeURIComponent(words.join(" "))}`); } }, `All ${grouped(count, 0)} in ${title}`);
    return [make("p", {}, `${title} (${grouped(count, 0)})`), ...buttons, ...(count > rows.length ? [all] : [])];
  }));
  if (words.length && !found.length) hits.replaceChildren(make("p", {}, "No match in this report."));
  hits.hidden = !words.length;
  find.setAttribute("aria-expanded", String(!hits.hidden));
};
if (SEARCHED.length) {
  document.querySelector(".find").hidden = false;
  find.addEventListener("input", showFound);
  find.addEventListener("focus", showFound);
  find.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === "ArrowDown") { event.preventDefault(); hits.querySelector("button")?.focus(); } });
  document.addEventListener("click", (event) => { if (!event.target.closest(".find")) hits.hidden = true; });
}

document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) { if (event.key === "Escape") { hits.hidden = true; } return; }
  if (event.key === "/" && SEARCHED.length) { event.preventDefault(); find.focus(); }
  if (event.key === "Escape") hits.hidden = true;
  const tab = tabs[Number(event.key) - 1];
  if (tab && !dialog.open) go(`#${tab.id}`);
});
addEventListener("hashchange", route);
route();
