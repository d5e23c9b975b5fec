// Ops that name axes: the same op with the axes where they stand when channels are last.
#include <algorithm>
#include <array>
#include <numeric>

#include "passes/graph/facts.h"
#include "passes/layout/roles.h"

namespace modelflow::passes {
namespace {

using Outputs = std::vector<Value*>;

Role with_axis(std::vector<std::size_t> inputs, std::string name, std::int64_t axis) {
  Role role{.inputs = std::move(inputs)};
  role.make = [name = std::move(name), axis](Move& move) {
    Attrs attrs = move.node.attrs;
    attrs.set(name, Attr(axis));
    const std::string op = move.node.domain().empty() ? move.node.op() : move.node.domain() + "." + move.node.op();
    Node& made = move.add(op, move.inputs, std::move(attrs), move.node.outputs().size());
    return made.outputs();
  };
  return role;
}

/// starts, ends, axes and steps: attributes before opset 10, inputs from then on; the axes are what changes.
std::optional<Role> slice_role(const Node& node, Facts& facts, std::size_t rank) {
  std::optional<Ints> axes = ints_of(node, "axes", 3);
  if (!axes) {
    if (node.input(3)) return {};
    const std::optional<Ints> starts = ints_of(node, "starts", 1);
    if (!starts) return {};
    axes.emplace(starts->size());
    std::iota(axes->begin(), axes->end(), 0);
  }
  for (std::int64_t& axis : *axes) axis = last_axis(axis, rank);
  Role role{.inputs = {0}};
  const bool narrow = node.input(1) && node.input(1)->dtype() == DType::i32;  // then all lists are of int32
  role.make = [axes = *axes, narrow, old = facts.context.model.opset() < 10](Move& move) {
    Attrs attrs = move.node.attrs;
    std::vector<Value*> inputs = move.inputs;
    if (old) {
      attrs.set("axes", axes);
    } else {
      if (inputs.size() < 4) inputs.resize(4);
      const std::vector<std::int32_t> few(axes.begin(), axes.end());
      inputs[3] = &move.constant(narrow ? Tensor::of<std::int32_t>({static_cast<std::int64_t>(few.size())}, few)
                                        : tensor_of(axes));
    }
    return Outputs{move.add("Slice", std::move(inputs), std::move(attrs)).output()};
  };
  return role;
}

std::optional<Role> pad_role(const Node& node, std::size_t rank) {
  const std::optional<Ints> pads = ints_of(node, "pads", 1);
  if (!pads || node.input(3) || pads->size() != 2 * rank) return {};
  Ints last(2 * rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const auto to = static_cast<std::size_t>(last_axis(static_cast<std::int64_t>(i), rank));
    last[to] = (*pads)[i];
    last[to + rank] = (*pads)[i + rank];
  }
  Role role{.inputs = {0}};
  role.make = [last](Move& move) { return with_list(move, "pads", last); };
  return role;
}

constexpr std::array<std::string_view, 10> kReduce = {"ReduceMean",      "ReduceSum",   "ReduceMax", "ReduceMin",
                                                      "ReduceProd",      "ReduceL1",    "ReduceL2",  "ReduceLogSumExp",
                                                      "ReduceSumSquare", "ReduceLogSum"};

/// Whether the result follows the layout (Role::output), or is the same in either. Nothing where it is neither: without
/// the batch, channels would be first in one and last in the other, and never second.
std::optional<bool> follows(const Ints& axes, std::size_t rank, bool keep) {
  if (keep) return true;
  std::vector<bool> reduced(rank);
  for (std::int64_t axis : axes)
    reduced[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis)] = true;
  if (reduced[1] || std::all_of(reduced.begin() + 2, reduced.end(), [](bool all) { return all; })) return false;
  return reduced[0] ? std::nullopt : std::optional<bool>(true);
}

/// A mean over the image that leaves its axes out: pooled, which is several times as fast as strided sums.
std::optional<Role> flat_mean_role(const Node& node, Facts& facts) {
  std::optional<Role> role = global_pool_role(node, facts);
  const Shape& x = node.input(0)->shape();
  if (!role || !x.has_rank() || !x[1].known()) return {};
  role->output = false;
  role->make = [pool = role->make, target = Ints{0, x[1].value()}](Move& move) {
    return Outputs{move.add("Reshape", {pool(move)[0], &move.constant(tensor_of(target))}, {}).output()};
  };
  return role;
}

/// What reduces all of an image, in kernels of ours. `output`: Role::output.
std::optional<Role> image_role(const Node& node, bool output, Facts& facts) {
  if (node.is("ReduceMean")) return output ? global_pool_role(node, facts) : flat_mean_role(node, facts);
  std::optional<Role> role = image_reduction_role(node, facts);
  if (role) role->output = output;
  return role;
}

}  // namespace

