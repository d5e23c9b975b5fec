// The graphs before and after, side by side: picking a node in one shows what it came from or became in the other.

const kMostFound = 12;

/** What is known of nodes besides their graph: time from profiles, kernels, precision, by name. */
const known = (() => {
  const times = new Map();
  for (const side of report.sides ?? []) if (side.graph && side.nodes.length) times.set(side.graph, new Map(side.nodes.map((node) => [node.name, node])));
  return { times, fused: new Map((report.fused ?? []).map((fused) => [fused.node, fused])),
    precision: new Map((report.quantization?.ops ?? []).map((op) => [op.node, op])) };
})();
/** The runtime keeps the name of a node, or names what it made of several by their result. */
function timeOf(graph, node) {
  const runs = known.times.get(graph.name);
  return runs && (runs.get(node.name) ?? node.outputs.map((output) => runs.get(output) ?? runs.get(`${output}_nchwc`)).find(Boolean));
}

/** From cold to hot, for shares of a largest value. */
const heat = (part) => `hsl(${Math.round(210 - 195 * Math.sqrt(part))} ${Math.round(35 + 50 * part)}% ${Math.round(62 - 12 * part)}%)`;

const paints = {
  op: { title: "kind of op", make: (graph) => (i) => familyColour(graph.nodes[i].op), has: () => true },
  time: { title: "time", has: () => known.times.size > 0, make: (graph) => {
    const most = Math.max(...graph.nodes.map((node) => timeOf(graph, node)?.ms ?? 0));
    return (i) => { const run = timeOf(graph, graph.nodes[i]); return run && most ? heat(run.ms / most) : "--line"; };
  } },
  error: { title: "error of lower precision", has: () => [...known.precision.values()].some((op) => op.sqnr_db !== null), make: (graph) => (i) => {
    const op = known.precision.get(graph.nodes[i].name);
    return op?.sqnr_db === null || !op ? "--line" : heat(Math.min(1, Math.max(0, (50 - op.sqnr_db) / 50)));
  } },
  memory: { title: "memory held", has: () => true, make: (graph) => {
    const most = graph.nodes.reduce((least, node) => Math.max(least, node.live_bytes), 1);
    return (i) => heat(graph.nodes[i].live_bytes / most);
  } },
};

function facts(graph, index, pick) {
  const node = graph.nodes[index], run = timeOf(graph, node), fused = graph.name === "before" ? undefined : known.fused.get(node.name), op = known.precision.get(node.name);
  const rows = [["Name", el("code", null, shown(node.name || "(none)"))], ["Result", el("code", null, node.outputs.map((name, i) => `${shown(name)} ${shown(node.types[i] ?? "")}`).join(", "))]];
  if (run) rows.push(["Time", `${duration(run.ms)} per run` + (run.share_of_peak ? `, ${percent(run.share_of_peak)} of the machine's peak` : "")]);
  if (fused?.kernel) rows.push(["Kernel", shown(fused.kernel)]);
  if (op) rows.push(["Precision", op.precision + (op.sqnr_db === null ? "" : `, ${op.sqnr_db.toFixed(1)} dB above its error`) + (op.reason ? `: ${shown(op.reason)}` : "")]);
  if (node.flops) rows.push(["Arithmetic", count(node.flops) + " operations"]);
  if (node.weight_bytes) rows.push(["Weights", bytes(node.weight_bytes)]);
  if (fused?.replaced.length) rows.push(["Body", shown(fused.replaced.join(", "))]);
  return el("dl", { class: "facts" }, rows.map(([name, value]) => [el("dt", null, name), el("dd", null, value)]));
}

