// The report as JSON.
#include <nlohmann/json.hpp>

#include "modelflow/report.h"

namespace modelflow {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const ModelStats& stats) {
  return {{"nodes", stats.nodes},
          {"ops", stats.ops},
          {"parameters", stats.parameters},
          {"flops", stats.flops},
          {"weight_bytes", stats.weight_bytes}};
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

Json json_of(const std::optional<QuantizationReport>& quantization) {
  if (!quantization) return nullptr;
  const QuantizationReport& q = *quantization;
  return {{"precision", q.precision}, {"metric", q.metric},
          {"max_drop", q.max_drop},   {"drop", q.drop},
          {"samples", q.samples},     {"outputs", list_of(q.outputs)},
          {"ops", list_of(q.ops)},    {"frontier", list_of(q.frontier)}};
}

}  // namespace

std::string Report::json() const {
  const Json json = {{"version", version},
                     {"input", input},
                     {"target", target},
                     {"level", level},
                     {"runtime", runtime},
                     {"before", json_of(before)},
                     {"after", json_of(after)},
                     {"steps", list_of(steps)},
                     {"fused", list_of(fused)},
                     {"regions", list_of(regions)},
                     {"feeds", list_of(feeds)},
                     {"faults", list_of(faults)},
                     {"verification", list_of(verification)},
                     {"verified", verified},
                     {"quantization", json_of(quantization)},
                     {"stock_ms", stock_ms},
                     {"optimized_ms", optimized_ms},
                     {"speedup", speedup},
                     {"notes", notes}};
  // Names come from the model and may hold any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace modelflow
