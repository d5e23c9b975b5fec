"use strict";
// What every part of the page uses: elements, numbers as text, names made visible. Text of the model goes into the page
// as text only, never as markup.
const report = JSON.parse(document.getElementById("report").textContent);

/** An element: attributes (`class`, `aria-label`, `on...` as listeners), then children, strings as text. */
function el(tag, attributes, ...children) {
  const svg = ["svg", "g", "rect", "line", "path", "circle", "text", "title"].includes(tag) && tag !== "title";
  const node = svg || (tag === "title" && attributes?.svg)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name === "svg" || value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

/** Names from the model: control characters and marks that turn the direction of writing are written out. */
function shown(text) {
  return String(text).replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g,
    (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

const digits = (value, count) => Number(value).toLocaleString("en", { maximumSignificantDigits: count, useGrouping: false });
function scaled(value, step, units) {
  let i = 0;
  while (Math.abs(value) >= step && i + 1 < units.length) { value /= step; ++i; }
  return digits(value, value >= 1000 ? 4 : 3) + (units[i] ? "\u00a0" + units[i] : "");
}
const count = (value) => scaled(value, 1000, ["", "k", "M", "G", "T", "P"]);
const bytes = (value) => scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
function duration(ms) {
  if (ms >= 1000) return digits(ms / 1000, 3) + "\u00a0s";
  return ms >= 0.1 ? digits(ms, 3) + "\u00a0ms" : digits(ms * 1000, 3) + "\u00a0µs";
}
const percent = (share) => (100 * share).toFixed(share >= 0.0995 || share === 0 ? 0 : 1) + "\u00a0%";
const factor = (value) => value.toFixed(2) + "×";
const scientific = (value) => value === null ? "–" : value === 0 ? "0" : value.toExponential(1).replace("e-", "e−");
const plural = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
const sum = (list, of) => list.reduce((total, item) => total + of(item), 0);
const share = (part, whole) => whole > 0 ? part / whole : 0;

/** Without our domain. */
const plain = (op) => op.replace(/^modelflow\./, "");

/** Groups in order of first appearance. */
function grouped(list, key) {
  const groups = new Map();
  for (const item of list) groups.get(key(item))?.push(item) ?? groups.set(key(item), [item]);
  return groups;
}

/** "modelflow.Conv" and "FusedConv" are both kinds of "Conv": alike in colour. */
const family = (op) => op.replace(/^.*[.:]/, "").replace(/^(Fused|NhwcFused|Nhwc|QLinear|Q(?=[A-Z]))/, "").replace(/_\d+$/, "");

/** The seven most frequent families have a colour of their own, the others share the last. */
const familyColour = (() => {
  const counts = new Map();
  const add = (op, by) => counts.set(family(op), (counts.get(family(op)) ?? 0) + by);
  for (const side of report.sides ?? []) for (const node of side.nodes) add(node.op, 1 + 1000 * node.ms / (side.ms || 1));
  for (const graph of report.graphs ?? []) for (const node of graph.nodes) add(node.op, 1);
  const first = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 7).map(([name]) => name);
  return (op) => { const place = first.indexOf(family(op)); return `--k${place < 0 ? 7 : place}`; };
})();
const colour = (variable) => getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
const swatch = (op) => el("i", { class: "swatch", style: `background: var(${familyColour(op)})`, "aria-hidden": "true" });