std::optional<Role> axis_role(const Node& node, Facts& facts) {
  const std::size_t rank = facts.rank(node.input(0));
  if (rank < 3) return {};
  if (const FusedOp* op = fused_op(node); op && !op->axis.empty() && !reduces(node) && node.inputs().size() == 1) {
    const std::int64_t axis = last_axis(node.attrs.integer(op->axis, -1), rank) - static_cast<std::int64_t>(rank);
    Call moved = call_of(node);
    moved.attrs.set(std::string(op->axis), axis);
    if (!can_write(moved, facts.context.model.opset())) return {};
    return with_axis({0}, std::string(op->axis), axis);
  }
  if (!node.domain().empty()) return {};
  const std::int64_t opset = facts.context.model.opset();
  if (node.is("Concat")) {
    std::vector<std::size_t> inputs;
    for (std::size_t i = 0; i < node.inputs().size(); ++i) {
      if (facts.rank(node.input(i)) != rank || node.input(i)->is_initializer()) return {};
      inputs.push_back(i);
    }
    return with_axis(std::move(inputs), "axis", last_axis(node.attrs.integer("axis"), rank));
  }
  if (node.is("Split")) return with_axis({0}, "axis", last_axis(node.attrs.integer("axis"), rank));
  // Before opset 13 Softmax works on everything behind its axis at once.
  if ((node.is("Softmax") || node.is("LogSoftmax")) && opset >= 13)
    return with_axis({0}, "axis", last_axis(node.attrs.integer("axis", -1), rank));
  if (node.is("Slice")) return slice_role(node, facts, rank);
  if (node.is("Pad")) return pad_role(node, rank);
  return {};
}

std::optional<Role> reduce_role(const Node& node, Facts& facts) {
  if (!node.domain().empty()) return {};
  const std::size_t rank = facts.rank(node.input(0));
  if (rank < 3) return {};
  const bool keep = node.attrs.integer("keepdims", 1) != 0;
  if (node.is("ArgMax") || node.is("ArgMin")) {
    const std::int64_t axis = node.attrs.integer("axis");
    if (!positive({axis}, static_cast<std::int64_t>(rank))) return {};
    const std::optional<bool> output = follows({axis}, rank, keep);
    if (!output) return {};
    Role role = with_axis({0}, "axis", last_axis(axis, rank));
    role.output = *output;
    return role;
  }
  if (std::find(kReduce.begin(), kReduce.end(), node.op()) == kReduce.end()) return {};
  const std::optional<Ints> given = ints_of(node, "axes", 1);
  std::optional<Ints> axes = given ? positive(*given, static_cast<std::int64_t>(rank)) : std::nullopt;
  if (!axes || axes->empty()) return {};
  axes = each_once(*axes);
  const std::optional<bool> output = follows(*axes, rank, keep);
  if (!output) return {};
  if (axes->size() == rank - 2 && axes->front() == 2)
    if (std::optional<Role> role = image_role(node, *output, facts)) return role;
  for (std::int64_t& axis : *axes) axis = last_axis(axis, rank);
  std::sort(axes->begin(), axes->end());
  Role role{.inputs = {0}, .output = *output};
  // Strided sums: measured in ONNX Runtime at a quarter of the speed of contiguous ones.
  role.last_cost = facts.context.target.stream(4 * facts.typical.bytes(*node.input(0)));
  role.make = [axes = *axes](Move& move) { return with_list(move, "axes", axes); };
  return role;
}

}  // namespace modelflow::passes
