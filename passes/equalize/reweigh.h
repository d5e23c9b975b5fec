#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "modelflow/graph.h"
#include "modelflow/tensor.h"

namespace modelflow::passes {

/// The tensor with every element multiplied by the factor of its index along `axis`; `groups` as many times that index
/// starts again along axis 0 (weights of a convolution in groups), where axis is 1.
Tensor scaled_along(const Tensor& tensor, std::size_t axis, std::span<const float> factors, std::size_t groups = 1);
/// Each 1 / factor.
std::vector<float> inverse(std::span<const float> factors);
/// Gives the node a constant of its own with this content.
void set_constant(Node& node, std::size_t input, Tensor tensor);

}  // namespace modelflow::passes
