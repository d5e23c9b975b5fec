// Lower precision, memory, verification, passes, refusals, and where all this was made.

const sections = [];
const repainted = [];  // what to do when colours change
/** A card with a heading and a place in the navigation. */
function section(id, title, lead, ...content) {
  sections.push({ id, title });
  return el("section", { class: "card", id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), lead ? el("p", { class: "lead" }, lead) : null, content);
}

function precisionSection() {
  const q = report.quantization;
  if (!q) return null;
  const lowered = q.ops.filter((op) => op.precision !== "float32"), points = q.frontier.filter((point) => point.speedup > 0 && point.drop !== null);
  const decibels = (value) => value === null ? "–" : value.toFixed(1) + "\u00a0dB";
  const frontier = points.length > 0 ? [el("h3", null, "Accuracy against speed"), scatter(points.map((p) => ({ x: p.drop, y: p.speedup, chosen: p.chosen, title: `${plural(p.quantized, "op")} in lower precision: ${digits(p.drop, 3)} %, ${factor(p.speedup)}` })),
    ["per cent of the metric that it costs", "speedup over float32"], `Accuracy against speed of ${plural(points.length, "choice")}`)] : [];
  const tried = q.frontier.length ? table([{ title: "Ops in lower precision", value: (p) => p.quantized, number: true }, { title: "Of which", value: (p) => Object.entries(p.precisions).map(([name, n]) => `${name} ${n}`).join(", ") },
    { title: "Drop", value: (p) => p.drop, cell: (p) => p.drop === null ? "not judged" : digits(p.drop, 3) + "\u00a0%", number: true }, { title: "Over float32", value: (p) => p.speedup, cell: (p) => p.speedup ? factor(p.speedup) : "not timed", number: true },
    { title: "Choice", value: (p) => p.chosen ? "chosen" : "" }], q.frontier, { caption: "What was tried" }) : null;
  return section("precision", "Lower precision", `${shown(q.precision)}: ${lowered.length} of ${plural(q.ops.length, "op")} that it was asked for. ${q.drop === null ? "Nothing judged what it costs. " : `It costs ${digits(q.drop, 3)} % of ${shown(q.metric)}, of ${digits(q.max_drop, 3)} % allowed. `}${q.samples ? `Calibrated on ${plural(q.samples, "sample")}.` : ""}`,
    el("div", { class: "halves" }, el("div", null, frontier, tried),
      el("div", null, q.outputs.length ? table([{ title: "Output", value: (o) => o.output, cell: (o) => el("code", null, shown(o.output)), kind: "name" }, { title: "SQNR", value: (o) => o.sqnr_db, cell: (o) => decibels(o.sqnr_db), number: true }, { title: "Cosine", value: (o) => o.cosine, cell: (o) => o.cosine?.toFixed(5) ?? "–", number: true },
        { title: "Top 1", value: (o) => o.top1, cell: (o) => o.top1 === null ? "–" : percent(o.top1), number: true }], q.outputs, { caption: "Outputs against float32" }) : null)),
    table([{ title: "Op", value: (o) => o.node, cell: (o) => el("code", null, shown(o.node)), kind: "name" }, { title: "Kind", value: (o) => o.op }, { title: "Precision", value: (o) => o.precision }, { title: "SQNR", value: (o) => o.sqnr_db, cell: (o) => decibels(o.sqnr_db), number: true },
      { title: "Why not lower", value: (o) => o.reason, kind: "text" }], q.ops, { caption: "Precision and error of every op", search: "Search ops and reasons" }));
}

