// Values that are bounded by what computes them.
#include "src/verify/bounded.h"

#include <algorithm>
#include <initializer_list>
#include <map>

namespace modelflow {
namespace {

constexpr int kDeepest = 64;

bool is_any_of(const Node& node, std::initializer_list<std::string_view> ops) {
  return std::any_of(ops.begin(), ops.end(), [&](std::string_view op) { return node.is(op); });
}

bool is_bounded(const Node& node) {
  return is_any_of(node, {"Sigmoid", "HardSigmoid", "Softmax", "Tanh", "Erf", "Softsign", "Sin", "Cos"});
}

/// The first output is made of elements of the first input, or of means and extremes of them.
bool keeps_bound(const Node& node) {
  return is_any_of(node, {"Reshape",  "Transpose",    "Slice",        "Gather",          "GatherElements",
                          "GatherND", "Squeeze",      "Unsqueeze",    "Flatten",         "Expand",
                          "Tile",     "Identity",     "Split",        "Compress",        "DepthToSpace",
                          "TopK",     "ReduceMax",    "ReduceMin",    "ReduceMean",      "MaxPool",
                          "Abs",      "Neg",          "SpaceToDepth", "ReverseSequence", "GlobalAveragePool",
                          "Relu",     "GlobalMaxPool"});
}

using Known = std::map<const Value*, std::optional<double>>;
std::optional<double> bound(const Value* value, Known& known, int depth);

/// Of these inputs together: none where one of them has none.
std::optional<double> largest(const Node& node, std::size_t first, std::size_t count, Known& known, int depth) {
  double most = 0;
  for (std::size_t i = first; i < first + count; ++i) {
    const std::optional<double> one = bound(node.input(i), known, depth);
    if (!one) return {};
    most = std::max(most, *one);
  }
  return most;
}

std::optional<double> bound_of_result(const Value& value, Known& known, int depth) {
  const Node& node = *value.producer();
  if (is_bounded(node)) return 1;
  if (node.is("TopK") && value.output_index() != 0) return {};
  if (keeps_bound(node)) return bound(node.input(0), known, depth);
  if (node.is("Cast")) return is_float(value.dtype()) ? bound(node.input(0), known, depth) : std::nullopt;
  if (is_any_of(node, {"Concat", "Max", "Min"})) return largest(node, 0, node.inputs().size(), known, depth);
  if (node.is("Where")) return largest(node, 1, 2, known, depth);
  if (!node.is("Mul")) return {};
  const std::optional<double> a = bound(node.input(0), known, depth), b = bound(node.input(1), known, depth);
  return a && b ? std::optional(*a * *b) : std::nullopt;
}

std::optional<double> bound(const Value* value, Known& known, int depth) {
  if (!value || !value->producer() || depth > kDeepest) return {};
  if (const auto found = known.find(value); found != known.end()) return found->second;
  return known[value] = bound_of_result(*value, known, depth + 1);
}

}  // namespace

std::optional<double> bound_of(const Value& value) {
  Known known;
  return bound(&value, known, 0);
}

double floor_of(const Value& value) { return 0x1p-22 * bound_of(value).value_or(0); }

}  // namespace modelflow
