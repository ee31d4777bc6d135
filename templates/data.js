// The rows inside the page: decoded when first looked at, by column, never by request.
"use strict";
const UNKNOWN = "—";
const decoded = new Map();

const unpack = async (template) => {
  const bytes = Uint8Array.from(atob(template.innerHTML.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
};

const payload = (template) => {
  if (!decoded.has(template)) decoded.set(template, unpack(template));
  return decoded.get(template);
};

const templateOf = (grid) => document.querySelector(`template[data-rows="${grid}"]`);

const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
};

const drawn = (tag, attributes = {}, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

// A half, but for a trace, is rounded up, as in the report's other forms.
const grouped = (number, places) => (number * (1 + 1e-14)).toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });

const significant = (number, digits = 3) => {
  if (number === 0) return "0";
  const size = Math.abs(number);
  if (size < 0.001) return number > 0 ? "< 0.001" : "> -0.001";
  const text = grouped(number, Math.max(0, digits - 1 - Math.floor(Math.log10(size))));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
};

const points = (number) => {
  if (number === 0) return "0";
  if (number > 0 && number < 0.05) return "< 0.1";
  return number >= 99.95 && number < 100 ? "> 99.9" : grouped(number, 1);
};

const scaled = (number) => {
  for (const [size, prefix] of [[2 ** 40, "Ti"], [2 ** 30, "Gi"], [2 ** 20, "Mi"], [2 ** 10, "Ki"]]) {
    if (Math.abs(number) >= size) return `${significant(number / size)} ${prefix}`;
  }
  return significant(number);
};

const lasting = (seconds) => {
  const whole = Math.round(seconds);
  const parts = [[Math.floor(whole / 86400), "d"], [Math.floor((whole % 86400) / 3600), "h"], [Math.floor((whole % 3600) / 60), "min"], [whole % 60, "s"]];
  return parts.filter(([count]) => count).slice(0, 2).map(([count, unit]) => `${count} ${unit}`).join(" ") || "0 s";
};

const currency = document.body.dataset.currency;
const money = (number) => {
  const text = Math.abs(number) >= 100 ? grouped(number, 0) : significant(number);
  return /[$€£¥]$/.test(currency) ? text.replace(/\S+$/, (digits) => `${currency}${digits}`) : `${text} ${currency}`.trim();
};

const WRITE = {
  number: (found) => significant(found),
  share: (found) => `${points(100 * found)} %`,
  kwh: (found) => `${significant(found)} kWh`,
  joules: (found) => `${significant(found / 3.6e6)} kWh`,
  bytes: (found) => `${scaled(found)}B`,
  duration: lasting,
  watts: (found) => `${significant(found)} W`,
  celsius: (found) => `${significant(found)} °C`,
  money,
};

// A lower bound: of "< 0.1 %" it is "> 0 %", and "> 99.9 %" is one already. No part of a cost known is no cost of 0.
const writtenAs = (kind, found, isLeast = false) => {
  const text = (WRITE[kind] ?? WRITE.number)(found);
  if (!isLeast || text.startsWith(">")) return text;
  if (kind === "money" && !found) return UNKNOWN;
  return text.startsWith("<") ? `> ${text.slice(2).replace(/[\d.]+/, "0")}` : `≥ ${text}`;
};

const isText = (column) => column.words !== undefined;
const isNumeric = (column) => !isText(column);
// Null of a column that the page lacks, for nothing in it has data.
const raw = (column, row) => {
  const found = column?.values[row] ?? null;
  return found !== null && isText(column) ? column.words[found] : found;
};
// Pictures of control characters: a change of the writing direction in a name would turn the figures after it.
const plain = (text) => text.replace(/[\0-\x08\x0b\f\x0e-\x1f]/g, (control) => String.fromCharCode(0x2400 + control.charCodeAt()))
  .replace(/[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
const written = (column, row) => {
  const found = raw(column, row);
  if (found === null) return UNKNOWN;
  return isText(column) ? plain(found) : writtenAs(column.kind, found, column.least?.[row]);
};
