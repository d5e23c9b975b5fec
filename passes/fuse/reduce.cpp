// A reduction with the elementwise ops in front of it and behind it, or alone where that is slow -> modelflow.Reduce:
// L2 normalization, means under a mask as sentence embedders write them, variances that are no LayerNorm.
#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/fuse/columns.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/program.h"
#include "passes/graph/edits.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

constexpr std::size_t kMostInputs = 7;
constexpr std::int64_t kNumbers = 4;  ///< in a row: what is worth a loop (measured)

/// The axes of a reduction, side by side, counted from the end.
struct Axes {
  std::int64_t first = -1, count = 1;
  std::int64_t behind = 1;  ///< elements side by side behind them
};

Verdict read_axes(const Node& node, Axes& axes) {
  const auto rank = static_cast<std::int64_t>(rank_of(node.input(0)).value_or(0));
  std::optional<Ints> list = setting(node, "axes", 1);
  if (list) list = positive(*list, rank);
  if (!list || list->empty()) return no("its axes are unknown, or all of a value of unknown rank");
  std::sort(list->begin(), list->end());
  for (std::size_t i = 1; i < list->size(); ++i)
    if ((*list)[i] != (*list)[i - 1] + 1) return no("its axes do not stand side by side");
  if (rank >= 4 && list->front() == 2 && list->back() + 1 == rank)
    return no("the channels of its image may still become the last axis");
  const auto elements = [&](std::int64_t from) {
    return elements_from(node.input(0)->shape(), static_cast<std::size_t>(from)).value_or(kNumbers);
  };
  axes = {list->front() - rank, static_cast<std::int64_t>(list->size()), elements(list->back() + 1)};
  const bool few = axes.behind == 1 && elements(list->front()) < kNumbers;
  return few ? no("its rows are too short") : yes();
}

/// What ONNX Runtime takes five times as long for as the kernel here (CPU, measured): sums across rows, and squares.
bool is_slow_alone(const Node& reduction, const Axes& axes, const Target& target) {
  if (target.device != Device::cpu) return false;
  return axes.behind > 1 || reduction.is("ReduceL2") || reduction.is("ReduceSumSquare");
}

/// The reduction and what follows it, each the only reader of the one before: of the reduced shape, later of the whole.
std::vector<Node*> chain(Node& reduction, const Shape& whole, Extents& extents, std::int64_t opset,
                         const std::unordered_set<const Node*>& taken) {
  std::vector<Node*> nodes = {&reduction};
  const Shape reduced = extents.of(*reduction.output());
  const bool keeps = reduction.attrs.integer("keepdims", 1) != 0;
  bool wide = false;
  while (nodes.size() < kMostLines) {
    Node* next = only_reader(*nodes.back()->output());
    if (!next || &next->graph() != &reduction.graph() || taken.contains(next) || !is_elementwise_line(*next, opset))
      break;
    const std::vector<std::size_t> operands = line_of(*next, opset).operands;
    const bool reads =
        std::ranges::any_of(operands, [&](std::size_t i) { return next->input(i) == nodes.back()->output(); });
    const Shape shape = extents.of(*next->output());
    if (!reads || !shape.has_rank() || !((shape == reduced && !wide) || (keeps && shape == whole))) break;
    wide = wide || !(shape == reduced);
    nodes.push_back(next);
  }
  return nodes;
}

bool fuse_reduction(Node& reduction, Context& context, Extents& extents, std::unordered_set<const Node*>& taken) {
  const std::int64_t opset = context.model.opset();
  if (taken.contains(&reduction) || reduction.input(0)->dtype() != DType::f32) return false;
  const Shape whole = extents.of(*reduction.input(0));
  if (!whole.has_rank() || !extents.of(*reduction.output()).has_rank()) return false;
  std::vector<Node*> nodes = chain(reduction, whole, extents, opset, taken);
  Node& sink = *nodes.back();
  Tree tree(nodes, extents, opset);
  tree.grow(taken, kMostInputs);
  nodes = tree.ordered();
  const std::vector<Value*> inputs = program_inputs(nodes, opset);
  if (inputs.size() > kMostInputs) return false;
  Axes axes;
  const Verdict known = read_axes(reduction, axes);
  if (nodes.size() < 2 && !(known && is_slow_alone(reduction, axes, context.target))) return false;
  if (!known) {
    context.miss("reduce", &reduction, known.reason);
    return false;
  }
  Attrs attrs{{"axis", axes.first}, {"axes", axes.count}, {"keepdims", reduction.attrs.integer("keepdims", 1)}};
  attrs.set("program", program_of(nodes, inputs, opset));
  Graph& graph = sink.graph();
  Node* fused = make_fused(graph, context, "reduce", "modelflow.Reduce", inputs, std::move(attrs), sink);
  if (!fused) return false;
  graph.replace(*sink.output(), *fused->output());
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    extents.forget(*(*node)->output());
    taken.insert(*node);
    graph.erase(**node);
  }
  context.hit("reduce");
  return true;
}

int run(Graph& graph, Context& context) {
  const std::vector<Node*> nodes =
      nodes_of(graph, {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSumSquare"});
  if (nodes.empty() || context.model.opset() < 11) return 0;  // no axes from the end
  Extents extents;
  std::unordered_set<const Node*> taken;
  int changes = 0;
  for (Node* node : nodes) changes += fuse_reduction(*node, context, extents, taken);
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass fuse_reduce() {
  return {.name = "fuse-reduce",
          .doc =
              "A reduction with the elementwise ops in front of it and behind it, or alone where that is slow -> "
              "modelflow.Reduce",
          .run = run};
}

}  // namespace modelflow::passes
