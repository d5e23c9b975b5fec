// Pages and traces of comparisons.
#include "bench_page.h"

#include <ctime>
#include <nlohmann/json.hpp>
#include <set>

#include "modelflow/modelflow.h"
#include "src/flow/report_json.h"
#include "src/input_shape.h"
#include "src/measure/draw.h"
#include "src/measure/sides.h"

namespace modelflow::tools {
namespace {

/// Blocks are what takes turns.
Timing timing_of(const Side& side) {
  Timing timing;
  timing.sessions = {side.medians};
  return timing;
}

std::vector<GraphReport> graphs_of(const BenchReport& report, const Feeds& feeds) {
  constexpr std::size_t kSideBySide = 2;
  std::map<std::string, Dims> extents;
  for (const auto& [input, tensor] : feeds) extents[input] = tensor.dims();
  std::vector<GraphReport> graphs;
  std::set<std::string> seen;
  for (const Side& side : report.sides) {
    if (graphs.size() == kSideBySide || !seen.insert(side.model).second) continue;
    const Model model = for_input_shapes(Model::load(side.model), extents);
    if (model.graph().nodes().size() <= kMostDrawn) graphs.push_back(drawn(side.model, model));
  }
  if (graphs.size() == kSideBySide) find_sources(graphs[0], {}, graphs[1]);
  return graphs;
}

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm utc = {};
  char text[32] = {};
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &utc));
  return text;
}

}  // namespace

std::string page_of(const BenchReport& report, const Feeds& feeds, const std::string& command) {
  Report page;
  page.version = version();
  page.command = command;
  page.created = now();
  page.input = report.sides.back().model;
  page.runtime = "ONNX Runtime " + report.runtime;
  page.machine = this_machine(report.threads);
  page.machine.peak_float32 = report.peak.float32;
  page.machine.peak_bf16 = report.peak.bf16;
  page.machine.peak_int8 = report.peak.int8;
  page.graphs = graphs_of(report, feeds);
  const Timing base = timing_of(report.sides.front());
  for (const Side& side : report.sides) {
    SideReport row = side_report(side.name, side.model, base, timing_of(side));
    row.memory_bytes = side.memory_bytes;
    row.nodes = node_runs(side.nodes, Model::load(side.model), page.machine);
    page.sides.push_back(std::move(row));
  }
  Json json = json_of(page);
  json["kind"] = "bench";
  for (std::size_t i = 0; i < report.sides.size(); ++i) {
    json["sides"][i]["p99_ms"] = report.sides[i].percentile(99) * 1e3;
    json["sides"][i]["runs_per_second"] = report.sides[i].runs_per_second();
  }
  return modelflow::page_of(json);
}

std::string trace_of(const BenchReport& report) {
  Json events = Json::array();
  for (std::size_t i = 0; i < report.sides.size(); ++i) {
    const Side& side = report.sides[i];
    events.push_back({{"ph", "M"}, {"pid", i + 1}, {"name", "process_name"}, {"args", {{"name", side.name}}}});
    for (Json event : Json::parse(side.events, nullptr, /*allow_exceptions=*/false)) {
      if (!event.is_object()) continue;
      event["pid"] = i + 1;
      events.push_back(std::move(event));
    }
  }
  const Json trace = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  return trace.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace modelflow::tools
