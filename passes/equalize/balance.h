// Factors for channels that two ops share, so that 8 bits lose less in both.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "modelflow/pass.h"

namespace modelflow::passes {

/// The weights of one op that reads the channels: `size` has for each of `outputs` rows the largest weight per channel,
/// `square` the sum of their squares. A depthwise convolution has one row per channel and is told apart by `depthwise`,
/// then both hold one number per channel.
struct Reader {
  std::size_t outputs = 0;
  bool depthwise = false;
  std::vector<float> size, square;
};

/// Factors for the channels after which 8 bits for all of them, and 8 bits per output for the weights that the readers
/// multiply them by (divided by the same factors), make the least error. Nothing when the error does not become smaller
/// by a fifth or more. The largest channel keeps its size.
///
/// The factors are those of Nagel et al., "Data-Free Quantization through Weight Equalization and Bias Correction"
/// (2019), with the sizes of activations in place of those of weights as in Xiao et al., "SmoothQuant" (2022): the root
/// of what the weights may lose over what the activations may gain. For depthwise readers nothing can be lost.
std::optional<std::vector<float>> balance(std::span<const ChannelSize> channels, std::span<const Reader> readers);

}  // namespace modelflow::passes
