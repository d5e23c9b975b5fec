// The extents of windows over symbols: convolutions, poolings, resized images.
#include "src/onnx/symbolic_windows.h"

#include <algorithm>
#include <cmath>

#include "src/onnx/derived.h"
#include "src/onnx/floor.h"

namespace modelflow {
namespace {

struct Window {
  Ints kernel, strides, dilations, pads;
  std::string auto_pad;
  bool ceil = false, pooling = false;
};

Window window_of(const Node& node, Ints kernel) {
  std::size_t spatial = kernel.size();
  Window window;
  window.kernel = std::move(kernel);
  window.strides = node.attrs.ints("strides", Ints(spatial, 1));
  window.dilations = node.attrs.ints("dilations", Ints(spatial, 1));
  window.pads = node.attrs.ints("pads", Ints(2 * spatial, 0));
  window.auto_pad = node.attrs.text("auto_pad", "NOTSET");
  window.ceil = node.attrs.integer("ceil_mode") != 0;
  window.pooling = !node.is("Conv") && !node.is("ConvTranspose");
  if (window.strides.size() != spatial || window.dilations.size() != spatial || window.pads.size() != 2 * spatial) {
    return {};
  }
  return window;
}

/// From the first to the last pixel that a window reads.
Dim covered(const Window& window, std::size_t axis) {
  return Dim(window.dilations[axis]) * (Dim(window.kernel[axis]) - Dim(1)) + Dim(1);
}

Dim extent(const Dim& in, const Window& window, std::size_t axis) {
  std::int64_t stride = window.strides[axis];
  const bool same = window.auto_pad.starts_with("SAME");
  if (same && window.pooling && window.dilations[axis] != 1) return {};  // ONNX Runtime pads as if it had no holes
  if (same) return ceil_div(in, stride);
  const Dim before = window.auto_pad == "VALID" ? 0 : window.pads[axis];
  const Dim behind = window.auto_pad == "VALID" ? 0 : window.pads[axis + window.kernel.size()];
  const Dim free = in - covered(window, axis) + before + behind;
  if (free.unknown()) return {};
  if (window.ceil && stride != 1) {
    // The last window is dropped where it would begin in the border behind. None can where that and a step are no wider
    // than a window; elsewhere it depends on the numbers.
    if (never_negative(covered(window, axis) - behind - Dim(stride))) return ceil_div(free, stride) + Dim(1);
    if (!in.known() || !free.known() || free.value() < 0) return {};
    const Dim steps = ceil_div(free, stride), beyond = steps * Dim(stride) - (in + before);
    if (!beyond.known()) return {};
    return beyond.value() >= 0 ? steps : steps + Dim(1);
  }
  // Where a pooling is larger than the image, ONNX Runtime rounds to 0 what floor rounds to -1: one window more.
  const bool shorter = window.pooling && stride > 1 && !in.known() && !never_negative(free - in + Dim(1));
  if (shorter) return derived_symbol("windows", free, "_by" + std::to_string(stride));
  return floor_div(free, stride) + Dim(1);
}

// The kernel extents, from the attribute or the weight; empty when they are not numbers.
Ints kernel_of(const Node& node) {
  Ints kernel = node.attrs.ints("kernel_shape");
  if (!kernel.empty() || !node.input(1) || !node.input(1)->shape().has_rank()) return kernel;
  const auto& dims = node.input(1)->shape().dims();
  for (std::size_t i = 2; i < dims.size(); ++i) {
    if (!dims[i].known()) return {};
    kernel.push_back(dims[i].value());
  }
  return kernel;
}

/// The kernel says the rank where nothing else does.
Shape windows(const Node& node, const Dim& channels, const Ints& kernel) {
  const Shape& told = node.input(0)->shape();
  const Shape x = told.has_rank() ? told : Shape(std::vector<Dim>(kernel.size() + 2));
  if (kernel.empty() || x.rank() != kernel.size() + 2) return {};
  Window window = window_of(node, kernel);
  if (window.kernel.empty()) return {};
  std::vector<Dim> dims = {x[0], channels};
  for (std::size_t i = 0; i < kernel.size(); ++i) dims.push_back(extent(x[i + 2], window, i));
  return dims;
}

Dim scaled(const Dim& dim, double scale) {
  const auto whole = [](double number) { return number >= 1 && number < 1e15 && number == std::floor(number); };
  if (whole(scale)) return dim * Dim(static_cast<std::int64_t>(scale));
  if (scale > 0 && whole(1 / scale)) return floor_div(dim, static_cast<std::int64_t>(1 / scale));
  return {};
}

}  // namespace

Shape conv_shape(const Node& node) {
  const Value *x = node.input(0), *w = node.input(1);
  if (!x || !w || !w->shape().has_rank() || w->shape().rank() < 3) return {};
  return windows(node, w->shape()[0], kernel_of(node));
}

Shape pool_shape(const Node& node) {
  const Value* x = node.input(0);
  if (!x || !x->shape().has_rank() || x->shape().rank() < 3) return {};
  return windows(node, x->shape()[1], node.attrs.ints("kernel_shape"));
}

bool disputed_window(const Node& node) {
  if (node.is("ConvTranspose")) return node.attrs.text("auto_pad").starts_with("SAME");
  if (!node.is("MaxPool") && !node.is("AveragePool") && !node.is("LpPool")) return false;
  const Ints dilations = node.attrs.ints("dilations");
  const bool holes = std::any_of(dilations.begin(), dilations.end(), [](std::int64_t d) { return d != 1; });
  return node.attrs.integer("ceil_mode") != 0 || (holes && node.attrs.text("auto_pad").starts_with("SAME"));
}

Shape conv_transpose_shape(const Node& node) {
  const Value *x = node.input(0), *w = node.input(1);
  if (!x || !w || !x->shape().has_rank() || !w->shape().has_rank() || node.attrs.has("output_shape")) return {};
  Ints kernel = kernel_of(node);
  if (kernel.empty() || x->shape().rank() != kernel.size() + 2 || w->shape().rank() != x->shape().rank()) return {};
  Window window = window_of(node, kernel);
  Ints extra = node.attrs.ints("output_padding", Ints(kernel.size(), 0));
  bool same = window.auto_pad.starts_with("SAME");
  if (window.kernel.empty() || extra.size() != kernel.size()) return {};
  std::vector<Dim> dims = {x->shape()[0], w->shape()[1] * Dim(node.attrs.integer("group", 1))};
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const Dim& in = x->shape()[i + 2];
    Dim stride = window.strides[i];
    const bool padded = !same && window.auto_pad != "VALID";
    const Dim pads = padded ? Dim(window.pads[i]) + Dim(window.pads[i + kernel.size()]) : Dim(0);
    const Dim last = covered(window, i) + Dim(extra[i]);  // what the last pixel brings
    // A window that does not reach from one pixel to the next is not cut: there are no negative pads.
    const bool cut = same && never_negative(last - stride);
    dims.push_back(cut ? in * stride : stride * (in - Dim(1)) + last - pads);
  }
  return dims;
}

