// Convolutions of small groups of channels (ResNeXt, RegNet): a vector holds whole groups, and each of its lanes takes
// in all channels of its group, which a permutation brings to it. For files named so, see vector.h.
#pragma once

#include "backends/cpu/conv/strip.h"

namespace modelflow::cpu {
namespace {

using StripFunction = void (*)(const Strip&, const Epilogue&);
constexpr std::int64_t kStrip = 8;

/// Lane i gets channel `place` of the group of G that it belongs to.
template <int G>
MODELFLOW_INLINE Ints from_group(int place) {
  Ints order;
  for (std::size_t i = 0; i < kLanes; ++i) order[i] = static_cast<int>(i) / G * G + place;
  return order;
}

/// T results of groups of G channels: every vector of x is loaded and permuted once per kernel row and used by each
/// result that covers it. A few channels of the groups at a time: their weights stay in registers.
template <int G, int W, int S, int T>
void run_group_strip(const Strip& s, const Epilogue& epilogue) {
  constexpr int J = kWide && G > 2 ? 4 : 2;
  for_channels(
      s, [&](std::int64_t c, auto part) __attribute__((always_inline)) {
        Floats acc[T];
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) acc[t] = load(s.bias + c);
        for (int first = 0; first < G; first += J) {
          Ints order[J];
#pragma GCC unroll 4
          for (int j = 0; j < J; ++j) order[j] = from_group<G>(first + j);
          const float* x = s.x + c;
          const float* w = s.w + c + first * s.w_part;
          for (std::int64_t i = 0; i < s.taps_h; ++i, x += s.x_row, w += s.w_row) {
            Floats weights[W][J];
#pragma GCC unroll 8
            for (int k = 0; k < W; ++k) {
#pragma GCC unroll 4
              for (int j = 0; j < J; ++j) weights[k][j] = load(w + k * s.w_tap + j * s.w_part);
            }
#pragma GCC unroll 32
            for (int column = 0; column < (T - 1) * S + W; ++column) {
              if (column < s.from || column >= s.to) continue;
              const float* at = x + column * s.x_column;
              const Floats v = load(at, part);
#pragma GCC unroll 4
              for (int j = 0; j < J; ++j) {
                const Floats one = picked(v, order[j]);
#pragma GCC unroll 8
                for (int t = 0; t < T; ++t) {
                  const int k = column - t * S;
                  if (k >= 0 && k < W) acc[t] += one * weights[k < 0 || k >= W ? 0 : k][j];
                }
              }
            }
          }
        }
        store_strip(acc, s, c, 0, part, epilogue);
      });
}

/// One result with any number of taps: dilations, odd kernels. G is 1 where every channel has its own filter. In
/// several sums, since one alone would wait for itself, four cycles for each tap.
template <int G>
void run_single(const Strip& s, const Epilogue& epilogue) {
  for_channels(
      s, [&](std::int64_t c, auto part) __attribute__((always_inline)) {
        Floats sums[4] = {load(s.bias + c)};
        for (std::int64_t i = 0; i < s.taps_h; ++i) {
          const float* x = s.x + i * s.x_row + c;
          const float* w = s.w + i * s.w_row + c;
          const auto tap = [&](Floats & sum) __attribute__((always_inline)) {
            const Floats v = load(x, part);
            for (int g = 0; g < G; ++g) sum += (G == 1 ? v : picked(v, from_group<G>(g))) * load(w + g * s.w_part);
            x += s.x_column, w += s.w_tap;
          };
          std::int64_t left = s.taps_w;
          for (; left >= 4; left -= 4) tap(sums[0]), tap(sums[1]), tap(sums[2]), tap(sums[3]);
          if (left >= 2) tap(sums[0]), tap(sums[1]), left -= 2;
          if (left > 0) tap(sums[2]);
        }
        Floats acc[1] = {(sums[0] + sums[1]) + (sums[2] + sums[3])};
        store_strip(acc, s, c, 0, part, epilogue);
      });
}

StripFunction single(std::int64_t group) {
  if (group == 1) return run_single<1>;
  return group == 2 ? run_single<2> : run_single<kLargestGroup>;
}

template <int G, int S>
StripFunction group_strip_of(std::int64_t results) {
  static constexpr StripFunction kBySize[kStrip] = {run_group_strip<G, 3, S, 1>, run_group_strip<G, 3, S, 2>,
                                                    run_group_strip<G, 3, S, 3>, run_group_strip<G, 3, S, 4>,
                                                    run_group_strip<G, 3, S, 5>, run_group_strip<G, 3, S, 6>,
                                                    run_group_strip<G, 3, S, 7>, run_group_strip<G, 3, S, 8>};
  return kBySize[results - 1];
}

/// Null where there is none for this kernel and stride.
StripFunction group_strip(const DepthwiseRun& run, std::int64_t results) {
  const ConvProblem& p = run.problem;
  if (p.kernel_w != 3 || p.stride_w > 2 || (p.dilation_w != 1 && p.stride_w != 1)) return nullptr;
  const bool next = p.stride_w == 1;
  if (run.group == 2) return next ? group_strip_of<2, 1>(results) : group_strip_of<2, 2>(results);
  return next ? group_strip_of<kLargestGroup, 1>(results) : group_strip_of<kLargestGroup, 2>(results);
}

}  // namespace
}  // namespace modelflow::cpu