function memorySection() {
  const drawn = report.graphs.filter((graph) => graph.nodes.length), measured = report.sides.filter((side) => side.memory_bytes);
  if (!stats && !drawn.length && !measured.length) return null;
  const peak = (graph) => graph.nodes.reduce((most, node) => Math.max(most, node.live_bytes), 0);
  const line = (name, before, after) => ({ name, before, after });
  const rows = stats ? [line("Weights, counted", report.before.weight_bytes, report.after.weight_bytes), line("Values held at once, counted", report.before.activation_bytes, report.after.activation_bytes)] : [];
  const of = (name) => report.sides.find((side) => side.name === name)?.memory_bytes;
  if (of("stock") && of("optimized")) rows.push(line("To load and run, measured", of("stock"), of("optimized")));
  const curveColours = ["--before", "--after"];
  return section("memory", "Memory", "Counted: what the model itself holds, every value from the node that makes it to the last that reads it, at the shapes that ran; runtimes write over values where they can, and kernels need space of their own. Measured: what the process grew by at most while it loaded and ran the model, weights prepared for kernels among it.",
    rows.length ? table([{ title: "What", value: (r) => r.name }, { title: "Before", value: (r) => r.before, cell: (r) => bytes(r.before), number: true }, { title: "After", value: (r) => r.after, cell: (r) => bytes(r.after), number: true },
      { title: "Change", value: (r) => share(r.after, r.before), cell: (r) => Math.abs(share(r.after, r.before) - 1) < 0.0005 ? "same" : r.before ? (r.after >= r.before ? "+" : "−") + percent(Math.abs(r.after / r.before - 1)) : "–", number: true }], rows, { caption: "Memory before and after" }) : null,
    drawn.length ? [el("h3", null, "Values held from the first node to the last"), curves(drawn.map((graph, i) => ({ values: graph.nodes.map((node) => node.live_bytes), colour: curveColours[i] ?? "--middle", name: graph.name })), [narrow() ? "nodes in running order" : "nodes in running order, each graph over the whole width", "held"], (v) => bytes(v),
      "Bytes of values that are held while each node runs. " + drawn.map((graph) => `Graph ${graph.name}: at most ${bytes(peak(graph))}`).join(", ")),
    el("p", { class: "legend" }, drawn.map((graph, i) => el("span", null, el("i", { class: "swatch", style: `background:var(${curveColours[i] ?? "--middle"})` }), `${shown(graph.name)}, at most ${bytes(peak(graph))}`)))] : null);
}

function verificationSection() {
  if (!report.verification?.length && !report.feeds?.length) return null;
  const ran = report.feeds.filter((feed) => !feed.dropped), bad = report.verification.filter((diff) => !diff.ok);
  const verdict = !report.verified ? "Original and result were not compared." : bad.length ? `${plural(bad.length, "output")} differ by more than the bound.` : `Every output agrees on ${plural(ran.length, "set")} of inputs, with the plugin and without it.`;
  return section("verification", "Same results", verdict,
    report.faults.length ? [el("h3", null, "Found wrong and left out"), el("ul", null, report.faults.map((fault) => el("li", null, shown(fault.what))))] : null,
    report.verification.length ? table([{ title: "Output", value: (d) => d.output, cell: (d) => el("code", null, shown(d.output)), kind: "name" }, { title: "Largest difference", value: (d) => d.max_abs, cell: (d) => scientific(d.max_abs), number: true },
      { title: "Relative", value: (d) => d.max_rel, cell: (d) => scientific(d.max_rel), number: true }, { title: "On", value: (d) => d.feed || "equal on all" }, { title: "Verdict", value: (d) => d.ok, cell: (d) => el("span", { class: d.ok ? "good" : "bad" }, d.ok ? "agrees" : "differs", d.explained ? `: ${shown(d.explained)}` : ""), kind: "text" }], report.verification, { caption: "Largest differences", search: "Search outputs" }) : null,
    report.feeds.length ? [table([{ title: "Inputs", value: (f) => f.name, kind: "name" }, { title: "Idea", value: (f) => f.why, kind: "text" }, { title: "Shapes", value: (f) => Object.entries(f.shapes).map(([name, shape]) => `${name} ${shape}`).join(", "), cell: (f) => el("code", null, Object.entries(f.shapes).map(([name, shape]) => `${shown(name)} ${shown(shape)}`).join(", ")), kind: "text" },
      { title: "Use", value: (f) => f.dropped ? `not run: ${f.dropped}` : f.kinds_only ? "kinds of numbers compared" : "compared", kind: "note" }], report.feeds, { caption: "What both were run on" })] : null);
}

function passesSection() {
  if (!report.steps?.length) return null;
  const hits = (step) => sum(Object.values(step.hits), (n) => n), rules = (step) => Object.entries(step.hits).map(([rule, n]) => rule === step.name ? `×${n}` : `${rule} ×${n}`).join(", ");
  const busy = report.steps.filter((step) => hits(step) > 0), idle = report.steps.length - busy.length;
  const list = el("div");
  const draw = (steps) => list.replaceChildren(table([{ title: "Stage", value: (s) => s.stage }, { title: "Pass", value: (s) => s.name, kind: "name" }, { title: "Hits", value: hits, number: true }, { title: "Rules", value: rules, kind: "text" },
    { title: "Nodes", value: (s) => s.nodes_after - s.nodes_before, cell: (s) => s.nodes_after === s.nodes_before ? "–" : `${s.nodes_before.toLocaleString("en")} → ${s.nodes_after.toLocaleString("en")}`, number: true }, { title: "Time", value: (s) => s.seconds, cell: (s) => duration(s.seconds * 1e3), number: true }], steps,
  { caption: "Passes in running order", search: "Search passes and rules", first: 40 }));
  draw(busy);
  return section("passes", "Passes", `${plural(report.steps.length, "pass").replace("passs", "passes")} took ${duration(1e3 * sum(report.steps, (step) => step.seconds))}; ${busy.length} of them changed something.`,
    idle ? el("p", null, el("button", { type: "button", "aria-pressed": "false", onclick: (event) => {
      const on = event.target.getAttribute("aria-pressed") !== "true";
      event.target.setAttribute("aria-pressed", on);
      draw(on ? report.steps : busy);
    } }, "Show those that changed nothing, too")) : null, list);
}

