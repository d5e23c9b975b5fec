// What stands behind STFT and DFT: views, then one part of the complex numbers (Gather, Slice) or their size, which
// PyTorch writes as ReduceL2 (abs), as the sum of squares over the last axis, or with each part on its own.
#include "passes/normalize/complex_parts.h"

#include <algorithm>

#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

enum class Reads { part, size, square, view, otherwise };

std::size_t last_axis(const Value& z) { return z.shape().rank() - 1; }

std::optional<Ints> axes_of(const Node& node, std::size_t index, std::size_t rank) {
  const std::optional<Ints> axes = setting(node, "axes", index);
  return axes ? positive(*axes, static_cast<std::int64_t>(rank)) : std::nullopt;
}

/// The single part that a Gather or Slice takes off the last axis.
std::optional<std::int64_t> part_of(const Node& node, const Value& z) {
  const auto last = static_cast<std::int64_t>(last_axis(z));
  std::optional<Ints> at = const_ints(node.input(1));
  if (!at || at->size() != 1 || rank_of(node.input(1)).value_or(0) > 1) return {};
  const std::int64_t first = at->front() < 0 ? at->front() + 2 : at->front();
  if (first < 0 || first > 1) return {};
  if (node.is("Gather")) {
    const auto axis = positive({node.attrs.integer("axis")}, last + 1);
    return axis == Ints{last} ? std::optional(first) : std::nullopt;
  }
  const std::optional<Ints> ends = const_ints(node.input(2)), steps = setting(node, "steps", 4, {1});
  if (!node.is("Slice") || !node.input(3) || !ends || ends->size() != 1 || steps != Ints{1}) return {};
  if (axes_of(node, 3, last_axis(z) + 1) != Ints{last}) return {};
  const std::int64_t end = ends->front() < 0 ? ends->front() + 2 : std::min<std::int64_t>(ends->front(), 2);
  return end == first + 1 ? std::optional(first) : std::nullopt;
}

/// Reduces the last axis and nothing else.
bool over_parts(const Node& node, const Value& z) {
  return axes_of(node, 1, last_axis(z) + 1) == Ints{static_cast<std::int64_t>(last_axis(z))};
}

/// z * z or z^2, read by sums over the last axis alone.
bool summed_square(const Node& node, const Value& z) {
  const bool product = node.is("Mul") && node.input(0) == &z && node.input(1) == &z;
  const bool power = node.is("Pow") && node.input(0) == &z && number_beside(node.input(1), last_axis(z)) == 2.0;
  if ((!product && !power) || !node.output() || node.output()->is_graph_output()) return false;
  const auto& uses = node.output()->uses();
  return std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
    return &use.node->graph() == &z.graph() && use.node->is("ReduceSum") && over_parts(*use.node, z);
  });
}

/// Moves, picks or scales elements and leaves the last axis as it is.
bool keeps_parts(const Node& node, const Value& z) {
  const Value* y = node.output();
  if (node.input(0) != &z || !y || !y->type.is_tensor() || !y->shape().has_rank() || y->shape().rank() < 2)
    return false;
  if (!(y->shape().back() == Dim(2))) return false;
  const auto outside = [](const std::optional<Ints>& axes, std::size_t rank) {
    return axes && std::ranges::count(*axes, static_cast<std::int64_t>(rank) - 1) == 0;
  };
  const auto ends_in = [](const Ints& list, std::int64_t last) { return !list.empty() && list.back() == last; };
  if (node.is("Transpose")) return ends_in(node.attrs.ints("perm"), static_cast<std::int64_t>(last_axis(z)));
  if (node.is("Reshape")) {
    const Ints target = const_ints(node.input(1)).value_or(Ints{});
    const bool copies_parts =
        target.size() > last_axis(z) &&
        std::ranges::count(target.begin() + static_cast<std::ptrdiff_t>(last_axis(z)), target.end(), 0);
    return ends_in(target, 2) && !copies_parts;
  }
  if (node.is("Squeeze")) return outside(axes_of(node, 1, last_axis(z) + 1), last_axis(z) + 1);
  if (node.is("Unsqueeze")) return outside(axes_of(node, 1, y->shape().rank()), y->shape().rank());
  if (node.is("Slice")) return node.input(3) && outside(axes_of(node, 3, last_axis(z) + 1), last_axis(z) + 1);
  Value* scaled_value = nullptr;
  return scaled(node, scaled_value) && scaled_value == &z && number_beside(node.input(1), last_axis(z));
}

