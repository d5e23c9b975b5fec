// Resizing of spatial axes: the factors move with their axes.
#include "passes/layout/roles.h"

namespace modelflow::passes {
namespace {

/// scales or sizes in the order of the channels-last axes.
Tensor reordered(const Tensor& values) {
  const Ints perm = to_last(static_cast<std::size_t>(values.elements()));
  return Tensor::make(values.dtype(), values.dims(), [&](std::byte* out) {
    const std::size_t width = static_cast<std::size_t>(bits(values.dtype())) / 8;
    for (std::size_t i = 0; i < perm.size(); ++i)
      std::copy_n(values.data() + static_cast<std::size_t>(perm[i]) * width, width, out + i * width);
  });
}

/// Which inputs hold scales or sizes; a no for what ONNX Runtime does not do, or does slowly, channels last.
bool permutable(const Node& node, std::size_t rank) {
  const std::string mode = node.attrs.text("mode", "nearest");
  if (mode != "nearest" && !(mode == "linear" && rank == 4)) return false;
  if (node.attrs.has("axes") || node.attrs.integer("antialias")) return false;
  if (node.attrs.text("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize") return false;
  for (std::size_t i = 1; i < node.inputs().size(); ++i) {
    const Value* input = node.input(i);
    if (!input) continue;
    if (!input->constant()) return false;
    const std::int64_t count = input->constant()->elements();
    if (count != 0 && count != static_cast<std::int64_t>(rank)) return false;  // roi is ignored outside of cropping
  }
  return true;
}

}  // namespace

std::optional<Role> resize_role(const Node& node, Facts& facts) {
  if (!node.is("Resize") && !node.is("Upsample")) return {};
  const std::size_t rank = facts.rank(node.input(0));
  if (rank < 3 || node.inputs().size() < 2 || !permutable(node, rank)) return {};
  Role role{.inputs = {0}};
  // Measured in ONNX Runtime: nearest costs twice as much channels last, linear a quarter.
  const double pass = facts.context.target.stream(facts.typical.bytes(*node.output()));
  (node.attrs.text("mode", "nearest") == "linear" ? role.plain_cost : role.last_cost) = 4 * pass;
  role.make = [](Move& move) {
    std::vector<Value*> inputs = move.inputs;
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      if (inputs[i] && inputs[i]->constant()->elements() > 0)
        inputs[i] = &move.constant(reordered(*inputs[i]->constant()));
    }
    return std::vector<Value*>{move.add(move.node.op(), std::move(inputs), move.node.attrs).output()};
  };
  return role;
}

}  // namespace modelflow::passes
