#pragma once

// Softmax in vectors of the compiler's own kind, compiled for each instruction set (see exp_loops.h).

#include <algorithm>
#include <cmath>

#include "backends/cpu/exp_loops.h"
#include "backends/cpu/softmax.h"

namespace modelflow::cpu {
namespace {

/// The scores of a row, which pass through y: what the mask makes of scale * x[i].
void masked(const SoftmaxRow& row) {
  const AttentionMask& mask = row.mask;
  for (std::size_t i = 0; i < row.n; ++i) row.y[i] = row.x[i] * row.scale;
  for (std::size_t i = 0; mask.numbers && i < row.n; ++i) row.y[i] += mask.numbers[i * mask.step.column];
  const std::size_t column = mask.flag_step.column;
  if (mask.flags && mask.on_replaces) {
    for (std::size_t i = 0; i < row.n; ++i) row.y[i] = mask.flags[i * column] ? mask.on : row.y[i];
  } else if (mask.flags && mask.off_replaces) {
    for (std::size_t i = 0; i < row.n; ++i) row.y[i] = mask.flags[i * column] ? row.y[i] : mask.off;
  } else if (mask.flags) {
    for (std::size_t i = 0; i < row.n; ++i) row.y[i] += mask.flags[i * column] ? mask.on : mask.off;
  }
}

/// Runs body(at, count) on whole vectors, then on the rest.
template <class Body>
MODELFLOW_LOOP void vectors(std::size_t n, Body body) {
  for (std::size_t i = 0; i < n; i += kLanes) body(i, std::min(kLanes, n - i));
}

MODELFLOW_LOOP Lanes load_some(const float* from, std::size_t count, float rest) {
  if (count == kLanes) return load(from);
  Lanes x = all(rest);
  for (std::size_t i = 0; i < count; ++i) x[i] = from[i];
  return x;
}
MODELFLOW_LOOP void store_some(float* to, std::size_t count, Lanes x) {
  if (count == kLanes) return store(to, x);
  for (std::size_t i = 0; i < count; ++i) to[i] = x[i];
}

void softmax_row(const SoftmaxRow& row) {
  masked(row);
  float* const y = row.y;
  Lanes best = all(kNothing);
  vectors(row.n, [&](std::size_t i, std::size_t count) {
    const Lanes x = load_some(y + i, count, kNothing);
    best = x > best ? x : best;
  });
  float max = kNothing;
  for (std::size_t i = 0; i < kLanes; ++i) max = std::max(max, best[i]);
  const float base = max == kNothing ? 0 : max;
  Lanes sums = {};
  vectors(row.n, [&](std::size_t i, std::size_t count) {
    const Lanes e = exp_of_negative(load_some(y + i, count, kNothing) - base);
    if (!row.log) store_some(y + i, count, e);
    sums += e;
  });
  const float sum = sum_of(sums), factor = row.log ? std::log(sum) : 1 / sum;
  vectors(row.n, [&](std::size_t i, std::size_t count) {
    const Lanes x = load_some(y + i, count, 0);
    store_some(y + i, count, row.log ? (x - base) - factor : x * factor);
  });
}

/// As many columns as a vector has lanes. Scores pass through y: products that run into the differences behind them
/// move scores far from zero apart from their largest.
void softmax_lanes(const SoftmaxColumns& c, std::size_t at, std::size_t count) {
  const float* const x = c.x + at;
  float* const y = c.y + at;
  const std::size_t end = c.n * c.inner;
  Lanes best = all(kNothing), sum = {}, factor;
  for (std::size_t i = 0; i < end; i += c.inner) {
    const Lanes s = load_some(x + i, count, 0) * c.scale;
    store_some(y + i, count, s);
    best = s > best ? s : best;
  }
  const Lanes base = best == all(kNothing) ? Lanes{} : best;
  for (std::size_t i = 0; i < end; i += c.inner) {
    const Lanes e = exp_of_negative(load_some(y + i, count, 0) - base);
    if (!c.log) store_some(y + i, count, e);
    sum += e;
  }
  for (std::size_t j = 0; j < kLanes; ++j) factor[j] = c.log ? std::log(sum[j]) : 1 / sum[j];
  for (std::size_t i = 0; i < end; i += c.inner) {
    const Lanes s = load_some(y + i, count, 0);
    store_some(y + i, count, c.log ? (s - base) - factor : s * factor);
  }
}

void softmax_columns(const SoftmaxColumns& columns) {
  vectors(columns.count, [&](std::size_t at, std::size_t count) { softmax_lanes(columns, at, count); });
}

constexpr SoftmaxCode kCode = {softmax_row, softmax_columns};

}  // namespace
}  // namespace modelflow::cpu
