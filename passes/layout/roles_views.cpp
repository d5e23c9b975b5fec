// Ops that only look at a tensor in another way: the layout passes through them, or ends in them for free.
#include <algorithm>

#include "passes/graph/empty.h"
#include "passes/graph/facts.h"
#include "passes/layout/roles.h"

namespace modelflow::passes {
namespace {

using Outputs = std::vector<Value*>;

bool all_ones(const Shape& shape, std::size_t from) {
  for (std::size_t i = from; i < shape.rank(); ++i) {
    if (!(shape[i] == Dim(1))) return false;
  }
  return true;
}

/// [N,C,1,1] -> anything else: its elements lie in the same order either way.
std::optional<Role> single_pixel_role(const Node& node, const Shape& in, const Shape& out) {
  std::vector<Dim> last = in.dims();
  std::rotate(last.begin() + 1, last.begin() + 2, last.end());
  const std::optional<Ints> target = reshape_target(last, out.dims());
  if (!target || (refuses_empty(*target) && !fails_when_empty(node))) return {};
  Role role{.inputs = {0}, .output = false};
  role.make = [target = *target](Move& move) {
    return Outputs{move.add("Reshape", {move.inputs[0], &move.constant(tensor_of(target))}, {}).output()};
  };
  return role;
}

/// [N,C,1,1] -> [N,C], and [N,C,H,W] -> [N,C,...] that keeps batch and channels.
std::optional<Role> reshape_role(const Node& node, Facts& facts) {
  const Shape in = facts.extents.of(*node.input(0)), out = facts.extents.of(*node.output());
  if (!in.has_rank() || !out.has_rank() || in.rank() < 3 || out.rank() < 2) return {};
  const std::size_t rank = out.rank();
  if (!(in[0] == out[0]) || !(in[1] == out[1]))
    return all_ones(in, 2) ? single_pixel_role(node, in, out) : std::nullopt;
  Ints target = {0};
  if (rank == 2) {
    if (!all_ones(in, 2)) return {};
    target.push_back(in[1].known() ? in[1].value() : -1);
  } else {
    if (!in[1].known()) return {};
    int open = 0;
    for (std::size_t i = 2; i < rank; ++i) {
      open += !out[i].known();
      target.push_back(out[i].known() ? out[i].value() : -1);
    }
    if (open > 1) return {};
    target.push_back(in[1].value());
  }
  if (refuses_empty(target) && !fails_when_empty(node)) return {};
  Role role{.inputs = {0}, .output = rank > 2};
  role.make = [target](Move& move) {
    return Outputs{move.add("Reshape", {move.inputs[0], &move.constant(tensor_of(target))}, {}).output()};
  };
  return role;
}

/// Ops that have an order of axes themselves, or none but that of what they read.
bool has_layout(const Node& node) {
  const FusedOp* op = fused_op(node);
  return op && !op->layouts.empty();
}

/// What comes out is as much an image as what goes in: activations and the like, other extents of the same pixels.
bool keeps_image(const Node& node, Facts& facts) {
  if (elementwise(node)) return node.input(0);
  if (!node.is("Reshape")) return false;
  const std::optional<Role> role = reshape_role(node, facts);
  return role && role->output;
}

/// Computed by such an op, or nearly.
bool is_image(const Value& value, Facts& facts) {
  const Node* node = value.producer();
  if (!node || has_layout(*node)) return node;
  return keeps_image(*node, facts) && is_image(*node->input(0), facts);
}

/// Read by such an op, likewise, or turned once more.
bool becomes_image(const Value& value, Facts& facts) {
  return std::ranges::any_of(value.uses(), [&](const Use& use) {
    if (has_layout(*use.node)) return use.index == 0;
    if (use.node->is("Transpose")) return use.node->attrs.ints("perm") == Ints{0, 2, 1};
    return keeps_image(*use.node, facts) && becomes_image(*use.node->output(), facts);
  });
}

/// With one spatial axis the same perm leads both ways: rows of channels that a convolution reads, or a signal.
bool leads_to_first(const Node& node, const Ints& perm, Facts& facts) {
  if (perm != to_first(perm.size())) return false;
  return perm != to_last(perm.size()) || (!is_image(*node.input(0), facts) && becomes_image(*node.output(), facts));
}

/// A Transpose of spatial axes alone (patches of MobileViT): channels last it moves whole pixels.
Role turned_image(const Ints& perm) {
  Ints last = {0};
  for (std::size_t i = 2; i < perm.size(); ++i) last.push_back(perm[i] - 1);
  last.push_back(static_cast<std::int64_t>(perm.size()) - 1);
  Role role{.inputs = {0}};
  role.make = [last](Move& move) {
    return Outputs{move.add("Transpose", {move.inputs[0]}, {{"perm", last}}).output()};
  };
  return role;
}

/// An explicit Transpose is free where one of its sides is channels last already.
std::optional<Role> transpose_role(const Node& node, Facts& facts) {
  const Ints perm = node.attrs.ints("perm");
  if (perm.size() < 3) return {};
  Role role;
  if (leads_to_first(node, perm, facts)) {
    if (node.input(0)->is_initializer()) return {};
    role.plain_cost = facts.transpose_seconds(*node.output());
    role.make = [](Move& move) { return Outputs{move.node.input(0)}; };
    return role;
  }
  if (perm == to_last(perm.size())) {
    role.inputs = {0};
    role.output = false;
    role.plain_cost = facts.transpose_seconds(*node.input(0));
    role.make = [](Move& move) { return Outputs{move.inputs[0]}; };
    return role;
  }
  return perm[0] == 0 && perm[1] == 1 ? std::optional(turned_image(perm)) : std::nullopt;
}

/// Squeeze of spatial axes, Unsqueeze of new ones behind the channels.
std::optional<Role> squeeze_role(const Node& node, Facts& facts) {
  const bool adds = node.is("Unsqueeze");
  const std::size_t rank = facts.rank(node.input(0));
  std::optional<Ints> axes = ints_of(node, "axes", 1);
  if (rank < 3 || !axes || axes->empty()) return {};
  const std::size_t named = adds ? rank + axes->size() : rank;  // the rank that the axes count in
  for (std::int64_t& axis : *axes) {
    if (axis < 0) axis += static_cast<std::int64_t>(named);
    if (axis < 2) return {};
    --axis;
  }
  if (adds)
    std::ranges::sort(*axes);
  else
    axes = each_once(*axes);
  Role role{.inputs = {0}, .output = adds || rank - axes->size() > 2};
  role.make = [axes = *axes](Move& move) { return with_list(move, "axes", axes); };
  return role;
}

/// [N, H, size, W, size, C] as an image. Where extents are not known, from those of `x`: an empty one of these would
/// be copied from another place without allowzero, which opset 14 brought.
Value* joined_blocks(Move& move, Value* blocks, const Shape& in, std::int64_t size, std::int64_t channels) {
  if (in[2].known() && in[3].known()) {
    const Ints target = {0, in[2].value() * size, in[3].value() * size, channels};
    return move.add("Reshape", {blocks, &move.constant(tensor_of(target))}, {}).output();
  }
  Value* dims = move.add("Shape", {move.inputs[0]}, {}).output();
  Value* outer = move.add("Gather", {dims, &move.constant(tensor_of({0, 1, 2}))}, {}).output();
  Value* larger = move.add("Mul", {outer, &move.constant(tensor_of({1, size, size}))}, {}).output();
  const std::vector<Value*> parts = {larger, &move.constant(tensor_of({channels}))};
  Value* target = move.add("Concat", parts, {{"axis", std::int64_t{0}}}).output();
  Attrs attrs;
  if (move.context.model.opset() >= 14) attrs.set("allowzero", Attr(std::int64_t{1}));
  return move.add("Reshape", {blocks, target}, std::move(attrs)).output();
}

/// Channels become the pixels of blocks (sub-pixel convolution, arXiv 1609.05158). ONNX Runtime moves them number by
/// number; channels last, those of a pixel or, in mode DCR, of a row of a block stay together.
std::optional<Role> depth_to_space_role(const Node& node, Facts& facts) {
  const Shape in = facts.extents.of(*node.input(0));
  const std::int64_t size = block_size(node);
  if (!in.has_rank() || in.rank() != 4 || !in[1].known() || size == 0) return {};
  const std::int64_t channels = in[1].value() / (size * size);
  if (channels == 0 || channels * size * size != in[1].value() || in[2] == Dim(0) || in[3] == Dim(0)) return {};
  const bool depth_first = node.attrs.text("mode", "DCR") == "DCR";
  Role role{.inputs = {0}, .plain_cost = facts.transpose_seconds(*node.output())};
  role.make = [=](Move& move) {
    const Ints apart = depth_first ? Ints{0, 0, 0, size, size, channels} : Ints{0, 0, 0, channels, size, size};
    const Ints perm = depth_first ? Ints{0, 1, 3, 2, 4, 5} : Ints{0, 1, 4, 2, 5, 3};
    Value* blocks = move.add("Reshape", {move.inputs[0], &move.constant(tensor_of(apart))}, {}).output();
    Value* turned = move.add("Transpose", {blocks}, {{"perm", perm}}).output();
    return Outputs{joined_blocks(move, turned, in, size, channels)};
  };
  return role;
}

/// The dims in the order that the readers expect.
std::optional<Role> shape_role(const Node& node, Facts& facts) {
  const std::size_t rank = facts.rank(node.input(0));
  if (rank < 3 || node.attrs.has("start") || node.attrs.has("end")) return {};
  Role role{.inputs = {0}, .output = false, .last_cost = 2e-6};
  role.make = [rank](Move& move) {
    Value* dims = move.add("Shape", {move.inputs[0]}, {}).output();
    return Outputs{move.add("Gather", {dims, &move.constant(tensor_of(to_first(rank)))}, {}).output()};
  };
  return role;
}

}  // namespace

std::optional<Role> view_role(const Node& node, Facts& facts) {
  if (!node.domain().empty() || !node.input(0) || !node.output() || node.outputs().size() != 1) return {};
  if (node.is("Transpose")) return transpose_role(node, facts);
  if (node.is("Shape")) return shape_role(node, facts);
  if (node.is("DepthToSpace")) return depth_to_space_role(node, facts);
  if (node.is("Reshape")) return reshape_role(node, facts);
  if (node.is("Flatten") && node.attrs.integer("axis", 1) == 1) return reshape_role(node, facts);
  if (node.is("Squeeze") || node.is("Unsqueeze")) return squeeze_role(node, facts);
  return {};
}

}  // namespace modelflow::passes
