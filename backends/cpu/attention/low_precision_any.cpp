// QAttention and AttentionBf16 in plain C++, for CPUs without instructions for such products: they are multiplied in
// float32, one row after the other.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/attention/causal.h"
#include "backends/cpu/frame/int8_rounding.h"
#include "src/core/bf16.h"

namespace modelflow::cpu {
namespace {

/// Numbers `step` apart, in memory.
struct Numbers {
  const float* from;
  float* to;
  std::size_t step, to_step;
};

/// What is left of numbers in 8 bits.
struct InSteps {
  /// Whole steps of a 127th of the largest; gives the size of one, times `factor`.
  static float keep(const Numbers& x, std::size_t n, float factor) {
    float range = 1e-30f;
    for (std::size_t i = 0; i < n; ++i) range = larger_size(range, x.from[i * x.step]);
    const float inverse = 127 / range;
    for (std::size_t i = 0; i < n; ++i) x.to[i * x.to_step] = std::nearbyint(x.from[i * x.step] * inverse);
    return factor * (range / 127);
  }
  static float power(float e) { return std::nearbyint(255 * e); }
};

struct InBf16 {
  static float rounded(float x) { return from_bf16(to_bf16(x)); }
  /// `factor` is inside; so the unit is 1.
  static float keep(const Numbers& x, std::size_t n, float factor) {
    for (std::size_t i = 0; i < n; ++i) x.to[i * x.to_step] = rounded(factor * x.from[i * x.step]);
    return 1;
  }
  static float power(float e) { return rounded(e); }
};

/// Keys [keys, depth] and values [keys, width] as they are kept, then the units of both.
struct Operands {
  float *keys, *values, *key_units, *value_units;
  Operands(const AttentionHead& h, float* packed)
      : keys(packed),
        values(keys + h.keys * h.depth),
        key_units(values + h.keys * h.width),
        value_units(key_units + h.keys) {}
};

std::size_t packed_floats(const AttentionHead& h) { return h.keys * (h.depth + h.width) + h.keys + h.width; }

template <class Kept>
void pack(const AttentionHead& h, std::size_t part, std::size_t parts, float* packed) {
  const Operands to(h, packed);
  for (std::size_t j = h.keys * part / parts; j < h.keys * (part + 1) / parts; ++j)
    to.key_units[j] = Kept::keep({h.k + j * h.k_row, to.keys + j * h.depth, 1, 1}, h.depth, 1);
  for (std::size_t i = h.width * part / parts; i < h.width * (part + 1) / parts; ++i)
    to.value_units[i] = Kept::keep({h.v + i, to.values + i, h.v_row, h.width}, h.keys, 1);
}

std::size_t scratch_floats(const AttentionHead& h) { return h.depth + h.keys; }

float mask_top(const AttentionMask& mask, float score, std::size_t n) {
  float top = -std::numeric_limits<float>::infinity();
  for (std::size_t j = 0; j < n; ++j) {
    const float s = mask(score, j);
    if (std::isnan(s)) return std::numeric_limits<float>::infinity();
    top = std::max(top, s);
  }
  return top;
}

/// Scores to what is kept of their exponentials, and the sum of that; false where keys that are left out matter.
template <class Kept>
bool softmax(const AttentionHead& h, std::size_t row, std::size_t seen, float* s, float& sum) {
  const AttentionMask mask = h.mask.from(row, 0);
  float top = std::numeric_limits<float>::lowest();
  for (std::size_t j = 0; h.cap != 0 && j < seen; ++j) s[j] = h.cap * std::tanh(s[j] / h.cap);
  if (h.whole && h.causal.first) hide(h, row, 0, seen, s);
  for (std::size_t j = 0; j < seen; ++j) s[j] = mask(s[j], j);
  if (h.whole && !h.causal.first) hide(h, row, 0, seen, s);
  for (std::size_t j = 0; j < seen; ++j) top = std::max(top, s[j]);
  sum = 0;
  for (std::size_t j = 0; j < seen; ++j) sum += s[j] = Kept::power(std::exp(s[j] - top));
  return !hidden_matters(h, row, top, mask_top);
}

/// The weights of a row of queries `q` and their sum.
template <class Kept>
bool weigh(const AttentionHead& h, const Operands& kept, const float* q, float unit, std::size_t row, float* s,
           float& sum) {
  const std::size_t seen = h.seen(row);
  for (std::size_t j = 0; j < seen; ++j) {
    float product = 0;
    for (std::size_t i = 0; i < h.depth; ++i) product += q[i] * kept.keys[j * h.depth + i];
    s[j] = product * unit * kept.key_units[j];
  }
  return softmax<Kept>(h, row, seen, s, sum);
}

template <class Kept>
void run_rows(const AttentionHead& head, const AttentionHead*, const float* packed, std::size_t begin, std::size_t end,
              float* scratch) {
  const Operands kept(head, const_cast<float*>(packed));
  float *q = scratch, *s = q + head.depth;
  for (std::size_t row = begin; row < end; ++row) {
    AttentionHead h = head;
    const float unit = Kept::keep({h.q + row * h.q_row, q, 1, 1}, h.depth, h.scale);
    float sum = 0;
    if (!weigh<Kept>(h, kept, q, unit, row, s, sum)) {
      h.whole = true;
      weigh<Kept>(h, kept, q, unit, row, s, sum);
    }
    const std::size_t seen = h.seen(row);
    float* y = h.y + row * h.y_row;
    std::fill_n(y, h.width, 0.0f);
    if (h.guard && !(sum > 0)) continue;
    for (std::size_t j = 0; j < seen; ++j)
      for (std::size_t i = 0; i < h.width; ++i) y[i] += s[j] * kept.values[j * h.width + i];
    for (std::size_t i = 0; i < h.width; ++i) y[i] = y[i] / sum * kept.value_units[i];
  }
}

template <class Kept>
constexpr AttentionCode code(std::size_t most_keys) {
  return {1, packed_floats, pack<Kept>, scratch_floats, run_rows<Kept>, nullptr, largest_magnitude, most_keys};
}

}  // namespace

const AttentionCode qattention_code_any = code<InSteps>(kMostStepKeys);
const AttentionCode attention_bf16_code_any = code<InBf16>(SIZE_MAX);

}  // namespace modelflow::cpu
