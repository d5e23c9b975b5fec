// The factors of channels that make the error of rounding least.
#include "passes/equalize/balance.h"

#include <algorithm>
#include <cmath>

namespace modelflow::passes {
namespace {

constexpr double kLeastGain = 0.8;  ///< of the error that may be left
/// More would only move a channel that is as good as 0 out of range in the next sample.
constexpr float kLargestFactor = 64;
constexpr double kSteps = 255, kWeightSteps = 254;

/// The expected squared error, over all outputs of the readers, of rounding both sides.
double noise(std::span<const ChannelSize> channels, std::span<const Reader> readers, std::span<const float> factors) {
  double largest = 0;
  for (std::size_t c = 0; c < channels.size(); ++c)
    largest = std::max<double>(largest, channels[c].largest * factors[c]);
  const double step = 2 * largest / kSteps;
  double sum = 0;
  for (const Reader& reader : readers)
    for (std::size_t o = 0; o < reader.outputs; ++o) {
      const std::size_t first = reader.depthwise ? o : 0, last = reader.depthwise ? o + 1 : channels.size();
      double weight = 0, power = 0;
      for (std::size_t c = first; c < last; ++c) {
        const std::size_t at = reader.depthwise ? c : o * channels.size() + c;
        weight = std::max<double>(weight, reader.size[at] / factors[c]);
        power += channels[c].mean_square * factors[c] * factors[c];
        sum += step * step / 12 * reader.square[at] / (factors[c] * factors[c]);
      }
      const double weight_step = 2 * weight / kWeightSteps;
      sum += weight_step * weight_step / 12 * power;
    }
  return sum;
}

/// Of each channel: how large its largest weight is beside the largest of the same output.
std::vector<float> shares(std::size_t channels, std::span<const Reader> readers) {
  std::vector<float> share(channels, 0);
  for (const Reader& reader : readers) {
    if (reader.depthwise) continue;
    for (std::size_t o = 0; o < reader.outputs; ++o) {
      const float* row = reader.size.data() + o * channels;
      const float largest = *std::max_element(row, row + channels);
      for (std::size_t c = 0; c < channels && largest > 0; ++c) share[c] = std::max(share[c], row[c] / largest);
    }
  }
  return share;
}

}  // namespace

std::optional<std::vector<float>> balance(std::span<const ChannelSize> channels, std::span<const Reader> readers) {
  const std::vector<float> plain(channels.size(), 1);
  const bool free = std::all_of(readers.begin(), readers.end(), [](const Reader& r) { return r.depthwise; });
  const std::vector<float> share = free ? plain : shares(channels.size(), readers);
  std::vector<float> factors = plain;
  float largest_before = 0, largest = 0;
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const float size = channels[c].largest;
    if (size > 0 && share[c] > 0) factors[c] = free ? 1 / size : std::sqrt(share[c] / size);
    largest_before = std::max(largest_before, size);
  }
  if (!(largest_before > 0) || !std::isfinite(largest_before)) return {};
  for (std::size_t c = 0; c < channels.size(); ++c)
    if (channels[c].largest > 0 && share[c] > 0) largest = std::max(largest, factors[c] * channels[c].largest);
  if (!(largest > 0) || !std::isfinite(largest)) return {};
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const bool known = channels[c].largest > 0 && share[c] > 0;
    factors[c] = known ? std::clamp(factors[c] * largest_before / largest, 1 / kLargestFactor, kLargestFactor) : 1;
  }
  const double before = noise(channels, readers, plain), after = noise(channels, readers, factors);
  if (!(after < kLeastGain * before)) return {};
  return factors;
}

}  // namespace modelflow::passes