function explorer(graphs) {
  const [before, after] = graphs, views = graphs.map((graph) => new GraphView(graph, (index) => pick(graph, index, false)));
  const users = before.nodes.map(() => []);
  after?.nodes.forEach((node, i) => node.sources.forEach((source) => users[source].push(i)));
  const picked = el("div", { class: "picked", "aria-live": "polite" }), found = el("ul", { class: "found" });
  const related = (graph, index) => !after ? [] : graph === after ? after.nodes[index].sources : users[index];

  function pick(graph, index, show = true) {
    const here = graphs.indexOf(graph), there = 1 - here, others = index === null ? [] : related(graph, index);
    views[here].mark(index, [], show);
    views[there]?.mark(null, others, others.length > 0);
    picked.replaceChildren(...(index === null ? [hint()] : described(graph, index, others)));
  }
  function described(graph, index, others) {
    const other = graphs[1 - graphs.indexOf(graph)], node = graph.nodes[index];
    const list = others.slice(0, 60).map((i) => el("li", null, el("button", { type: "button", onclick: () => pick(other, i) }, swatch(other.nodes[i].op), shown(`${plain(other.nodes[i].op)}  ${other.nodes[i].name}`))));
    const what = !other ? null : graph === after
      ? (others.length ? `Stands for ${plural(others.length, "node")} of the original` : "Nothing of the original has its result: it is part of a larger step, or of another layout or precision")
      : (others.length ? `Became part of ${plural(others.length, "node")}` : "Is gone: folded into constants, or nothing reads it any more");
    return [el("h3", null, swatch(node.op), shown(plain(node.op)), el("span", { class: "note" }, ` in the graph ${graph.name}`)), facts(graph, index), what ? el("p", null, what + (others.length > 60 ? ", the first 60:" : others.length ? ":" : ".")) : null,
      list.length ? el("ul", { class: "found" }, list) : null].filter(Boolean);
  }
  const hint = () => el("p", { class: "note" }, after ? "Select a node, here or with the arrow keys, to see what it replaced or became." : "Select a node, here or with the arrow keys.",
    " Drag to move; Ctrl and the wheel, two fingers or + and − zoom; after a click the wheel scrolls the graph.");
  function search(text) {
    const wanted = text.trim().toLowerCase(), hits = [];
    if (wanted) for (const graph of [...graphs].reverse()) graph.nodes.forEach((node, i) => {
      if (`${node.op} ${node.name} ${node.outputs.join(" ")}`.toLowerCase().includes(wanted)) hits.push([graph, i]);
    });
    found.replaceChildren(...hits.slice(0, kMostFound).map(([graph, i]) => el("li", null, el("button", { type: "button", onclick: () => pick(graph, i) }, swatch(graph.nodes[i].op), shown(`${plain(graph.nodes[i].op)}  ${graph.nodes[i].name}`), el("span", { class: "note" }, ` ${graph.name}`)))),
      ...(hits.length > kMostFound ? [el("li", { class: "note" }, `and ${hits.length - kMostFound} more`)] : !hits.length && wanted ? [el("li", { class: "note" }, "Nothing found")] : []));
  }
  function colourBy(kind) {
    views.forEach((view) => { view.paint = paints[kind].make(view.graph); view.draw(); });
    legend.replaceChildren(...legendOf(kind, graphs));
  }
  const legend = el("p", { class: "legend" });
  const kinds = Object.entries(paints).filter(([, paint]) => paint.has());
  const tools = el("div", { class: "tools" },
    el("input", { type: "search", placeholder: "Find a node", "aria-label": "Find a node in the graphs", oninput: (event) => search(event.target.value) }),
    el("label", null, "Colour", el("select", { onchange: (event) => colourBy(event.target.value) }, kinds.map(([name, paint]) => el("option", { value: name }, paint.title)))));
  const panels = views.map((view) => el("div", { class: "panel" }, el("header", null, el("span", null, el("b", null, view.graph.name === "before" ? "Before" : view.graph.name === "after" ? "After" : baseName(view.graph.name)), ` · ${plural(view.graph.nodes.length, "node")}`),
    el("span", null, [["−", "Zoom out", () => view.zoom(0.7)], ["+", "Zoom in", () => view.zoom(1.4)], ["Fit", "Show the whole graph", () => view.fit()]].map(([text, label, act]) => el("button", { type: "button", class: "quiet", "aria-label": `${label}: ${view.graph.name}`, onclick: act }, text)))), view.canvas));
  colourBy("op");
  picked.append(hint());
  repainted.push(() => views.forEach((view) => view.draw()));
  return { element: el("div", null, tools, found, el("div", { class: after ? "graphs" : "graphs one" }, panels), legend, picked), pick, views };
}

function legendOf(kind, graphs) {
  if (kind !== "op") return [el("span", null, el("i", { class: "swatch", style: `background:${heat(0)}` }), "little"), el("span", null, el("i", { class: "swatch", style: `background:${heat(1)}` }), "most"),
    el("span", null, el("i", { class: "swatch", style: "background:var(--line)" }), "not known: the runtime joins such nodes with others, or they take no part")];
  const seen = new Map();
  for (const graph of graphs) for (const node of graph.nodes) { const c = familyColour(node.op); if (c !== "--k7") seen.set(family(node.op), node.op); }
  return [...[...seen].map(([name, op]) => el("span", null, swatch(op), shown(name))), el("span", null, el("i", { class: "swatch", style: "background:var(--k7)" }), "other"), ...(graphs.length > 1 ? [el("span", null, "Full colour: fused ops")] : [])];
}
