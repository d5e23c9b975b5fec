// The changes between opsets that take more than a line, and what all of them are made with.
#pragma once

#include "modelflow/graph.h"
#include "modelflow/kernel.h"

namespace modelflow {

/// A constant of its own as input `index`.
void constant_input(Node& node, std::size_t index, Tensor tensor, const char* stem);
/// What was the attribute `name` becomes input `index`.
void ints_to_input(Node& node, const char* name, std::size_t index);

/// Scales from an attribute to an input (9), and the operator that came in its place (10).
Verdict upsample_scales(Node& node);
Verdict upsample_to_resize(Node& node);
/// Bounds and pads from attributes to inputs of the type of the data (11).
Verdict clip_bounds(Node& node);
Verdict pad_inputs(Node& node);
/// Resize before 11 knew no coordinates but those of the corner, and took the floor of them where it enlarges.
Verdict resize_coordinates(Node& node);
/// Softmax and its like before 13 took everything from the axis on as one dimension, and the axis counted from 1.
Verdict one_axis(Node& node);
/// GroupNormalization before 21 had scales and biases of groups, not of channels.
Verdict scales_per_channel(Node& node);

}  // namespace modelflow
