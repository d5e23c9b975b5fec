// The result in one sentence, the sides of the comparison, and where the time goes.

const sideTitles = { stock: "ONNX Runtime", float32: "float32", fallback: "without plugin", optimized: "optimized" };
const sideColours = { stock: "--before", float32: "--middle", fallback: "--middle", optimized: "--after" };
const baseName = (path) => shown(path.split("/").at(-1) || "model");
const titleOf = (side) => sideTitles[side.name] ?? baseName(side.name);
const stats = (report.before?.nodes ?? 0) > 0 || (report.before?.ops && Object.keys(report.before.ops).length > 0);
const quantized = report.quantization && (report.quantization.ops ?? []).some((op) => op.precision !== "float32");

function headline() {
  const name = baseName(report.input || "The model"), fast = report.optimized_ms > 0 && report.speedup > 1;
  if (report.kind === "bench") {
    const best = [...report.sides].sort((a, b) => b.speedup - a.speedup)[0], first = report.sides[0];
    return best === first ? ["Nothing is faster than ", titleOf(first), "."] : [best.graph === report.input ? `${name} ` : "", titleOf(best), " runs ", el("em", null, factor(best.speedup) + " as fast"), " as ", titleOf(first), "."];
  }
  if (fast) return [name, " runs ", el("em", null, factor(report.speedup) + " as fast"), quantized ? ` in ${shown(report.quantization.precision)}, ` : ", ", report.verified ? (quantized ? "within the bound that was set." : "with the same results.") : "but nobody compared the results."];
  if (report.sides.length) return [name, " stays as it came: nothing tried was faster here."];
  return [name, " was optimized, ", report.verified ? "gives the same results, " : "was not compared with the original, ", "and not timed."];
}

function tiles() {
  const list = [], add = (title, value, small) => list.push(el("div", { class: "tile" }, el("dt", null, title), el("dd", null, value, small ? el("small", null, small) : null)));
  const side = (name) => report.sides.find((one) => one.name === name), stock = side("stock"), last = side("optimized");
  if (last) add("Latency", duration(report.optimized_ms), `${duration(report.stock_ms)} in ONNX Runtime alone`);
  if (last) add("Speedup", factor(report.speedup), `95 %: ${last.speedup_low.toFixed(2)} to ${factor(last.speedup_high)}`);
  if (report.kind === "bench") for (const one of report.sides) add(titleOf(one), duration(one.ms), one.p99_ms ? `p99 ${duration(one.p99_ms)}` : "");
  if (stats) add("Nodes", report.after.nodes.toLocaleString("en"), `from ${report.before.nodes.toLocaleString("en")}`);
  const differences = report.verification ?? [], relative = differences.every((diff) => diff.max_rel !== null), apart = differences.map((diff) => relative ? diff.max_rel : diff.max_abs);
  const worst = apart.includes(null) ? null : Math.max(0, ...apart);
  if (report.verified && !quantized) add("Largest difference", scientific(worst), `${relative ? "of the largest value, " : ""}on ${plural(report.feeds.filter((feed) => !feed.dropped).length, "set")} of inputs`);
  if (quantized) add("Drop", report.quantization.drop === null ? "not judged" : digits(report.quantization.drop, 3) + "\u00a0%", `of ${shown(report.quantization.metric)}; ${digits(report.quantization.max_drop, 3)} % allowed`);
  if (stats) add("Weights", bytes(report.after.weight_bytes), `from ${bytes(report.before.weight_bytes)}`);
  if (last?.memory_bytes && stock?.memory_bytes) add("Memory to load and run", bytes(last.memory_bytes), `${bytes(stock.memory_bytes)} in ONNX Runtime alone`);
  return el("dl", { class: "tiles" }, list);
}

