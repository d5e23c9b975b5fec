// The loops of softmax.h, written over vectors (see vector.h).
#pragma once

#include <cmath>

#include "backends/cpu/loops/softmax.h"
#include "backends/cpu/vector/math.h"

namespace modelflow::cpu {
namespace {

struct NoMask {
  MODELFLOW_INLINE Floats operator()(Floats x, std::size_t, auto) const { return x; }
};
/// What a mask makes of the scores from `i` on.
struct Masked {
  const AttentionMask& mask;
  MODELFLOW_INLINE Floats operator()(Floats x, std::size_t i, auto part) const {
    if (mask.numbers) x += mask.stride.column ? load(mask.numbers + i, part) : all(*mask.numbers);
    if (!mask.flags) return x;
    const Ints on = mask.flag_stride.column ? load_bytes(mask.flags + i, part) : Ints{} + *mask.flags;
    if (mask.on_replaces) return on ? all(mask.on) : x;
    if (mask.off_replaces) return on ? x : all(mask.off);
    return x + (on ? all(mask.on) : all(mask.off));
  }
};

template <class Mask>
void softmax_row(const SoftmaxRow& row, Mask mask) {
  const ExpOfNegative exp;
  // A product that ran into the difference behind it would move scores far from zero apart from their largest.
  const auto score = [&](std::size_t i, auto part) {
    return mask(rounded(load(row.x + i, part) * row.scale), i, part);
  };
  Floats best[4], sums[4] = {};
  for (Floats& b : best) b = all(kNothing);
  vectors_by_four(row.n, [&](std::size_t i, auto part, std::size_t v) {
    best[v] = max(best[v], only(score(i, part), part, kNothing));
  });
  const float top = largest_of(max(max(best[0], best[1]), max(best[2], best[3])));
  const Floats base = all(top == kNothing ? 0 : top);
  vectors_by_four(row.n, [&](std::size_t i, auto part, std::size_t v) {
    const Floats e = exp(score(i, part) - base);
    if (!row.log) store(row.y + i, e, part);
    sums[v] += only(e, part);
  });
  const float sum = sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
  if (row.log) {
    const Floats less = all(std::log(sum));
    return vectors(row.n, [&](std::size_t i, auto part) { store(row.y + i, (score(i, part) - base) - less, part); });
  }
  const Floats factor = all(1 / sum);
  vectors_by_four(
      row.n, [&](std::size_t i, auto part, std::size_t) { store(row.y + i, load(row.y + i, part) * factor, part); });
}

MODELFLOW_FLAT void softmax_row(const SoftmaxRow& row) {
  if (!row.mask) return softmax_row(row, NoMask{});
  softmax_row(row, Masked{row.mask});
}

/// `Vectors` of columns side by side; a Rest is one alone.
template <std::size_t Vectors, class Part>
void softmax_columns(const SoftmaxColumns& c, std::size_t at, Part part) {
  const ExpOfNegative exp;
  const auto place = [&](std::size_t i, std::size_t v) { return i * c.inner + at + v * kLanes; };
  const auto score = [&](std::size_t i, std::size_t v) { return rounded(load(c.x + place(i, v), part) * c.scale); };
  constexpr std::size_t kLongest = 256;  // steps summed in one float before they join the total
  Floats base[Vectors], sum[Vectors] = {};
  for (Floats& b : base) b = all(kNothing);
  for (std::size_t i = 0; i < c.n; ++i)
    for (std::size_t v = 0; v < Vectors; ++v) base[v] = max(base[v], score(i, v));
  for (Floats& b : base) b = b == all(kNothing) ? Floats{} : b;
  for (std::size_t block = 0; block < c.n; block += kLongest) {
    Floats some[Vectors] = {};
    const std::size_t end = c.n - block < kLongest ? c.n : block + kLongest;
    for (std::size_t i = block; i < end; ++i)
      for (std::size_t v = 0; v < Vectors; ++v) {
        const Floats e = exp(score(i, v) - base[v]);
        if (!c.log) store(c.y + place(i, v), e, part);
        some[v] += e;
      }
    for (std::size_t v = 0; v < Vectors; ++v) sum[v] += some[v];
  }
  for (Floats& s : sum) s = c.log ? log(s) : 1.0f / s;
  for (std::size_t i = 0; i < c.n; ++i)
    for (std::size_t v = 0; v < Vectors; ++v)
      store(c.y + place(i, v), c.log ? (score(i, v) - base[v]) - sum[v] : load(c.y + place(i, v), part) * sum[v], part);
}

MODELFLOW_FLAT void softmax_columns(const SoftmaxColumns& c) {
  std::size_t at = 0;
  for (; at + 4 * kLanes <= c.count; at += 4 * kLanes) softmax_columns<4>(c, at, Whole{});
  for (; at + kLanes <= c.count; at += kLanes) softmax_columns<1>(c, at, Whole{});
  if (at < c.count) softmax_columns<1>(c, at, Rest(c.count - at));
}

}  // namespace
}  // namespace modelflow::cpu
