// QAttention and AttentionBf16 for machines without instructions for such products: operands are rounded when they are
// packed, then multiplied in float32. Compiled for AVX2 and the baseline (see vector.h).
#pragma once

#include "backends/cpu/attention/loops.h"
#include "backends/cpu/frame/int8_rounding.h"
#include "backends/cpu/vector/magnitudes.h"

namespace modelflow::cpu {
namespace {

MODELFLOW_INLINE Floats whole(Floats x) { return (x + kRounding) - kRounding; }  // of sizes below 2^22

// Of a precision: `keep` rounds the columns of a panel [n, kPanel] and gives what a unit of each is worth; `row` does
// so with a row of queries; `power` is what is left of an exponential.

/// Whole steps of a 127th of the largest.
struct InSteps {
  static void keep(float* panel, std::size_t n, float* units) {
    for (std::size_t v = 0; v < kPanel; v += kLanes) {
      Ints most = bits(all(1e-30f));
      for (std::size_t i = 0; i < n; ++i) {
        const Ints size = bits(abs(load(panel + i * kPanel + v)));
        most = most > size ? most : size;
      }
      const Floats range = from_bits(most), inverse = 127.0f / range;
      for (std::size_t i = 0; i < n; ++i) store(panel + i * kPanel + v, whole(load(panel + i * kPanel + v) * inverse));
      store(units + v, range / 127.0f + (range - range));
    }
  }
  static float row(const float* q, std::size_t n, float scale, float* to) {
    const float size = largest_size(q, n), range = size < 1e-30f ? 1e-30f : size;
    const Floats inverse = all(127 / range);
    vectors(n, [&](std::size_t i, auto part) { store(to + i, whole(load(q + i, part) * inverse), part); });
    return scale * step_size(range);
  }
  static MODELFLOW_INLINE Floats power(Floats e) { return whole(e * 255.0f); }
  /// Products to scores.
  static void scale(float unit, const float* units, std::size_t n, float* s) {
    for (std::size_t j = 0; j < n; j += kLanes) store(s + j, load(s + j) * unit * load(units + j));
  }
};

/// bfloat16, whose units are 1; the scale is inside of the queries.
struct InBf16 {
  static MODELFLOW_INLINE Floats short_of(Floats x) {
    const Ints rounded = (bits(x) + 0x7fff + (bits(x) >> 16 & 1)) & static_cast<std::int32_t>(0xffff0000);
    return x == x ? from_bits(rounded) : x;
  }
  static void keep(float* panel, std::size_t n, float* units) {
    for (std::size_t i = 0; i < n * kPanel; i += kLanes) store(panel + i, short_of(load(panel + i)));
    for (std::size_t v = 0; v < kPanel; v += kLanes) store(units + v, all(1.0f));
  }
  static float row(const float* q, std::size_t n, float scale, float* to) {
    vectors(n, [&](std::size_t i, auto part) { store(to + i, short_of(rounded(load(q + i, part) * scale)), part); });
    return 1;
  }
  static MODELFLOW_INLINE Floats power(Floats e) { return short_of(e); }
  static void scale(float, const float*, std::size_t, float*) {}
};

/// A head in panels, then the units of its keys and of the columns of its values.
struct KeptHead {
  const float *keys, *values, *key_units, *value_units;
  KeptHead(const AttentionHead& h, const float* packed)
      : keys(packed),
        values(keys + padded(h.keys) * h.depth),
        key_units(values + padded(h.width) * h.keys),
        value_units(key_units + padded(h.keys)) {}
};

std::size_t kept_floats(const AttentionHead& h) { return panel_floats(h) + padded(h.keys) + padded(h.width); }

template <class Kept>
void pack_kept(const AttentionHead& h, std::size_t part, std::size_t parts, float* packed) {
  pack_keys(h, part, parts, packed);
  pack_values(h, part, parts, packed + padded(h.keys) * h.depth);
  const KeptHead kept(h, packed);
  const auto at = [&](const float* p) { return packed + (p - packed); };
  const std::size_t k = padded(h.keys) / kPanel, v = padded(h.width) / kPanel;
  for (std::size_t i = k * part / parts; i < k * (part + 1) / parts; ++i)
    Kept::keep(at(kept.keys) + i * kPanel * h.depth, h.depth, at(kept.key_units) + i * kPanel);
  for (std::size_t i = v * part / parts; i < v * (part + 1) / parts; ++i)
    Kept::keep(at(kept.values) + i * kPanel * h.keys, h.keys, at(kept.value_units) + i * kPanel);
}

/// s[0 .. n) = what is left of exp(s - largest); n is a multiple of kPanel.
template <class Kept>
Largest softmax_kept(float* s, std::size_t n) {
  Floats best = all(kNothing);
  for (std::size_t j = 0; j < n; j += kLanes) {
    const Floats x = load(s + j);
    best = x > best ? x : best;
  }
  Largest part{largest_of(best), 0};
  const float base = part.max == kNothing ? 0 : part.max;
  Floats sum = {};
  for (std::size_t j = 0; j < n; j += kLanes) {
    const Floats e = Kept::power(ExpOfNegative()(load(s + j) - base));
    store(s + j, e);
    sum += e;
  }
  part.sum = sum_of(sum);
  return part;
}

/// Scratch memory of a block: rows of queries, scores and averages.
struct Block {
  float *q, *scores, *values;
  std::size_t scores_row, values_row;
  Block(const AttentionHead& h, float* scratch)
      : q(scratch),
        scores(q + kBlockRows * h.depth),
        values(scores + kBlockRows * padded(h.keys)),
        scores_row(padded(h.keys)),
        values_row(padded(h.width)) {}
};

std::size_t kept_scratch(const AttentionHead& h) { return scratch_floats(h) + kBlockRows * h.depth; }

/// The weights of a block of rows and their sums; false where keys that are left out matter.
template <class Kept>
bool weigh_kept(const AttentionHead& h, const KeptHead& kept, std::size_t row, std::size_t rows, const Block& block,
                const float* units, float* sums) {
  const std::size_t seen = h.seen(row + rows - 1);
  product(block.q, h.depth, rows, kept.keys, h.depth, padded(seen), 1, block.scores, block.scores_row);
  for (std::size_t r = 0; r < rows; ++r) {
    float* s = block.scores + r * block.scores_row;
    Kept::scale(units[r], kept.key_units, padded(seen), s);
    if (h.cap != 0) soft_cap(h.cap, seen, s);
    hide_scores(h, h.mask.from(row + r, 0), row + r, 0, h.seen(row + r), padded(seen), s);
    const Largest part = softmax_kept<Kept>(s, padded(seen));
    sums[r] = part.sum;
    if (hidden_matters(h, row + r, part.max, mask_top)) return false;
  }
  return true;
}

template <class Kept>
void run_kept(const AttentionHead& head, const AttentionHead*, const float* packed, std::size_t begin, std::size_t end,
              float* scratch) {
  const KeptHead kept(head, packed);
  const Block block(head, scratch);
  for (std::size_t row = begin; row < end; row += kBlockRows) {
    AttentionHead h = head;
    const std::size_t rows = least(kBlockRows, end - row);
    float sums[kBlockRows], units[kBlockRows];
    for (std::size_t r = 0; r < rows; ++r)
      units[r] = Kept::row(h.q + (row + r) * h.q_row, h.depth, h.scale, block.q + r * h.depth);
    if (!weigh_kept<Kept>(h, kept, row, rows, block, units, sums)) {
      h.whole = true;
      weigh_kept<Kept>(h, kept, row, rows, block, units, sums);
    }
    const std::size_t seen = h.seen(row + rows - 1);
    for (std::size_t c = 0; c < block.values_row; c += kPanel) {
      product(block.scores, block.scores_row, rows, kept.values + c * h.keys, seen, kPanel, 1, block.values + c,
              block.values_row);
    }
    for (std::size_t r = 0; r < rows; ++r) {
      const bool zero = h.guard && !(sums[r] > 0);
      float* y = h.y + (row + r) * h.y_row;
      const float *values = block.values + r * block.values_row, sum = sums[r];
      for (std::size_t c = 0; c < h.width; ++c) y[c] = zero ? 0 : values[c] / sum * kept.value_units[c];
    }
  }
}

template <class Kept>
constexpr AttentionCode kept_code(std::size_t most_keys) {
  return {kBlockRows, kept_floats, pack_kept<Kept>, kept_scratch, run_kept<Kept>, nullptr, largest, most_keys};
}

}  // namespace
}  // namespace modelflow::cpu
