// QAttention in plain C++, for CPUs that multiply no bytes: whole numbers in float32, one row after the other.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/attention.h"

namespace modelflow::cpu {
namespace {

/// y[i] = x[i] in steps of a 127th of the largest; gives the size of a step. Elements lie `stride` apart.
float to_steps(const float* x, std::size_t stride, std::size_t n, float* y, std::size_t y_stride) {
  float range = 1e-30f;
  for (std::size_t i = 0; i < n; ++i) range = std::max(range, std::abs(x[i * stride]));
  const float inverse = 127 / range;
  for (std::size_t i = 0; i < n; ++i) y[i * y_stride] = std::nearbyint(x[i * stride] * inverse);
  return range / 127;
}

/// Keys [keys, depth] and values [keys, width] in steps, then the sizes of both.
std::size_t packed_floats(const AttentionHead& h) { return h.keys * (h.depth + h.width) + h.keys + h.width; }

void pack(const AttentionHead& h, std::size_t part, std::size_t parts, float* packed) {
  float *keys = packed, *values = keys + h.keys * h.depth, *key_units = values + h.keys * h.width,
        *value_units = key_units + h.keys;
  for (std::size_t j = h.keys * part / parts; j < h.keys * (part + 1) / parts; ++j)
    key_units[j] = to_steps(h.k + j * h.k_row, 1, h.depth, keys + j * h.depth, 1);
  for (std::size_t i = h.width * part / parts; i < h.width * (part + 1) / parts; ++i)
    value_units[i] = to_steps(h.v + i, h.v_row, h.keys, values + i, h.width);
}

std::size_t scratch_floats(const AttentionHead& h) { return h.depth + h.keys; }

/// Scores to steps of a 255th of the largest exponential; gives their sum.
float softmax(const AttentionHead& h, std::size_t row, std::size_t seen, float* s) {
  const AttentionMask mask = h.mask.from(row, 0);
  float top = std::numeric_limits<float>::lowest(), sum = 0;
  for (std::size_t j = 0; j < seen; ++j) {
    if (h.cap != 0) s[j] = h.cap * std::tanh(s[j] / h.cap);
    if (mask) s[j] += mask[j];
    top = std::max(top, s[j]);
  }
  for (std::size_t j = 0; j < seen; ++j) sum += s[j] = std::nearbyint(255 * std::exp(s[j] - top));
  return sum;
}

void run_rows(const AttentionHead& h, const AttentionHead*, const float* packed, std::size_t begin, std::size_t end,
              float* scratch) {
  const float *keys = packed, *values = keys + h.keys * h.depth, *key_units = values + h.keys * h.width,
              *value_units = key_units + h.keys;
  float *q = scratch, *s = q + h.depth;
  for (std::size_t row = begin; row < end; ++row) {
    const float unit = h.scale * to_steps(h.q + row * h.q_row, 1, h.depth, q, 1);
    const std::size_t seen = h.causal ? std::min(row + 1, h.keys) : h.keys;
    for (std::size_t j = 0; j < seen; ++j) {
      float sum = 0;
      for (std::size_t i = 0; i < h.depth; ++i) sum += q[i] * keys[j * h.depth + i];
      s[j] = sum * unit * key_units[j];
    }
    const float sum = softmax(h, row, seen, s);
    float* y = h.y + row * h.y_row;
    std::fill_n(y, h.width, 0.0f);
    if (h.guard && sum == 0) continue;
    for (std::size_t j = 0; j < seen; ++j)
      for (std::size_t i = 0; i < h.width; ++i) y[i] += s[j] * values[j * h.width + i];
    for (std::size_t i = 0; i < h.width; ++i) y[i] = y[i] / sum * value_units[i];
  }
}

}  // namespace

const AttentionCode qattention_code_any = {1, packed_floats, pack, scratch_floats, run_rows, nullptr, kMostStepKeys};

}  // namespace modelflow::cpu