/** Refusals by reason, names and numbers in them left out of the comparison. */
function refusalsSection() {
  const misses = (report.steps ?? []).flatMap((step) => step.misses.map((miss) => ({ ...miss, pass: step.name })));
  const back = (report.regions ?? []).filter((region) => !region.kept);
  if (!misses.length && !back.length) return null;
  const groups = [...grouped(misses, (miss) => miss.reason.replace(/'[^']*'/g, "…").replace(/\d+(\.\d+)?/g, "#"))].sort((a, b) => b[1].length - a[1].length);
  return section("refusals", "What did not fire, and why", "Of every rule the closest miss: how many nodes of its pattern fitted, and what stopped it. Grouped by reason.",
    groups.map(([, list]) => el("details", null, el("summary", null, shown(list[0].reason), " ", el("span", { class: "count" }, `(${list.length})`)),
      el("div", null, table([{ title: "Rule", value: (m) => m.rule }, { title: "Pass", value: (m) => m.pass }, { title: "At", value: (m) => m.node, cell: (m) => el("code", null, shown(m.node)), kind: "name" }, { title: "Fitted", value: (m) => m.matched, number: true }, { title: "Reason", value: (m) => m.reason, kind: "text" }],
        list, { caption: "Closest misses", search: "Search rules and nodes", sorted: [3, true] })))),
    back.length ? [el("h3", null, "Taken back because fused was not faster"), table([{ title: "Region", value: (r) => r.name, cell: (r) => el("code", null, shown(r.name)), kind: "name" }, { title: "Stock", value: (r) => r.stock_seconds, cell: (r) => r.stock_seconds ? duration(r.stock_seconds * 1e3) : "–", number: true },
      { title: "Fused", value: (r) => r.fused_seconds, cell: (r) => r.fused_seconds ? duration(r.fused_seconds * 1e3) : "–", number: true }, { title: "Why", value: (r) => r.reason, kind: "text" }], back, { caption: "Regions taken back" })] : null);
}

function madeSection() {
  const m = report.machine, facts = [["Machine", `${m.cpu || "unknown"}, ${plural(m.cores, "core")}, ${bytes(m.memory_bytes)} of memory`], ["Instruction sets", m.isas], ["System", m.system], ["Threads", m.threads],
    ["ModelFlow", report.version], ["Runtime", report.runtime], ["Optimized for", report.target], ["Level", report.level], ["Model", report.input], ["Made", report.created.replace("T", " ").replace("Z", " UTC")]];
  return section("made", "How this was made", null, report.command ? el("pre", { tabindex: "0", "aria-label": "The command" }, shown(report.command)) : null,
    el("dl", { class: "facts" }, facts.filter(([, value]) => value).map(([name, value]) => [el("dt", null, name), el("dd", null, shown(value))])),
    report.notes?.length ? [el("h3", null, "Notes"), el("ul", null, report.notes.map((note) => el("li", null, shown(note))))] : null);
}

function countsSection() {
  if (!stats) return null;
  const { before, after } = report, ops = [...new Set([...Object.keys(before.ops), ...Object.keys(after.ops)])].map((op) => ({ op, before: before.ops[op] ?? 0, after: after.ops[op] ?? 0 }));
  const totals = [["Nodes", before.nodes, after.nodes, (v) => v.toLocaleString("en")], ["Parameters", before.parameters, after.parameters, count], ["Operations of products", before.flops, after.flops, count]];
  return section("counts", "The model", null, el("div", { class: "halves" },
    table([{ title: "What", value: (r) => r[0] }, { title: "Before", value: (r) => r[1], cell: (r) => r[3](r[1]), number: true }, { title: "After", value: (r) => r[2], cell: (r) => r[3](r[2]), number: true }], totals, { caption: "In numbers" }),
    table([{ title: "Op", value: (r) => r.op, cell: (r) => [swatch(r.op), shown(r.op)], kind: "op" }, { title: "Before", value: (r) => r.before, cell: (r) => r.before || "–", number: true }, { title: "After", value: (r) => r.after, cell: (r) => r.after || "–", number: true }], ops, { caption: "Ops", sorted: [1, true], first: 12 })));
}