// Upsample (scales in input 1 or an attribute) and Resize (scales in input 1 or 2, sizes in 3).
Shape resize_shape(const Node& node, ShapeValues& values) {
  const Value* x = node.input(0);
  if (!x || !x->shape().has_rank() || node.attrs.has("axes")) return {};
  if (node.attrs.text("coordinate_transformation_mode") == "tf_crop_and_resize") return {};
  std::size_t rank = x->shape().rank();
  if (const DimList* sizes = values.of(node.input(3)); sizes && sizes->size() == rank) {
    std::string policy = node.attrs.text("keep_aspect_ratio_policy", "stretch");
    return policy == "stretch" ? Shape(*sizes) : Shape();
  }
  Floats attribute = node.attrs.floats("scales");
  std::vector<double> scales(attribute.begin(), attribute.end());
  bool separate = node.op() == "Resize" && node.inputs().size() > 2;  // opset 11: X, roi, scales, sizes
  const Tensor* constant = values.constant(node.input(separate ? 2 : 1));
  if (constant && is_float(constant->dtype())) scales = constant->to_doubles();
  if (scales.size() != rank) return {};
  std::vector<Dim> dims;
  for (std::size_t i = 0; i < rank; ++i) dims.push_back(scaled(x->shape()[i], scales[i]));
  return dims;
}

}  // namespace modelflow
