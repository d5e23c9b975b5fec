// The page from top to bottom.

function graphSection() {
  const graphs = report.graphs.filter((graph) => graph.nodes.length);
  if (!graphs.length) return [null, null];
  const made = explorer(graphs.slice(0, 2));
  const lead = graphs.length > 1 ? "Boxes in full colour are fused ops: select one to see what it replaced." : "";
  return [section("graph", graphs.length > 1 ? "The graph before and after" : "The graph", lead, made.element), (graphName, nodeName) => {
    const graph = graphs.find((one) => one.name === graphName), index = graph?.nodes.findIndex((node) => node.name === nodeName) ?? -1;
    if (index < 0) return;
    document.getElementById("graph").scrollIntoView();
    made.pick(graph, index);
  }];
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  document.getElementById("theme").textContent = theme === "dark" ? "☀" : "☾";
  repainted.forEach((paint) => paint());
}

function main() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  setTheme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
  document.getElementById("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  document.title = `${baseName(report.input || "report")} – ModelFlow`;
  const where = [report.machine.cpu, report.runtime, report.created.slice(0, 10)].filter(Boolean).map(shown).join(" · ");
  let pick = null;
  const speed = speedSection(), time = timeSection((graph, name) => pick?.(graph, name)), [graph, picker] = graphSection();
  pick = picker;
  const rest = [precisionSection(), memorySection(), countsSection(), verificationSection(), passesSection(), refusalsSection(), madeSection()];
  document.getElementById("content").replaceChildren(el("p", { class: "eyebrow" }, where), el("h1", null, headline()), tiles(),
    ...[speed, time, graph, ...rest].filter(Boolean), el("footer", null, `ModelFlow ${shown(report.version)}. This file needs no network and nothing beside it; the JSON report holds the same numbers.`));
  const short = { speed: "Speed", time: "Time", graph: "Graph", precision: "Precision", memory: "Memory", counts: "Model", verification: "Results", passes: "Passes", refusals: "Refusals", made: "Setup" };
  document.getElementById("nav").append(...sections.map(({ id }) => el("a", { href: `#${id}` }, short[id])));
}
main();
