// Matrix products of 8-bit numbers on VNNI, and the packing of B for VNNI and AMX.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/gemm/epilogue.h"
#include "backends/cpu/gemm/quantize_rows_vnni.h"

namespace modelflow::cpu {

/// Columns of B that lie side by side in packed form: two registers of 16 columns by 4 steps of k.
inline constexpr std::size_t kVnniPanel = 32;

inline std::size_t vnni_panels(std::size_t n) { return (n + kVnniPanel - 1) / kVnniPanel; }

/// C[m, n] = S * row_scale * column_scale and what the epilogue adds, where S = (A - zero_point) (B - column_zero) in
/// int32, without saturation.
template <class Panels>
struct BytesGemm {
  Panels rows;
  std::size_t n = 0;
  const std::uint8_t* a = nullptr;  ///< in panels
  std::int32_t zero_point = 0;
  const std::byte* b = nullptr;  ///< as pack_b_vnni left it
  /// Both or none: the sum of A - zero_point for each row; the zero points of B, up to the end of the last panel.
  const std::int32_t *row_sum = nullptr, *column_zero = nullptr;
  const float *row_scale = nullptr, *column_scale = nullptr;
  ProductEpilogue out;
  std::size_t near = 448 << 10;  ///< bytes of A that stay in L2 beside two panels of B while all columns pass by
};

using VnniGemm = BytesGemm<RowPanels>;

/// What the sums of the panel of columns from n on begin with, for zero points of A; B has `depth` padded rows.
template <class Panels>
static void start_of_sums(const BytesGemm<Panels>& g, std::size_t depth, std::size_t n, std::int32_t* start) {
  const auto* sums = reinterpret_cast<const std::int32_t*>(g.b + vnni_panels(g.n) * depth * kVnniPanel) + n;
  for (std::size_t j = 0; j < kVnniPanel; ++j)
    start[j] =
        static_cast<std::int32_t>(static_cast<std::uint32_t>(-g.zero_point) * static_cast<std::uint32_t>(sums[j]));
}

/// Computes the columns [n_begin, n_end) of the panels [begin, end) of rows on the calling thread. n_begin must be a
/// multiple of kVnniPanel. Only where host_isas().has(Isa::avx512_vnni).
void gemm_vnni(const VnniGemm& gemm, std::size_t begin, std::size_t end, std::size_t n_begin, std::size_t n_end);

/// Bytes that packed B takes: panels of `depth` rows, then the int32 sum of every column.
inline std::size_t packed_b_vnni_bytes(std::size_t depth, std::size_t n) {
  return vnni_panels(n) * kVnniPanel * (depth + sizeof(std::int32_t));
}

/// Packs B [k, n], or its transpose [n, k] when `transposed`. `depth`: k, padded to a multiple of what the product asks
/// for, vnni_depth(k) or whole tiles.
void pack_b_vnni(const std::int8_t* b, bool transposed, std::size_t k, std::size_t depth, std::size_t n,
                 std::byte* out);

}  // namespace modelflow::cpu
