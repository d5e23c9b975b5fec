// Plots as SVG: bars with intervals, points, curves. Small enough that a library would be larger than the page.

const svg = (width, height, label, ...children) =>
  el("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, style: `max-width:${width}px` }, ...children);
const narrow = () => window.innerWidth < 760;  // plots keep the size of their letters and give up room
const say = (x, y, text, attributes) => el("text", { x, y, ...attributes }, text);

/** From `least`, 0 or less, to `most`: multiples of 1, 2 or 5 times a power of ten, 0 among them, three to six steps. */
function ticks(most, least = 0) {
  const raw = (most - least) / 4, power = 10 ** Math.floor(Math.log10(raw || 1));
  const step = power * ([1, 2, 5].find((m) => m * power >= raw) ?? 10);
  const below = Math.floor(-least / step + 1e-9);
  return Array.from({ length: below + Math.floor(most / step + 1e-9) + 1 }, (_, i) => (i - below) * step);
}

/** rows: { name, value, low, high, text, colour }. A bar with the value behind it, the interval as a whisker. */
function bars(rows, label) {
  const small = narrow(), width = small ? 380 : 860, left = small ? 108 : 150, right = small ? 120 : 210, step = 40;
  const most = Math.max(...rows.map((row) => row.high ?? row.value)) || 1;
  const x = (value) => left + (width - left - right) * value / most;
  return svg(width, rows.length * step, label, rows.map((row, i) => {
    const y = i * step + 6, middle = y + 14, end = x(row.high ?? row.value);
    const whisker = row.high > row.low && `M${x(row.low)} ${middle}H${x(row.high)}M${x(row.low)} ${middle - 5}v10M${x(row.high)} ${middle - 5}v10`;
    return el("g", null, say(left - 12, middle + 4.5, row.name, { "text-anchor": "end" }),
      el("rect", { x: left, y, width: Math.max(1, x(row.value) - left), height: 28, rx: 5, fill: `var(${row.colour})` }),
      whisker ? el("path", { d: whisker, stroke: "var(--ink)", "stroke-width": 1.5, fill: "none" }) : null,
      say(end + 10, middle + 4.5, row.text, { "font-weight": 600 }), row.more ? say(end + 10 + 8.6 * row.text.length + 6, middle + 4.5, row.more, { class: "soft" }) : null);
  }));
}

function axes(width, height, box, xs, ys, titles) {
  const parts = [];
  for (const { at, text } of ys) parts.push(el("line", { x1: box.left, x2: box.right, y1: at, y2: at, stroke: "var(--line)" }), say(box.left - 8, at + 4, text, { class: "soft", "text-anchor": "end" }));
  for (const { at, text } of xs) parts.push(say(at, box.bottom + 18, text, { class: "soft", "text-anchor": "middle" }));
  parts.push(say((box.left + box.right) / 2, height - 3, titles[0], { class: "soft", "text-anchor": "middle" }), say(box.left - 40, 12, titles[1], { class: "soft" }));
  return parts;
}

/** points: { x, y, chosen, title }; x grows to the right, y upwards; both begin at 0, x at the least below it: a score that is better costs less than nothing. */
function scatter(points, titles, label) {
  const width = 560, height = 300, box = { left: 58, right: width - 16, top: 28, bottom: height - 44 };
  const leastX = Math.min(0, ...points.map((p) => p.x)) * 1.08, farX = Math.max(0, ...points.map((p) => p.x)) * 1.08 || (leastX ? 0 : 1), farY = Math.max(...points.map((p) => p.y), 1) * 1.08;
  const x = (value) => box.left + (box.right - box.left) * (value - leastX) / (farX - leastX), y = (value) => box.bottom - (box.bottom - box.top) * value / farY;
  return svg(width, height, label,
    axes(width, height, box, ticks(farX, leastX).map((v) => ({ at: x(v), text: digits(v, 3) })), ticks(farY).map((v) => ({ at: y(v), text: digits(v, 3) })), titles),
    points.map((p) => el("circle", { cx: x(p.x), cy: y(p.y), r: p.chosen ? 8 : 5, fill: p.chosen ? "var(--after)" : "var(--before)", stroke: "var(--card)", "stroke-width": 2 },
      el("title", { svg: true }, p.title))),
    points.filter((p) => p.chosen).map((p) => say(x(p.x) + (x(p.x) > width - 120 ? -13 : 13), y(p.y) - 9, "chosen", { "font-weight": 600, "text-anchor": x(p.x) > width - 120 ? "end" : "start" })));
}

/** curves: { values, colour, name }; each over the whole width, from its first node to its last. */
function curves(list, titles, text, label) {
  const width = narrow() ? 380 : 860, height = 220, box = { left: 76, right: width - 8, top: 28, bottom: height - 26 };
  const most = Math.max(...list.flatMap((curve) => curve.values.reduce((a, b) => Math.max(a, b), 0))) || 1;
  const y = (value) => box.bottom - (box.bottom - box.top) * value / (most * 1.05);
  const unit = 1024 ** Math.floor(Math.log(most) / Math.log(1024));  // they are bytes
  const line = (values) => {
    const step = (box.right - box.left) / values.length, every = Math.max(1, Math.floor(values.length / 1500));
    let d = `M${box.left} ${box.bottom}`;
    for (let i = 0; i < values.length; i += every) {
      const high = Math.max(...values.slice(i, i + every));
      d += `L${(box.left + i * step).toFixed(1)} ${y(high).toFixed(1)}H${(box.left + Math.min(values.length, i + every) * step).toFixed(1)}`;
    }
    return d;
  };
  return svg(width, height, label, axes(width, height, box, [], ticks(most / unit).map((v) => ({ at: y(v * unit), text: text(v * unit) })), titles),
    list.map((curve) => [el("path", { d: line(curve.values) + `V${box.bottom}Z`, fill: `var(${curve.colour})`, opacity: 0.14 }),
      el("path", { d: line(curve.values), fill: "none", stroke: `var(${curve.colour})`, "stroke-width": 1.8, "stroke-linejoin": "round" })]));
}