function speedSection() {
  if (!report.sides.length) return null;
  const rows = report.sides.map((side) => ({ name: titleOf(side), value: side.ms, low: side.low_ms, high: side.high_ms, colour: sideColours[side.name] ?? (side === report.sides[0] ? "--before" : "--after"),
    text: duration(side.ms), more: side === report.sides[0] ? "" : factor(side.speedup) }));
  const numbers = table([{ title: "Side", value: titleOf }, { title: "Median", value: (s) => s.ms, cell: (s) => duration(s.ms), number: true },
    { title: "95 % interval", value: (s) => s.low_ms, cell: (s) => `${duration(s.low_ms)} to ${duration(s.high_ms)}`, number: true },
    { title: "Speedup", value: (s) => s.speedup, cell: (s) => factor(s.speedup), number: true },
    { title: "95 % interval", value: (s) => s.speedup_low, cell: (s) => `${s.speedup_low.toFixed(2)} to ${factor(s.speedup_high)}`, number: true },
    ...(report.sides.some((s) => s.p99_ms) ? [{ title: "p99", value: (s) => s.p99_ms, cell: (s) => duration(s.p99_ms), number: true }, { title: "Runs per second", value: (s) => s.runs_per_second, cell: (s) => digits(s.runs_per_second, 4), number: true }] : []),
    ...(report.sides.some((s) => s.memory_bytes) ? [{ title: "Memory", value: (s) => s.memory_bytes, cell: (s) => s.memory_bytes ? bytes(s.memory_bytes) : "–", number: true }] : [])], report.sides, { caption: "Times of one run" });
  return section("speed", "Speed", `Time of one run on ${plural(report.machine.threads, "thread")}, less is better. The sides took turns; whiskers are 95 % intervals of the median.`,
    bars(rows, "Time of one run: " + rows.map((row) => `${row.name} ${row.text} ${row.more}`).join(", ")), numbers);
}

/** Times of a side by kind of op. */
function byKind(side) {
  const whole = sum(side.nodes, (node) => node.ms);
  return [...grouped(side.nodes, (node) => node.op)].map(([op, nodes]) => {
    const counted = nodes.filter((node) => node.share_of_peak), ms = sum(nodes, (node) => node.ms);
    return { op, nodes: nodes.length, ms, part: share(ms, whole), peak: counted.length ? sum(counted, (node) => node.share_of_peak * node.ms) / sum(counted, (node) => node.ms) : null };
  }).sort((a, b) => b.ms - a.ms);
}

function meter(part, op) {
  return el("span", { class: "meter", "aria-hidden": "true" }, el("i", { style: `width:${(100 * part).toFixed(1)}%;background:var(${familyColour(op)})` }));
}

function timeSection(pick) {
  const sides = report.sides.filter((side) => side.nodes.length);
  if (!sides.length) return null;
  const kinds = sides.map((side) => {
    const rows = byKind(side);
    return el("div", null, el("h3", null, `${titleOf(side)}: ${duration(sum(side.nodes, (node) => node.ms))}`),
      el("div", { class: "stack", role: "img", "aria-label": rows.slice(0, 6).map((row) => `${row.op} ${percent(row.part)}`).join(", ") }, rows.map((row) => el("i", { style: `flex:${row.part};background:var(${familyColour(row.op)})`, title: shown(`${row.op}: ${percent(row.part)}`) }))),
      table([{ title: "Kind of op", value: (r) => plain(r.op), cell: (r) => [swatch(r.op), shown(plain(r.op))], kind: "op" }, { title: "Nodes", value: (r) => r.nodes, number: true }, { title: "Time", value: (r) => r.ms, cell: (r) => duration(r.ms), number: true },
        { title: "Share", value: (r) => r.part, cell: (r) => [percent(r.part), meter(r.part, r.op)], number: true },
        { title: "Of peak", value: (r) => r.peak, cell: (r) => r.peak === null ? "–" : percent(r.peak), number: true }], rows, { caption: `Time by kind of op, ${titleOf(side)}`, first: 10 }));
  });
  const all = sides.flatMap((side) => { const whole = sum(side.nodes, (node) => node.ms); return side.nodes.map((node) => ({ ...node, side, part: share(node.ms, whole) })); });
  const { peak } = report.machine;
  return section("time", "Where the time goes", "From profiles of whole runs, in which every node costs a little more than without." + (peak?.float32 ? ` The peak was measured: ${count(peak.float32)} operations per second in float32, ${count(peak.int8)} in int8, ${count(peak.bf16)} in bfloat16. Convolutions count as their definition computes them, so minimal filtering may come out above it; – stands where no products count.` : ""),
    el("div", { class: "halves" }, kinds),
    table([{ title: "Node", value: (r) => r.name, cell: (r) => el("code", null, shown(r.name)), kind: "name" }, { title: "Op", value: (r) => plain(r.op), cell: (r) => [swatch(r.op), shown(plain(r.op))], kind: "op" }, { title: "Side", value: (r) => titleOf(r.side) },
      { title: "Time", value: (r) => r.ms, cell: (r) => duration(r.ms), number: true }, { title: "Share", value: (r) => r.part, cell: (r) => [percent(r.part), meter(r.part, r.op)], number: true },
      { title: "Of peak", value: (r) => r.share_of_peak ?? null, cell: (r) => r.share_of_peak ? percent(r.share_of_peak) : "–", number: true }], all,
    { caption: "Time of every node as the runtime names it", search: "Search nodes, ops, sides", sorted: [3, true], onpick: (row) => pick?.(row.side.graph, row.name) }));
}
