// Matrix products of bfloat16 and of 8-bit numbers on AMX. Everything here only where host_isas().has(Isa::amx).
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/gemm/int8_vnni.h"
#include "backends/cpu/gemm/tiles.h"

namespace modelflow::cpu {

/// Rows of A that lie at any one distance, and of which a product reads several parts ("taps"): the pixels of an image
/// with its padding, read once for each position of the window of a convolution.
struct TileRowsAt {
  std::size_t distance;     ///< bytes from a row to the next
  std::size_t readable;     ///< rows that may be read, at least 32
  const std::size_t* taps;  ///< bytes from a row to each part of it; B has a panel of steps for every part
  std::size_t tap_count;
  /// Row i of A is number first + i in lines of `pitch`, of which `columns` are rows of C and the others are dropped.
  std::size_t first, pitch, columns;
};

/// C[m, n] = A B, both in bfloat16, and what the epilogue adds, sums in float32.
struct TileGemm {
  TilePanels rows;
  std::size_t n = 0;
  const std::byte* a = nullptr;  ///< as copy_rows_amx left it
  const std::byte* b = nullptr;  ///< as pack_b_bf16_amx left it
  ProductEpilogue out;
  const TileRowsAt* at = nullptr;  ///< where A lies in another way; `rows` then counts the bytes of one part
};

/// Computes the columns [n_begin, n_end) of the panels [begin, end) of rows on the calling thread. n_begin must be a
/// multiple of kTileBlock.
void gemm_bf16_amx(const TileGemm& gemm, std::size_t begin, std::size_t end, std::size_t n_begin, std::size_t n_end);
/// The same for bytes; B as pack_b_vnni left it for a depth of whole tiles.
void gemm_bytes_amx(const BytesGemm<TilePanels>& gemm, std::size_t begin, std::size_t end, std::size_t n_begin,
                    std::size_t n_end);

/// The panels [begin, end) of a [m, k], rounded to bfloat16 or in it. Steps of tiles are whole.
void copy_rows_amx(const TilePanels& panels, const float* a, std::size_t k, std::size_t begin, std::size_t end,
                   std::byte* out);
void copy_rows_amx(const TilePanels& panels, const std::uint16_t* a, std::size_t k, std::size_t begin, std::size_t end,
                   std::byte* out);

inline std::size_t packed_b_bf16_amx_bytes(std::size_t k, std::size_t n) {
  return (n + kTileBlock - 1) / kTileBlock * kTileBlock * tile_steps(2 * k) * kTileBytes;
}
/// B [k, n], or its transpose [n, k] when `transposed`: panels of 32 columns, in them pairs of rows side by side.
void pack_b_bf16_amx(const std::uint16_t* b, bool transposed, std::size_t k, std::size_t n, std::uint16_t* out);

}  // namespace modelflow::cpu
