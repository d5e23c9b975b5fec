// Counts of a model's nodes, weights and operations.
#include "src/measure/describe.h"

#include <algorithm>
#include <optional>
#include <set>

#include "src/input_shape.h"
#include "src/measure/draw.h"
#include "src/measure/roofline.h"

namespace modelflow {
namespace {

void count(const Tensor& tensor, ModelStats& stats) {
  stats.parameters += static_cast<double>(tensor.elements());
  if (tensor.dtype() != DType::string) stats.weight_bytes += static_cast<double>(tensor.bytes());
}

bool known(const Value* value) { return !value || value->shape().known(); }

/// Of all that computes.
bool extents_known(const Graph& graph) {
  return std::ranges::all_of(graph.nodes(), [](const auto& node) {
    return std::ranges::all_of(node->subgraphs(), [](const Graph* inner) { return extents_known(*inner); }) &&
           (!has_products(*node) ||
            (std::ranges::all_of(node->inputs(), known) && std::ranges::all_of(node->outputs(), known)));
  });
}

void count(const Graph& graph, ModelStats& stats, std::set<const Tensor*>& seen) {
  for (const Value* value : graph.initializers()) {
    if (seen.insert(value->initializer()).second) count(*value->initializer(), stats);
  }
  for (const auto& node : graph.nodes()) {
    // Paddle keeps its weights in Constant nodes.
    if (const Tensor* tensor = node->is("Constant") ? node->attrs.tensor("value") : nullptr) count(*tensor, stats);
    ++stats.nodes;
    ++stats.ops[shown_op(*node)];
    stats.flops += work_of(*node).operations;
    for (const Graph* inner : node->subgraphs()) count(*inner, stats, seen);
  }
}

/// `sized`: the same graph where more extents are known.
void list(const Model& model, const Graph& graph, const Graph& sized, const Target& target,
          std::vector<FusedReport>& rows) {
  auto same = sized.nodes().begin();
  for (const auto& node : graph.nodes()) {
    const Node& sized_node = **same++;
    const std::vector<Graph*> inner = node->subgraphs(), sized_inner = sized_node.subgraphs();
    for (std::size_t k = 0; k < inner.size(); ++k) list(model, *inner[k], *sized_inner[k], target, rows);
    if (node->domain() != kDomain) continue;
    const Call call = call_by_kind(*node);
    const Choice choice = choose_kernel(call, target);
    FusedReport row{.node = node->name, .op = call.op, .kernel = "", .replaced = {}};
    if (choice.kernel) {
      row.kernel = choice.kernel->name;
      row.predicted_seconds = choice.kernel->cost(call_by_kind(sized_node), target);
    }
    for (const Function& function : model.functions)
      if (function.domain == kDomain && function.name == node->op())
        for (const auto& inner : function.body->nodes())
          if (!inner->is("Constant") && (!inner->is("Transpose") || call.op == "Transpose"))
            row.replaced.push_back(inner->op());
    rows.push_back(std::move(row));
  }
}

}  // namespace

Call call_by_kind(const Node& node) {
  Call call = call_of(node);
  if (const std::string_view kind = kind_of(node.op(), node.attrs); !kind.empty()) call.op = kind;
  return call;
}

std::string shown_op(const Node& node) {
  if (node.domain().empty()) return node.op();
  if (node.domain() != kDomain) return node.domain() + "." + node.op();
  const std::string_view kind = kind_of(node.op(), node.attrs);
  return std::string(kDomain) + "." + (kind.empty() ? node.op() : std::string(kind));
}

ModelStats stats(const Model& model) {
  Model typed = model;
  infer_types(typed);
  return typed_stats(typed);
}

ModelStats changed_stats(const Model& model) {
  return extents_known(model.graph()) ? typed_stats(model) : stats(model);
}

ModelStats typed_stats(const Model& model) {
  ModelStats stats;
  std::set<const Tensor*> seen;
  count(model.graph(), stats, seen);
  return stats;
}

void describe_at(const Model& original, const Model* result, const Model& fused,
                 const std::map<std::string, Dims>& inputs, Report& report) {
  const bool open = leaves_extents_open(original);
  const auto look = [&](const char* name, const Model& model, ModelStats& stats) {
    const Model sized = for_input_shapes(model, inputs);
    if (open) stats.flops = typed_stats(sized).flops;
    stats.activation_bytes = activation_bytes(sized);
    if (sized.graph().nodes().size() <= kMostDrawn) report.graphs.push_back(drawn(name, sized));
  };
  look("before", original, report.before);
  if (result) look("after", *result, report.after);
  if (!result) report.after = report.before;
  if (report.graphs.size() == 2) find_sources(report.graphs[0], results_of(fused), report.graphs[1]);
}

std::vector<FusedReport> fused_report(const Model& model, const std::map<std::string, Dims>& inputs,
                                      const Target& target) {
  std::vector<FusedReport> rows;
  const std::optional<Model> sized =
      extents_known(model.graph()) ? std::nullopt : std::optional(for_input_shapes(model, inputs));
  list(model, model.graph(), sized ? sized->graph() : model.graph(), target, rows);
  return rows;
}

}  // namespace modelflow
