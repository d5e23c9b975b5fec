// Scales for ranges and weights, and weights rounded to them.
#include "passes/quantize/scale.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/core/bounded_pairs.h"

namespace modelflow::passes {
namespace {

constexpr float kLargest = 127;

/// The nearest step, of ties the even one; 0 for NaN.
float step(float value, float scale) {
  constexpr float kShift = 0x1.8p23F;  // beside it there is no room for a fraction (nearbyint is a call into libm)
  const float steps = (std::clamp(value / scale, -kLargest, kLargest) + kShift) - kShift;
  return std::isnan(steps) ? 0 : steps;
}

double squared_error(std::span<const float> channel, float scale) {
  double sum = 0;
  for (const float w : channel) {
    const double difference = static_cast<double>(w) - static_cast<double>(step(w, scale)) * scale;
    sum += difference * difference;
  }
  return sum;
}

float least_squares_scale(std::span<const float> channel, float whole) {
  constexpr int kSteps = 20;
  constexpr float kLeast = 0.5F;  // of the largest weight: cutting off more never paid
  float best = whole;
  double least = squared_error(channel, whole);
  for (int i = 1; i <= kSteps; ++i) {
    const float scale = whole * (1 - (1 - kLeast) * static_cast<float>(i) / kSteps);
    if (const double error = squared_error(channel, scale); error < least) {
      least = error;
      best = scale;
    }
  }
  return best;
}

float scale_of(std::span<const float> channel, bool least_squares) {
  float largest = 0;
  for (const float w : channel) largest = std::max(largest, std::abs(w));
  const float whole = largest / kLargest;
  if (!(whole >= std::numeric_limits<float>::min())) return 1;  // nothing but zeros, or as good as that
  return least_squares ? least_squares_scale(channel, whole) : whole;
}

/// The least scale at which neighbours add up to so little in one sign that rounding, and rounding that makes up for
/// that of others, may add one each. `channel` has `taps` numbers of each input channel.
float scale_of_pairs(std::span<const float> channel, std::size_t taps) {
  constexpr float kMost = kMostInPair - 2;
  if (channel.empty()) return 0;
  const std::size_t inputs = channel.size() / taps;
  const auto at = [&](std::size_t i) { return channel[i % inputs * taps + i / inputs]; };
  float most = 0;
  for (std::size_t i = 0; i + 1 < channel.size(); i += 2) {
    const float a = at(i), b = at(i + 1);
    if ((a < 0) == (b < 0)) most = std::max(most, std::abs(a + b));
  }
  return most / kMost;
}

/// Weights with an axis of channels in the middle: [outer, channels, inner].
struct Channels {
  Channels(const Dims& dims, std::size_t axis) : count(static_cast<std::size_t>(dims.at(axis))) {
    for (std::size_t i = 0; i < axis; ++i) outer *= static_cast<std::size_t>(dims[i]);
    for (std::size_t i = axis + 1; i < dims.size(); ++i) inner *= static_cast<std::size_t>(dims[i]);
    for (std::size_t i = 2; axis == 0 && i < dims.size(); ++i) taps *= static_cast<std::size_t>(dims[i]);
  }
  /// Calls `visit(place in the tensor, channel, place in the channel)` for `inner` numbers at a time of the channels
  /// first to last, in the order in which they lie in memory.
  template <class Visit>
  void walk(std::size_t first, std::size_t last, const Visit& visit) const {
    for (std::size_t o = 0; o < outer; ++o)
      for (std::size_t c = first; c < last; ++c) visit((o * count + c) * inner, c, o * inner);
  }
  std::size_t count, outer = 1, inner = 1;
  std::size_t taps = 1;  ///< of a window: [filters, channels, taps...]
};

}  // namespace

bool adds_pairs_in_16_bits(const Target& target) {
  return target.device == Device::cpu && target.has(Isa::avx2) && !target.has(Isa::avx_vnni) &&
         !target.has(Isa::avx512_vnni);
}

bool finite(const Tensor& tensor) {
  if (tensor.dtype() != DType::f32) return false;
  const std::span<const float> values = tensor.as<float>();
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

Quantization u8_of(Range range) {
  const double low = std::min<double>(range.low, 0), high = std::max<double>(range.high, 0);
  const auto scale = static_cast<float>((high - low) / 255);
  if (!(scale >= std::numeric_limits<float>::min())) return {};
  return {scale, static_cast<int>(std::clamp(std::nearbyint(-low / scale), 0.0, 255.0))};
}

QuantizedWeights quantize_weights(const Tensor& weights, std::size_t axis, const WeightQuantization& how) {
  constexpr std::size_t kSideBySide = 64;  // channels of a matrix [k, n]: four lines of each row
  constexpr std::size_t kMostFloats = 1 << 24;
  const Channels channels(weights.dims(), axis);
  const std::span<const float> from = weights.as<float>();
  const std::size_t inner = channels.inner, size = channels.outer * inner;
  const std::size_t stride = size + 16;  // a power of two would have all channels fight for the same lines of the cache
  const std::size_t at_once =
      std::clamp<std::size_t>(kMostFloats / stride, 1, std::min(kSideBySide, std::max<std::size_t>(channels.count, 1)));
  std::vector<float> scales(channels.count, 1), several(at_once * stride);
  Tensor values = Tensor::make(DType::i8, weights.dims(), [&](std::byte* out) {
    for (std::size_t first = 0; first < channels.count; first += at_once) {
      const std::size_t last = std::min(first + at_once, channels.count);
      channels.walk(first, last, [&](std::size_t place, std::size_t c, std::size_t i) {
        float* numbers = several.data() + (c - first) * stride + i;
        for (std::size_t k = 0; k < inner; ++k) numbers[k] = from[place + k];
      });
      for (std::size_t c = first; c < last; ++c) {
        const std::span<const float> channel(several.data() + (c - first) * stride, size);
        scales[c] = scale_of(channel, how.least_squares);
        if (how.bounded_pairs) scales[c] = std::max(scales[c], scale_of_pairs(channel, channels.taps));
        if (!how.least_scales.empty()) scales[c] = std::max(scales[c], how.least_scales[c]);
      }
      channels.walk(first, last, [&](std::size_t place, std::size_t c, std::size_t i) {
        const float* numbers = several.data() + (c - first) * stride + i;
        for (std::size_t k = 0; k < inner; ++k)
          reinterpret_cast<std::int8_t*>(out)[place + k] = static_cast<std::int8_t>(step(numbers[k], scales[c]));
      });
    }
  });
  return {std::move(values),
          Tensor::of<float>({static_cast<std::int64_t>(channels.count)}, std::span<const float>(scales))};
}

std::vector<float> least_scales(std::span<const float> bias, float input_scale) {
  std::vector<float> scales;
  for (const float b : bias) scales.push_back(std::abs(b) / input_scale * 0x1p-30F);
  return scales;
}

Tensor quantize_bias(const Tensor& bias, float input_scale, const Tensor& weight_scales) {
  const std::span<const float> values = bias.as<float>(), scales = weight_scales.as<float>();
  std::vector<std::int32_t> steps;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double unit = static_cast<double>(input_scale) * scales[i];
    steps.push_back(
        static_cast<std::int32_t>(std::clamp(std::nearbyint(values[i] / unit), -2147483648.0, 2147483647.0)));
  }
  return Tensor::of<std::int32_t>(bias.dims(), std::span<const std::int32_t>(steps));
}

}  // namespace modelflow::passes
