// 3x3 convolution of stride 1 as Winograd's minimal filtering F(m x m, 3x3) (Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks", 2015): tiles of m + 2 pixels, m apart, are transformed into (m + 2)^2 frequencies,
// each frequency is a matrix product over the channels, and the products are transformed into m x m results. m = 2
// takes 16 multiplications instead of 36, m = 4 takes 36 instead of 144.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/conv/problem.h"
#include "backends/cpu/gemm/f32.h"

namespace modelflow::cpu {

struct WinogradRun {
  ConvProblem problem;                 ///< channels last on both sides
  std::int64_t m;                      ///< 2 or 4
  std::int64_t down, across;           ///< tiles of an image
  const float* weights;                ///< [frequency], each as WinogradCode::product packs [channels, filters]
  const float* plain;                  ///< the same as the model has them, [filters, channels, 3, 3]
  std::int64_t pixel;                  ///< floats from one tile to the next in v: channels and some room
  std::int64_t v_step, products_step;  ///< floats from one frequency to the next
  std::int64_t frequencies() const { return (m + 2) * (m + 2); }
  std::int64_t tiles() const { return problem.batch * down * across; }
};

/// Winograd's method as one instruction set computes it.
struct WinogradCode {
  const char* layout;  ///< of transformed weights, for their cache
  std::size_t lanes;   ///< floats of a vector
  const F32Code& product;
  /// Tiles [first, last) of x into v [frequency, tile, pixel]. `apart`: of each tile the results that are to be
  /// computed by themselves, a bit each.
  void (*input)(const WinogradRun& run, std::int64_t first, std::int64_t last, float* v, std::uint32_t* apart);
  /// And the products [frequency, tile, filters] into y, with bias, residual and activation.
  void (*output)(const WinogradRun& run, std::int64_t first, std::int64_t last, const float* products,
                 const std::uint32_t* apart);
};

/// Each only where host_isas() has it.
extern const WinogradCode winograd_avx2, winograd_avx512;

}  // namespace modelflow::cpu
