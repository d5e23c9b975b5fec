// The inner kernel of products on AMX (Sapphire Rapids and newer): 32 rows by 32 columns in four of the eight tile
// registers, so that no sum waits for the one before (a product of tiles takes 52 cycles, and one starts every 16) and
// every tile that is loaded is used twice. For files named *_amx.cpp only; everything has internal linkage.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backends/cpu/gemm/tiles.h"
#include "backends/cpu/vector/activation.h"

namespace modelflow::cpu {
namespace {

/// The tile registers as rows of 64 bytes, 16 of them in B and `rows` in A and the sums (a product takes a cycle for
/// each), on the calling thread, while it lives. In use they would make every switch of threads save 8 KiB.
class TileRegisters {
 public:
  explicit TileRegisters(std::size_t rows = kTileRows) {
    struct alignas(64) {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {0, 0, 0, 0, 0, 0, 16, 16};
    } config;
    for (int i = 0; i < 6; ++i) config.rows[i] = static_cast<std::uint8_t>(rows);
    asm volatile("" ::: "memory");
    _tile_loadconfig(&config);
  }
  ~TileRegisters() { _tile_release(); }
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;
};

/// Rows of A by a panel of B.
struct TileProduct {
  const void* a;          ///< rows of `steps` lines, all 16 of a tile readable
  std::size_t a_row;      ///< bytes from one to the next
  std::size_t a_low;      ///< bytes to the second tile of rows
  const void* b;          ///< for every step and tile of columns 16 rows of 64 bytes, those of one row side by side
  std::size_t steps;      ///< a multiple of kTileParts where numbers have parts
  const void* begin;      ///< what sums begin with: 32 bits for every column
  std::size_t begin_row;  ///< bytes from those of a row to those of the next: 0 or as in `sums`
  void* sums;             ///< rows of 32 bits for every column
  std::size_t tile_rows = kTileRows;  ///< of A and of the sums, as TileRegisters was told
  /// Sums over several such products: bytes from `a` to the rows of each. B has their steps one after the other.
  const std::size_t* taps = nullptr;
  std::size_t tap_count = 1;
};

/// Brings lines into L2 while tiles multiply: so many each time.
struct FetchLines {
  const void* at;
  std::size_t lines;
  MODELFLOW_INLINE void operator()() {
    for (std::size_t i = 0; i < lines; ++i) _mm_prefetch(static_cast<const char*>(at) + i * kTileBytes, _MM_HINT_T1);
    at = static_cast<const char*>(at) + lines * kTileBytes;
  }
};

/// What tiles hold: unsigned by signed bytes, summed in int32; bfloat16, summed in float; float32 as three bfloat16
/// numbers of 8 bits each, whose tiles follow each other in every step, the largest first.
enum class TileKind { bytes, bf16, parts };

/// The sums of `Rows` by `Columns` tiles in registers 0 and 1 (first row of tiles), 2 and 3; A in 4 and 5, B in 6
/// and 7.
template <TileKind Kind, int Rows, int Columns>
MODELFLOW_INLINE void add_product() {
  if constexpr (Kind == TileKind::bytes) {
    _tile_dpbusd(0, 4, 6);
    if constexpr (Columns == 2) _tile_dpbusd(1, 4, 7);
    if constexpr (Rows == 2) _tile_dpbusd(2, 5, 6);
    if constexpr (Rows == 2 && Columns == 2) _tile_dpbusd(3, 5, 7);
  } else {
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (Columns == 2) _tile_dpbf16ps(1, 4, 7);
    if constexpr (Rows == 2) _tile_dpbf16ps(2, 5, 6);
    if constexpr (Rows == 2 && Columns == 2) _tile_dpbf16ps(3, 5, 7);
  }
}

/// `Rows` and `Columns` count tiles, 1 or 2 each. `meanwhile()` is called once for every pair of tiles of A and B: what
/// it does costs nothing as long as it takes less than the products, which leave the vector units alone.
template <TileKind Kind, int Rows, int Columns, class Meanwhile>
void multiply_tiles(const TileProduct& p, Meanwhile& meanwhile) {
  // The intrinsics of GCC 12 do not say that they read memory.
  asm volatile("" ::: "memory");
  const auto* b = static_cast<const std::byte*>(p.b);
  const auto* begin = static_cast<const std::byte*>(p.begin);
  const std::size_t a_row = p.a_row, a_low = p.a_low, b_row = kTileBytes * Columns;
  const std::byte* a = nullptr;
  constexpr std::size_t kParts = Kind == TileKind::parts ? kTileParts : 1;
  const auto load_a = [&](std::size_t part) __attribute__((always_inline)) {
    const std::byte* from = a + part * kTileBytes;
    _tile_loadd(4, from, a_row);
    if constexpr (Rows == 2) _tile_loadd(5, from + a_low, a_row);
  };
  const auto load_b = [&](std::size_t part) __attribute__((always_inline)) {
    const std::byte* from = b + part * kTileRows * b_row;
    _tile_loadd(6, from, b_row);
    if constexpr (Columns == 2) _tile_loadd(7, from + kTileBytes, b_row);
  };
  const std::byte* low = begin + p.tile_rows * p.begin_row;
  _tile_loadd(0, begin, p.begin_row);
  if constexpr (Columns == 2) _tile_loadd(1, begin + kTileBytes, p.begin_row);
  if constexpr (Rows == 2) _tile_loadd(2, low, p.begin_row);
  if constexpr (Rows == 2 && Columns == 2) _tile_loadd(3, low + kTileBytes, p.begin_row);
  for (std::size_t tap = 0; tap < p.tap_count; ++tap) {
    a = static_cast<const std::byte*>(p.a) + (p.taps ? p.taps[tap] : 0);
    for (std::size_t i = 0; i < p.steps; i += kParts, a += kParts * kTileBytes, b += kParts * kTileRows * b_row) {
      if constexpr (Kind == TileKind::parts) {
        // Six of the nine products: what is left out is below the last bit of the result. Each load serves one or two.
        load_a(0), load_b(2), add_product<Kind, Rows, Columns>(), meanwhile();
        load_b(1), add_product<Kind, Rows, Columns>(), meanwhile();
        load_b(0), add_product<Kind, Rows, Columns>(), meanwhile();
        load_a(2), add_product<Kind, Rows, Columns>(), meanwhile();
        load_a(1), add_product<Kind, Rows, Columns>(), meanwhile();
        load_b(1), add_product<Kind, Rows, Columns>(), meanwhile();
      } else {
        load_b(0), load_a(0), add_product<Kind, Rows, Columns>(), meanwhile();
      }
    }
  }
  auto* sums = static_cast<std::byte*>(p.sums);
  _tile_stored(0, sums, b_row);
  if constexpr (Columns == 2) _tile_stored(1, sums + kTileBytes, b_row);
  std::byte* low_sums = sums + p.tile_rows * b_row;
  if constexpr (Rows == 2) _tile_stored(2, low_sums, b_row);
  if constexpr (Rows == 2 && Columns == 2) _tile_stored(3, low_sums + kTileBytes, b_row);
}

template <TileKind Kind, class Meanwhile>
void multiply_tiles(const TileProduct& p, int rows, int columns, Meanwhile meanwhile) {
  if (rows == 2)
    return columns == 2 ? multiply_tiles<Kind, 2, 2>(p, meanwhile) : multiply_tiles<Kind, 2, 1>(p, meanwhile);
  return columns == 2 ? multiply_tiles<Kind, 1, 2>(p, meanwhile) : multiply_tiles<Kind, 1, 1>(p, meanwhile);
}

}  // namespace
}  // namespace modelflow::cpu
