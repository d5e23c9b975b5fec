// Matrix products of float32 on AMX, as exact as on AVX-512. Only where host_isas().has(Isa::amx).
#pragma once

#include <cstddef>

#include "backends/cpu/gemm/epilogue.h"
#include "backends/cpu/gemm/tiles.h"

namespace modelflow::cpu {

/// C[m, n] = scale * A B and what the epilogue adds.
struct F32Gemm {
  TilePanels rows;  ///< of k numbers in parts
  std::size_t n = 0, k = 0;
  const float* a = nullptr;          ///< [m, k]
  const std::byte* parts = nullptr;  ///< of a, as split_rows_amx left them; null: each call makes those of its rows
  const float* b = nullptr;          ///< as f32_avx512.pack_b left it; all finite
  ProductEpilogue out;
  float scale = 1;
};

/// Memory that gemm_f32_amx needs for so many panels of rows and columns.
std::size_t gemm_f32_amx_scratch(const F32Gemm& gemm, std::size_t panels, std::size_t columns);
/// Computes the columns [n_begin, n_end) of the panels [begin, end) of rows on the calling thread. n_begin must be a
/// multiple of kTileBlock. False, and what it wrote is void, where a number of A that it split is infinite or NaN.
bool gemm_f32_amx(const F32Gemm& gemm, std::size_t begin, std::size_t end, std::size_t n_begin, std::size_t n_end,
                  std::byte* scratch);

/// Bytes of a row of k numbers in parts.
inline std::size_t split_row_bytes(std::size_t k) { return kTileParts * kTileBytes * tile_steps(2 * k); }
/// The panels [begin, end) of a [m, k], every number the sum of three of 8 significant bits: the first of 32 numbers,
/// their second, their third. False where one is infinite or NaN: such a number times a part that is 0 is NaN.
bool split_rows_amx(const TilePanels& panels, const float* a, std::size_t k, std::size_t begin, std::size_t end,
                    std::byte* out);

}  // namespace modelflow::cpu
