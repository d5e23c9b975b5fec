// What differs between instruction sets in products of 8-bit numbers: panels of rows of A and their quantization, the
// packing of B, the product.
#pragma once

#include "backends/cpu/gemm/bf16_int8_amx.h"
#include "backends/cpu/gemm/int8_vnni.h"
#include "backends/cpu/gemm/int8_words.h"

namespace modelflow::cpu {

/// What VNNI and AMX have in common: panels of 32 columns.
template <class Rows>
struct OnVnniPanels {
  using Panels = Rows;
  static constexpr std::size_t kColumns = kVnniPanel;
  static void quantize_rows(const Panels& a, const float* from, std::size_t begin, std::size_t end,
                            const QuantizedRows& out) {
    quantize_rows_vnni(a, from, begin, end, out);
  }
  static void quantize(const Panels& a, const float* from, std::size_t begin, std::size_t end, float scale,
                       std::int32_t zero_point, const QuantizedRows& out) {
    quantize_vnni(a, from, begin, end, scale, zero_point, out);
  }
  static constexpr auto range = range_vnni;
};

struct OnVnni : OnVnniPanels<RowPanels> {
  static constexpr const char* kLayout = "gemm_vnni";
  static std::size_t packed_bytes(std::size_t k, std::size_t n) { return packed_b_vnni_bytes(vnni_depth(k), n); }
  static void pack(const std::int8_t* b, bool transposed, std::size_t k, std::size_t n, std::byte* out) {
    pack_b_vnni(b, transposed, k, vnni_depth(k), n, out);
  }
  static constexpr auto pack_rows = pack_rows_vnni;
  static constexpr auto multiply = gemm_vnni;
};

struct OnAmx : OnVnniPanels<TilePanels> {
  static constexpr const char* kLayout = "gemm_bytes_amx";
  static std::size_t depth(std::size_t k) { return tile_steps(k) * kTileBytes; }
  static std::size_t packed_bytes(std::size_t k, std::size_t n) { return packed_b_vnni_bytes(depth(k), n); }
  static void pack(const std::int8_t* b, bool transposed, std::size_t k, std::size_t n, std::byte* out) {
    pack_b_vnni(b, transposed, k, depth(k), n, out);
  }
  static constexpr auto multiply = gemm_bytes_amx;
};

/// Products in words, `code` for rows of A and panels of B that fit it.
template <class Rows, const WordsCode<Rows>& code, std::size_t columns>
struct OnWords {
  using Panels = Rows;
  static constexpr std::size_t kColumns = columns;
  static constexpr WordPanels kPanels = {columns, 4 / sizeof(typename Rows::Step)};
  static constexpr const char* kLayout = kPanels.steps == 2 ? "gemm_pairs" : "gemm_quads";
  static std::size_t packed_bytes(std::size_t k, std::size_t n) { return kPanels.bytes(k, n); }
  static void pack(const std::int8_t* b, bool transposed, std::size_t k, std::size_t n, std::byte* out) {
    kPanels.pack(b, transposed, k, n, out);
  }
  static void quantize_rows(const Panels& a, const float* from, std::size_t begin, std::size_t end,
                            const QuantizedRows& out) {
    code.quantize_rows(a, from, begin, end, out);
  }
  static void quantize(const Panels& a, const float* from, std::size_t begin, std::size_t end, float scale,
                       std::int32_t zero_point, const QuantizedRows& out) {
    code.quantize(a, from, begin, end, scale, zero_point, out);
  }
  static void pack_rows(const Panels& a, const std::uint8_t* from, std::uint8_t* steps) {
    code.pack_rows(a, from, steps);
  }
  static void range(const float* a, std::size_t n, float* low, float* high) { code.range(a, n, low, high); }
  static void multiply(const BytesGemm<Rows>& g, std::size_t begin, std::size_t end, std::size_t n_begin,
                       std::size_t n_end) {
    code.multiply(g, begin, end, n_begin, n_end);
  }
};

using OnPairs = OnWords<PairRows, pair_words_avx2, 16>;
using OnQuads = OnWords<QuadRows, quad_words_avx2, 16>;
using OnBoundedQuads = OnWords<QuadRows, bounded_words_avx2, 16>;

}  // namespace modelflow::cpu
