// Rows of floats, or of probabilities, quantized to 8 bits in the panels that products on VNNI and AMX read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/gemm/tiles.h"

namespace modelflow::cpu {

/// Rows of A that a tile of gemm_vnni takes at most.
inline constexpr std::size_t kVnniRows = 14;
/// Steps of k that rows of A and panels of B are padded to.
inline constexpr std::size_t kVnniDepth = 16;
inline std::size_t vnni_depth(std::size_t k) { return (k + kVnniDepth - 1) / kVnniDepth * kVnniDepth; }

/// A in 8 bits as gemm_vnni reads it: panels of nearly the same number of rows (32 are 10 + 11 + 11), in each of them
/// the four bytes of every four steps of k side by side, [depth / 4][rows][4], so that a tile reads one stream.
struct RowPanels {
  std::size_t m, k;
  std::size_t count() const { return (m + kVnniRows - 1) / kVnniRows; }
  /// The first row of a panel; m for the one behind the last.
  std::size_t begin(std::size_t panel) const { return m * panel / count(); }
  /// Where a panel begins; what lies before count() has this many bytes.
  std::size_t offset(std::size_t panel) const { return begin(panel) * vnni_depth(k); }
  /// A single row is written in whole lines.
  std::size_t bytes() const { return m * vnni_depth(k) + 64; }
};

struct QuantizedRows {
  std::uint8_t* steps;  ///< the 8-bit numbers, multiples ("steps") of the scale of their row, in panels
  float* scale;         ///< [m]
  std::int32_t* sums;   ///< [m], of the steps of each row less the zero point; null: nobody asks
};

/// The panels [begin, end) of a [m, k], each row in steps of (its largest) / 127, plus 128.
void quantize_rows_vnni(const RowPanels& panels, const float* a, std::size_t begin, std::size_t end,
                        const QuantizedRows& out);
void quantize_rows_vnni(const TilePanels& panels, const float* a, std::size_t begin, std::size_t end,
                        const QuantizedRows& out);
/// The same as QuantizeLinear, with one scale for all.
void quantize_vnni(const RowPanels& panels, const float* a, std::size_t begin, std::size_t end, float scale,
                   std::int32_t zero_point, const QuantizedRows& out);
void quantize_vnni(const TilePanels& panels, const float* a, std::size_t begin, std::size_t end, float scale,
                   std::int32_t zero_point, const QuantizedRows& out);

/// exp(a - the largest of its row) in steps of a 255th; the scale of a row that has no softmax is NaN.
void exponentials_vnni(const RowPanels& panels, const float* a, std::size_t begin, std::size_t end,
                       const QuantizedRows& out);

/// Rows of k bytes as they are.
void pack_rows_vnni(const RowPanels& panels, const std::uint8_t* a, std::uint8_t* steps);

/// The smallest and the largest of n > 0 floats; NaN where one is.
void range_vnni(const float* a, std::size_t n, float* low, float* high);

}  // namespace modelflow::cpu