Reads reads(const Node& node, const Value& z) {
  if (&node.graph() != &z.graph() || !node.output()) return Reads::otherwise;
  if (part_of(node, z)) return Reads::part;
  if ((node.is("ReduceL2") || node.is("ReduceSumSquare")) && over_parts(node, z)) return Reads::size;
  if (summed_square(node, z)) return Reads::square;
  return keeps_parts(node, z) ? Reads::view : Reads::otherwise;
}

Value& with_last_axis(Build& build, Value& part) {
  return build.op("Unsqueeze", {&part, &build.constant(tensor_of({-1}), "axes")});
}

/// The same view of one part.
Value& view_of(Build& build, const Node& node, const Value& z, Value& part) {
  std::vector<Value*> inputs = node.inputs();
  inputs[0] = &part;
  Attrs attrs = node.attrs;
  if (node.is("Transpose")) {
    Ints perm = attrs.ints("perm");
    perm.pop_back();
    attrs.set("perm", perm);
  } else if (node.is("Reshape")) {
    Ints target = *const_ints(node.input(1));
    target.pop_back();
    inputs[1] = &build.constant(tensor_of(target), "shape");
  } else if (node.is("Squeeze") || node.is("Unsqueeze") || node.is("Slice")) {
    const std::size_t at = node.is("Slice") ? 3 : 1;
    const std::size_t rank = node.is("Unsqueeze") ? node.output()->shape().rank() : last_axis(z) + 1;
    inputs.resize(std::max(inputs.size(), at + 1));
    inputs[at] = &build.constant(tensor_of(*axes_of(node, at, rank)), "axes");
  }
  return build.op(node.op(), inputs, attrs);
}

/// real^2 + imaginary^2, with its root where the node asks for that.
Value& size_of(Build& build, const Node& node, Value& real, Value& imaginary) {
  Value& sum = build.op("Add", {&build.op("Mul", {&real, &real}), &build.op("Mul", {&imaginary, &imaginary})});
  Value& size = node.is("ReduceL2") ? build.op("Sqrt", {&sum}) : sum;
  return node.attrs.integer("keepdims", 1) != 0 ? with_last_axis(build, size) : size;
}

/// The square of a size is the sum that the root was taken of.
void drop_roots(Value& size, Graph& graph) {
  const Node* root = size.producer();
  if (!root || !root->is("Sqrt")) return;
  Value& sum = *root->input(0);
  const std::vector<Use> uses = size.uses();
  for (const Use& use : uses) {
    const Node& node = *use.node;
    const bool product = node.is("Mul") && node.input(0) == node.input(1);
    const bool power = node.is("Pow") && number_beside(node.input(1), rank_of(&size).value_or(0)) == 2.0;
    if ((product || power) && use.index == 0 && &node.graph() == &graph) graph.replace(*node.output(), sum);
  }
}

}  // namespace

bool read_as_parts(const Value& z) {
  if (z.is_graph_output() || z.uses().empty() || !z.type.is_tensor() || !z.shape().has_rank()) return false;
  return std::all_of(z.uses().begin(), z.uses().end(), [&](const Use& use) {
    const Reads how = reads(*use.node, z);
    return how == Reads::view ? read_as_parts(*use.node->output()) : how != Reads::otherwise;
  });
}

void serve_parts(Value& z, Value& real, Value& imaginary, Context& context) {
  Graph& graph = z.graph();
  std::vector<Node*> readers;  // once each: a square reads twice
  for (const Use& use : z.uses())
    if (std::ranges::find(readers, use.node) == readers.end()) readers.push_back(use.node);
  for (Node* node : readers) {
    Build build(graph, *node, context);
    switch (reads(*node, z)) {
      case Reads::part: {
        Value& part = *part_of(*node, z) == 0 ? real : imaginary;
        const bool axis_goes = node->is("Gather") && rank_of(node->input(1)) == 0;
        graph.replace(*node->output(), axis_goes ? part : with_last_axis(build, part));
        break;
      }
      case Reads::size: {
        Value& size = size_of(build, *node, real, imaginary);
        graph.replace(*node->output(), size);
        drop_roots(size, graph);
        break;
      }
      case Reads::square: {
        std::vector<Node*> sums;
        for (const Use& use : node->output()->uses()) sums.push_back(use.node);
        for (Node* sum : sums) graph.replace(*sum->output(), size_of(build, *sum, real, imaginary));
        break;
      }
      case Reads::view:
        serve_parts(*node->output(), view_of(build, *node, z, real), view_of(build, *node, z, imaginary), context);
        break;
      case Reads::otherwise:
        break;
    }
  }
}

}  // namespace modelflow::passes
