// The changes between opsets from the change logs of ONNX (docs/Changelog.md there), one line each: attributes that
// became inputs, defaults and meanings that changed, operators that gave way to others.
#include "src/compose/raise_changes.h"

#include <algorithm>

#include "src/compose/raise_forms.h"

namespace modelflow {
namespace {

Verdict axes_to_input(Node& node) {
  ints_to_input(node, "axes", 1);
  return yes();
}

Verdict split_to_input(Node& node) {
  ints_to_input(node, "split", 1);
  return yes();
}

/// The number of parts was that of the outputs.
Verdict count_parts(Node& node) {
  if (node.input(1)) return yes();
  node.graph().resize_inputs(node, 1);
  node.attrs.set("num_outputs", static_cast<std::int64_t>(node.outputs().size()));
  return yes();
}

Verdict slice(Node& node) {
  ints_to_input(node, "starts", 1);
  ints_to_input(node, "ends", 2);
  ints_to_input(node, "axes", 3);
  return yes();
}

Verdict top_k(Node& node) {
  node.attrs.set("k", Ints{node.attrs.integer("k")});
  ints_to_input(node, "k", 1);
  return yes();
}

/// Nothing but training reads the ratio.
/// What is not training keeps everything: the mask says so from 12 on, and says nothing (ONNX Runtime: false) before.
Verdict dropout(Node& node) {
  if (node.output(1)) return no("its mask is used, which has other values");
  node.attrs.erase("ratio");
  return yes();
}

/// The mask was of the type of the data, and is a bool.
Verdict dropout_mask(Node& node) { return node.output(1) ? no("its mask is used, which changes its type") : yes(); }

Verdict batch_norm_spatial(Node& node) {
  if (node.attrs.integer("spatial", 1) != 1) return no("it normalizes every place by itself");
  node.attrs.erase("spatial");
  return yes();
}

Verdict batch_norm_outputs(Node& node) {
  return std::ranges::count_if(node.outputs(), [](Value* value) { return value; }) > 1
             ? no("it gives the statistics of training")
             : yes();
}

Verdict scan(Node&) { return no("it runs over the rows of a batch"); }

/// Before 13 scales had to be there beside sizes, empty; since then one of them has to be missing.
Verdict resize_by_one(Node& node) {
  const Value* scales = node.input(2);
  if (!scales || !node.input(3)) return yes();
  const bool empty = scales->constant() ? scales->constant()->elements() == 0 : scales->shape() == Shape::of({0});
  if (!empty) return no("it may be given scales and sizes");
  node.graph().set_input(node, 2, nullptr);
  return yes();
}

Verdict scatter(Node& node) {
  node.graph().set_op(node, "ScatterElements");
  return yes();
}

/// Before 16 coordinates were not moved by half a pixel.
Verdict roi_align(Node& node) {
  node.attrs.set("coordinate_transformation_mode", "output_half_pixel");
  return yes();
}

Verdict grid_sample(Node& node) {
  const std::string mode = node.attrs.text("mode", "bilinear");
  if (mode == "bilinear") node.attrs.set("mode", "linear");
  if (mode == "bicubic") node.attrs.set("mode", "cubic");
  return yes();
}

/// The axis counted from 1 where none was said; the default of the input is the last but one.
Verdict dft(Node& node) {
  constant_input(node, 2, Tensor::scalar(node.attrs.integer("axis", 1)), "axis");
  node.attrs.erase("axis");
  return yes();
}

constexpr Change kChanges[] = {
    {"BatchNormalization", 9, batch_norm_spatial},
    {"Scan", 9, scan},
    {"Upsample", 9, upsample_scales},
    {"Dropout", 10, dropout_mask},
    {"Slice", 10, slice},
    {"TopK", 10, top_k},
    {"Upsample", 10, upsample_to_resize},
    {"Clip", 11, clip_bounds},
    {"Pad", 11, pad_inputs},
    {"Resize", 11, resize_coordinates},
    {"Scatter", 11, scatter},
    {"Dropout", 12, dropout},
    {"Hardmax", 13, one_axis},
    {"LogSoftmax", 13, one_axis},
    {"ReduceSum", 13, axes_to_input},
    {"Resize", 13, resize_by_one},
    {"Softmax", 13, one_axis},
    {"Split", 13, split_to_input},
    {"Squeeze", 13, axes_to_input},
    {"Unsqueeze", 13, axes_to_input},
    {"BatchNormalization", 14, batch_norm_outputs},
    {"RoiAlign", 16, roi_align},
    {"ReduceL1", 18, axes_to_input},
    {"ReduceL2", 18, axes_to_input},
    {"ReduceLogSum", 18, axes_to_input},
    {"ReduceLogSumExp", 18, axes_to_input},
    {"ReduceMax", 18, axes_to_input},
    {"ReduceMean", 18, axes_to_input},
    {"ReduceMin", 18, axes_to_input},
    {"ReduceProd", 18, axes_to_input},
    {"ReduceSumSquare", 18, axes_to_input},
    {"Split", 18, count_parts},
    {"DFT", 20, dft},
    {"GridSample", 20, grid_sample},
    {"GroupNormalization", 21, scales_per_channel},
};
static_assert(std::ranges::is_sorted(kChanges, {}, &Change::opset));

}  // namespace

std::span<const Change> changes() { return kChanges; }

}  // namespace modelflow
