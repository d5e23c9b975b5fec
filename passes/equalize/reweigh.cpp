#include "passes/equalize/reweigh.h"

#include <algorithm>

namespace modelflow::passes {

Tensor scaled_along(const Tensor& tensor, std::size_t axis, std::span<const float> factors, std::size_t groups) {
  const Dims& dims = tensor.dims();
  std::size_t inner = 1;
  for (std::size_t i = axis + 1; i < dims.size(); ++i) inner *= static_cast<std::size_t>(dims[i]);
  const auto extent = static_cast<std::size_t>(dims[axis]);
  const std::size_t rows = static_cast<std::size_t>(dims[0]), in_group = std::max<std::size_t>(rows / groups, 1);
  const std::span<const float> from = tensor.as<float>();
  return Tensor::make(DType::f32, dims, [&](std::byte* out) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      const std::size_t at = i / inner % extent;
      const std::size_t group = groups > 1 ? i / (inner * extent) / in_group : 0;
      reinterpret_cast<float*>(out)[i] = from[i] * factors[group * extent + at];
    }
  });
}

std::vector<float> inverse(std::span<const float> factors) {
  std::vector<float> result;
  for (const float f : factors) result.push_back(1 / f);
  return result;
}

void set_constant(Node& node, std::size_t input, Tensor tensor) {
  Graph& graph = node.graph();
  const std::string stem = node.input(input)->name();
  graph.set_input(node, input, &graph.add_constant(std::move(tensor), stem));
}

}  // namespace modelflow::passes
