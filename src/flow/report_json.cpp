// The report as JSON.
#include "src/flow/report_json.h"

namespace modelflow {
namespace {

Json json_of(const ModelStats& stats) {
  return {{"nodes", stats.nodes},
          {"ops", stats.ops},
          {"parameters", stats.parameters},
          {"flops", stats.flops},
          {"weight_bytes", stats.weight_bytes},
          {"activation_bytes", stats.activation_bytes}};
}

Json json_of(const Miss& miss) {
  return {{"rule", miss.rule}, {"node", miss.node}, {"reason", miss.reason}, {"matched", miss.matched}};
}

Json json_of(const StepReport& step);
Json json_of(const FusedReport& fused);
Json json_of(const RegionReport& region);
Json json_of(const OutputDiff& diff);
Json json_of(const FeedReport& feed);
Json json_of(const Fault& fault);
Json json_of(const OutputError& error);
Json json_of(const QuantizedReport& op);
Json json_of(const FrontierPoint& point);
Json json_of(const NodeRun& node);
Json json_of(const SideReport& side);
Json json_of(const NodeReport& node);
Json json_of(const GraphReport& graph);

/// Infinity, which JSON lacks, is null as well.
Json json_of(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

template <class T>
Json list_of(const std::vector<T>& items) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(json_of(item));
  return list;
}

Json json_of(const StepReport& step) {
  return {{"stage", step.stage},
          {"name", step.name},
          {"seconds", step.seconds},
          {"nodes_before", step.nodes_before},
          {"nodes_after", step.nodes_after},
          {"hits", step.hits},
          {"misses", list_of(step.misses)}};
}

Json json_of(const FusedReport& fused) {
  return {{"node", fused.node},
          {"op", fused.op},
          {"kernel", fused.kernel},
          {"replaced", fused.replaced},
          {"predicted_seconds", fused.predicted_seconds}};
}

Json json_of(const RegionReport& region) {
  return {{"name", region.name},
          {"nodes", region.nodes},
          {"stock_seconds", region.stock_seconds},
          {"fused_seconds", region.fused_seconds},
          {"kept", region.kept},
          {"reason", region.reason}};
}

Json json_of(const OutputDiff& diff) {
  return {{"output", diff.output},         {"max_abs", diff.max_abs}, {"max_rel", diff.max_rel},
          {"equal_type", diff.equal_type}, {"ok", diff.ok},           {"feed", diff.feed},
          {"explained", diff.explained}};
}

Json json_of(const FeedReport& feed) {
  return {{"name", feed.name},
          {"why", feed.why},
          {"shapes", feed.shapes},
          {"kinds_only", feed.kinds_only},
          {"dropped", feed.dropped}};
}

Json json_of(const Fault& fault) {
  return {{"pass", fault.pass}, {"rule", fault.rule}, {"kernel", fault.kernel},
          {"node", fault.node}, {"feed", fault.feed}, {"difference", json_of(fault.difference)},
          {"what", fault.what}};
}

Json json_of(const OutputError& error) {
  return {{"output", error.output},
          {"relative_l2", error.relative_l2},
          {"sqnr_db", json_of(error.sqnr)},
          {"cosine", error.cosine},
          {"top1", json_of(error.top1)}};
}

Json json_of(const QuantizedReport& op) {
  return {{"node", op.node},
          {"op", op.op},
          {"precision", op.precision},
          {"sqnr_db", json_of(op.sqnr)},
          {"reason", op.reason}};
}

Json json_of(const FrontierPoint& point) {
  return {{"quantized", point.quantized},
          {"precisions", point.precisions},
          {"drop", point.drop},
          {"speedup", point.speedup},
          {"chosen", point.chosen}};
}

Json json_of(const NodeRun& node) {
  Json json = {{"name", node.name}, {"op", node.op}, {"ms", node.ms}};
  if (node.operations == 0) return json;
  json["operations"] = node.operations;
  json["share_of_peak"] = json_of(node.share_of_peak);
  return json;
}

Json json_of(const SideReport& side) {
  return {{"name", side.name},
          {"graph", side.graph},
          {"ms", side.ms},
          {"low_ms", side.low_ms},
          {"high_ms", side.high_ms},
          {"speedup", side.speedup},
          {"speedup_low", side.speedup_low},
          {"speedup_high", side.speedup_high},
          {"memory_bytes", side.memory_bytes},
          {"nodes", list_of(side.nodes)}};
}

Json json_of(const NodeReport& node) {
  return {{"name", node.name},
          {"op", node.op},
          {"inputs", node.inputs},
          {"outputs", node.outputs},
          {"types", node.types},
          {"sources", node.sources},
          {"flops", node.flops},
          {"weight_bytes", node.weight_bytes},
          {"live_bytes", node.live_bytes}};
}

Json json_of(const GraphReport& graph) {
  return {{"name", graph.name}, {"inputs", graph.inputs}, {"outputs", graph.outputs}, {"nodes", list_of(graph.nodes)}};
}

Json json_of(const MachineReport& machine) {
  return {{"cpu", machine.cpu},
          {"isas", machine.isas},
          {"system", machine.system},
          {"cores", machine.cores},
          {"threads", machine.threads},
          {"memory_bytes", machine.memory_bytes},
          {"peak", {{"float32", machine.peak_float32}, {"bf16", machine.peak_bf16}, {"int8", machine.peak_int8}}}};
}

Json json_of(const std::optional<QuantizationReport>& quantization) {
  if (!quantization) return nullptr;
  const QuantizationReport& q = *quantization;
  return {{"precision", q.precision}, {"metric", q.metric},
          {"max_drop", q.max_drop},   {"drop", q.drop},
          {"samples", q.samples},     {"outputs", list_of(q.outputs)},
          {"ops", list_of(q.ops)},    {"frontier", list_of(q.frontier)}};
}

}  // namespace

Json json_of(const Report& report) {
  const Report& r = report;
  return {{"version", r.version},
          {"input", r.input},
          {"target", r.target},
          {"level", r.level},
          {"runtime", r.runtime},
          {"command", r.command},
          {"created", r.created},
          {"machine", json_of(r.machine)},
          {"before", json_of(r.before)},
          {"after", json_of(r.after)},
          {"steps", list_of(r.steps)},
          {"fused", list_of(r.fused)},
          {"regions", list_of(r.regions)},
          {"feeds", list_of(r.feeds)},
          {"faults", list_of(r.faults)},
          {"verification", list_of(r.verification)},
          {"verified", r.verified},
          {"quantization", json_of(r.quantization)},
          {"stock_ms", r.stock_ms},
          {"optimized_ms", r.optimized_ms},
          {"speedup", r.speedup},
          {"sides", list_of(r.sides)},
          {"graphs", list_of(r.graphs)},
          {"notes", r.notes}};
}

// Names come from the model and may hold any bytes.
std::string Report::json() const { return json_of(*this).dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace modelflow
