// Attention of float32 over vectors, for AVX2 and the baseline (see vector.h); AVX-512 has code of its own.
#pragma once

#include <cstring>

#include "backends/cpu/attention/causal.h"
#include "backends/cpu/attention/grid.h"
#include "backends/cpu/attention/narrow_values.h"
#include "backends/cpu/vector/math.h"
#include "backends/cpu/vector/transpose.h"

namespace modelflow::cpu {
namespace {

// 6 x 2 sums, 2 columns, 1 row element: of 16 registers
constexpr std::size_t kTileRows = kLanes == 8 ? 6 : 4;
constexpr std::size_t kPanel = 2 * kLanes;  // columns of packed keys and values that lie side by side
constexpr std::size_t kBlockRows = 24;

std::size_t padded(std::size_t n) { return (n + kPanel - 1) / kPanel * kPanel; }
std::size_t least(std::size_t a, std::size_t b) { return a < b ? a : b; }

/// c[rows, panel] = scale * a b, or added to c. `b` is one panel: kPanel floats per step of k.
template <std::size_t Rows>
void tile(const float* a, std::size_t lda, const float* b, std::size_t k, float scale, float* c, std::size_t ldc) {
  Floats sum[Rows][2] = {};
  for (std::size_t i = 0; i < k; ++i, b += kPanel) {
    const Floats left = load(b), right = load(b + kLanes);
#pragma GCC unroll 6
    for (std::size_t r = 0; r < Rows; ++r) {
      const Floats x = all(a[r * lda + i]);
      sum[r][0] += x * left;
      sum[r][1] += x * right;
    }
  }
#pragma GCC unroll 6
  for (std::size_t r = 0; r < Rows; ++r, c += ldc) {
    store(c, sum[r][0] * scale);
    store(c + kLanes, sum[r][1] * scale);
  }
}

constexpr decltype(&tile<1>) kTiles[] = {tile<1>, tile<2>, tile<3>, tile<4>, tile<5>, tile<6>};

/// c = scale * a b for packed b [k, n], in tiles of about the same height: few rows would wait for their sums.
void product(const float* a, std::size_t lda, std::size_t rows, const float* b, std::size_t k, std::size_t n,
             float scale, float* c, std::size_t ldc) {
  const std::size_t tiles = (rows + kTileRows - 1) / kTileRows;
  for (std::size_t j = 0; j < n; j += kPanel, b += k * kPanel) {
    for (std::size_t i = 0; i < tiles; ++i) {
      const std::size_t r = rows * i / tiles, end = rows * (i + 1) / tiles;
      kTiles[end - r - 1](a + r * lda, lda, b, k, scale, c + r * ldc + j, ldc);
    }
  }
}

/// s = cap * tanh(s / cap), of n scores and what remains of their last vector. Close to 0 off by half an ulp of 1,
/// which is nothing to a softmax.
void soft_cap(float cap, std::size_t n, float* s) {
  for (std::size_t j = 0; j < n; j += kLanes) {
    const Floats x = load(s + j) * (1 / cap), size = x < Floats{} ? -x : x;
    const Floats e = ExpOfNegative()(size * -2.0f), t = (1.0f - e) / (1.0f + e);
    store(s + j, (x < Floats{} ? -t : t) * cap);
  }
}

void add_numbers(const AttentionMask& mask, std::size_t n, float* s) {
  for (std::size_t j = 0; j < n; ++j) s[j] += mask.numbers[j * mask.stride.column];
}

/// What the mask makes of the scores of n keys.
void apply_mask(const AttentionMask& mask, std::size_t n, float* s) {
  const std::size_t column = mask.flag_stride.column;
  if (mask.numbers && !mask.numbers_last) add_numbers(mask, n, s);
  if (mask.flags && mask.on_replaces) {
    for (std::size_t j = 0; j < n; ++j) s[j] = mask.flags[j * column] ? mask.on : s[j];
  } else if (mask.flags && mask.off_replaces) {
    for (std::size_t j = 0; j < n; ++j) s[j] = mask.flags[j * column] ? s[j] : mask.off;
  } else if (mask.flags) {
    for (std::size_t j = 0; j < n; ++j) s[j] += mask.flags[j * column] ? mask.on : mask.off;
  }
  if (mask.numbers && mask.numbers_last) add_numbers(mask, n, s);
}

/// The scores of the n keys from `key` on that this row computes, with all that hides them; the rest up to `end`
/// becomes nothing.
void hide_scores(const AttentionHead& h, const AttentionMask& mask, std::size_t row, std::size_t key, std::size_t n,
                 std::size_t end, float* s) {
  if (h.whole && h.causal.first) hide(h, row, key, n, s);
  mask.fetch(h.rows - row, n);
  apply_mask(mask, n, s);
  if (h.whole && !h.causal.first) hide(h, row, key, n, s);
  for (std::size_t j = n; j < end; ++j) s[j] = kNothing;
}

/// The most that the mask makes of this score over n keys.
float mask_top(const AttentionMask& mask, float score, std::size_t n) {
  constexpr std::size_t kSome = 64;
  float top = kNothing, s[kSome];
  for (std::size_t j = 0; j < n; j += kSome) {
    const std::size_t count = least(n - j, kSome);
    for (std::size_t i = 0; i < count; ++i) s[i] = score;
    apply_mask(mask.from(0, j), count, s);
    for (std::size_t i = 0; i < count; ++i) {
      if (s[i] != s[i]) return -kNothing;
      top = s[i] > top ? s[i] : top;
    }
  }
  return top;
}

float largest(const float* x, std::size_t rows, std::size_t n, std::size_t step) {
  Ints best = {};
  int rest = 0;
  for (std::size_t r = 0; r < rows; ++r, x += step) {
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      const Ints bits = reinterpret_cast<Ints>(load(x + i)) & 0x7fffffff;
      best = bits > best ? bits : best;
    }
    for (; i < n; ++i) {
      int bits;
      std::memcpy(&bits, x + i, sizeof bits);
      rest = (bits & 0x7fffffff) > rest ? bits & 0x7fffffff : rest;
    }
  }
  for (std::size_t i = 0; i < kLanes; ++i) rest = best[i] > rest ? best[i] : rest;
  float most;
  std::memcpy(&most, &rest, sizeof most);
  return most;
}

struct Largest {
  float max, sum;
};

/// s[0 .. n) = exp(s - largest); n is a multiple of kPanel.
Largest softmax(float* s, std::size_t n) {
  Floats best = all(kNothing);
  for (std::size_t j = 0; j < n; j += kLanes) {
    const Floats x = load(s + j);
    best = x > best ? x : best;
  }
  Largest part{kNothing, 0};
  for (std::size_t i = 0; i < kLanes; ++i) part.max = best[i] > part.max ? best[i] : part.max;
  const float base = part.max == kNothing ? 0 : part.max;
  Floats sum = {};
  for (std::size_t j = 0; j < n; j += kLanes) {
    const Floats e = ExpOfNegative()(load(s + j) - base);
    store(s + j, e);
    sum += e;
  }
  part.sum = sum_of(sum);
  return part;
}

/// Keys and values in panels.
std::size_t panel_floats(const AttentionHead& h) { return padded(h.keys) * h.depth + padded(h.width) * h.keys; }
std::size_t packed_floats(const AttentionHead& h) {
  return narrow(h) ? padded(h.keys) * h.depth + narrow_floats(h) : panel_floats(h);
}
std::size_t scratch_floats(const AttentionHead& h) { return kBlockRows * (padded(h.keys) + padded(h.width)); }

void pack_keys(const AttentionHead& h, std::size_t part, std::size_t parts, float* packed) {
  const std::size_t k = padded(h.keys) / kPanel;
  for (std::size_t j = k * part / parts * kPanel; j < k * (part + 1) / parts * kPanel; j += kLanes) {
    const std::size_t rows = j < h.keys ? least(h.keys - j, kLanes) : 0;
    const float* from = h.k + (rows ? j * h.k_row : 0);
    float* to = packed + j / kPanel * kPanel * h.depth + j % kPanel;
    for (std::size_t d = 0; d < h.depth; d += kLanes)
      transpose_block(from + d, h.k_row, to + d * kPanel, kPanel, rows, h.depth - d, Whole{});
  }
}

void pack_values(const AttentionHead& h, std::size_t part, std::size_t parts, float* packed) {
  const std::size_t v = padded(h.width) / kPanel;
  for (std::size_t panel = v * part / parts; panel < v * (part + 1) / parts; ++panel) {
    float* to = packed + panel * kPanel * h.keys;
    const float* from = h.v + panel * kPanel;
    const std::size_t columns = least(h.width - panel * kPanel, kPanel);
    if (columns == kPanel) {
      for (std::size_t j = 0; j < h.keys; ++j, to += kPanel, from += h.v_row) {
        store(to, load(from));
        store(to + kLanes, load(from + kLanes));
      }
      continue;
    }
    for (std::size_t j = 0; j < h.keys; ++j, to += kPanel, from += h.v_row)
      for (std::size_t c = 0; c < kPanel; ++c) to[c] = c < columns ? from[c] : 0;
  }
}

void pack(const AttentionHead& h, std::size_t part, std::size_t parts, float* packed) {
  pack_keys(h, part, parts, packed);
  packed += padded(h.keys) * h.depth;
  narrow(h) ? pack_narrow(h, part, parts, packed) : pack_values(h, part, parts, packed);
}

/// The weights of a block of rows and their sums; false where keys that are left out matter.
bool weigh(const AttentionHead& h, const float* packed, std::size_t row, std::size_t rows, float* scores, float* sums) {
  const std::size_t scores_row = padded(h.keys), seen = h.seen(row + rows - 1);
  product(h.q + row * h.q_row, h.q_row, rows, packed, h.depth, padded(seen), h.scale, scores, scores_row);
  for (std::size_t r = 0; r < rows; ++r) {
    float* s = scores + r * scores_row;
    if (h.cap != 0) soft_cap(h.cap, seen, s);
    if (h.grid) add_grid(h.grid, row + r, 0, h.keys, s);
    hide_scores(h, h.mask.from(row + r, 0), row + r, 0, h.seen(row + r), padded(seen), s);
    const Largest part = softmax(s, padded(seen));
    sums[r] = part.sum;
    if (hidden_matters(h, row + r, part.max, mask_top)) return false;
  }
  return true;
}

/// values = weights times the packed values of the keys that are seen.
void multiply_values(const AttentionHead& h, const float* packed, std::size_t rows, std::size_t seen,
                     const float* weights, float* values) {
  const std::size_t weights_row = padded(h.keys), values_row = padded(h.width);
  if (narrow(h)) {
    return multiply_narrow({weights, weights_row, packed, whole_registers(h.keys), whole_registers(seen), h.width,
                            values, values_row, false},
                           rows);
  }
  // The panels of the values are as long as all keys.
  for (std::size_t c = 0; c < values_row; c += kPanel)
    product(weights, weights_row, rows, packed + c * h.keys, seen, kPanel, 1, values + c, values_row);
}

void run_rows(const AttentionHead& head, const AttentionHead*, const float* packed, std::size_t begin, std::size_t end,
              float* scratch) {
  const std::size_t scores_row = padded(head.keys), values_row = padded(head.width);
  float* values = scratch + kBlockRows * scores_row;
  const std::size_t blocks = (end - begin + kBlockRows - 1) / kBlockRows;  // of about the same height
  for (std::size_t block = 0; block < blocks; ++block) {
    AttentionHead h = head;
    const std::size_t row = begin + (end - begin) * block / blocks,
                      rows = begin + (end - begin) * (block + 1) / blocks - row;
    float sums[kBlockRows];
    if (!weigh(h, packed, row, rows, scratch, sums)) {
      h.whole = true;
      weigh(h, packed, row, rows, scratch, sums);
    }
    const std::size_t seen = h.seen(row + rows - 1);
    multiply_values(h, packed + scores_row * h.depth, rows, seen, scratch, values);
    for (std::size_t r = 0; r < rows; ++r) {
      const bool zero = h.guard && !(sums[r] > 0);
      float* y = h.y + (row + r) * h.y_row;
      for (std::size_t c = 0; c < h.width; ++c) y[c] = zero ? 0 : values[r * values_row + c] / sums[r];
    }
  }
}

void stream(const AttentionHead& h, AttentionRow& row, std::size_t begin, std::size_t end) {
  alignas(64) float scores[kAttentionStream];
  const std::size_t count = end - begin;
  const float* q = row.q;
  float* values = row.values;
  for (std::size_t j = 0; j < count; ++j) {
    const float* k = h.k + (begin + j) * h.k_row;
    Floats sum[2] = {};
    std::size_t d = 0;
    for (; d + kPanel <= h.depth; d += kPanel) {
      sum[0] += load(q + d) * load(k + d);
      sum[1] += load(q + d + kLanes) * load(k + d + kLanes);
    }
    float rest = 0;
    for (; d < h.depth; ++d) rest += q[d] * k[d];
    scores[j] = h.scale * (sum_of(sum[0] + sum[1]) + rest);
  }
  if (h.cap != 0) soft_cap(h.cap, count, scores);
  if (row.grid) add_grid(row.grid, row.index, begin, count, scores);
  hide_scores(h, row.mask.from(0, begin), row.index, begin, count, padded(count), scores);
  const Largest part = softmax(scores, padded(count));
  for (std::size_t c = 0; c < h.width; ++c) values[c] = 0;
  for (std::size_t j = 0; j < count; ++j) {
    const float* v = h.v + (begin + j) * h.v_row;
    for (std::size_t c = 0; c < h.width; ++c) values[c] += scores[j] * v[c];
  }
  row.max = part.max;
  row.sum = part.sum;
}

void stream_rows(const AttentionHead& h, AttentionRow* rows, std::size_t count, std::size_t begin, std::size_t end) {
  for (std::size_t i = 0; i < count; ++i) stream(h, rows[i], begin, end);
}

constexpr AttentionCode kCode = {kBlockRows, packed_floats, pack, scratch_floats, run_rows, stream_rows,
                                 largest,    SIZE_MAX,      true};

}  // namespace
}  // namespace modelflow::cpu
