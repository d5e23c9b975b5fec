// Where libonnx infers other shapes than ONNX Runtime computes.
#include "src/onnx/corrections.h"

#include <optional>

namespace modelflow {
namespace {

std::optional<std::int64_t> frame_length(const Node& node) {
  if (const Value* window = node.input(2); window && window->shape().has_rank() && window->shape().rank() == 1)
    return window->shape()[0].number();
  const Tensor* length = node.input(3) ? node.input(3)->constant() : nullptr;
  if (!length || length->elements() != 1) return {};
  return length->to_ints()[0];
}

/// libonnx (1.23) takes `onesided` for 0 where it is absent; the default is 1.
void stft(const Node& node, Type& spectrum) {
  if (node.attrs.integer("onesided", 1) == 0 || !spectrum.is_tensor() || !spectrum.shape.has_rank()) return;
  std::vector<Dim> dims = spectrum.shape.dims();
  if (dims.size() != 4) return;
  const std::optional<std::int64_t> length = frame_length(node);
  dims[2] = length ? Dim(*length / 2 + 1) : Dim();
  spectrum.shape = Shape(dims);
}

/// No axes at all, given as an empty list: libonnx keeps every axis, ONNX Runtime drops all of extent 1.
void squeeze(const Node& node, Type& squeezed) {
  const Tensor* axes = node.input(1) ? node.input(1)->constant() : nullptr;
  const bool none = (axes && axes->elements() == 0) || (node.attrs.has("axes") && node.attrs.ints("axes").empty());
  if (!squeezed.is_tensor() || !none) return;
  const Shape& x = node.input(0)->shape();
  squeezed.shape = {};
  if (!x.has_rank()) return;
  std::vector<Dim> left;
  for (const Dim& dim : x.dims()) {
    if (!dim.known()) return;
    if (dim.value() != 1) left.push_back(dim);
  }
  squeezed.shape = Shape(left);
}

}  // namespace

void correct(const Node& node, std::vector<Type>& types) {
  if (types.empty() || !node.domain().empty()) return;
  if (node.op() == "STFT") stft(node, types[0]);
  if (node.op() == "Squeeze") squeeze(node, types[0]);
}

}  // namespace modelflow
