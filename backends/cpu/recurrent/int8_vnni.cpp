// LSTM and GRU with int8 weights on VNNI: 64 products of 8-bit numbers in an instruction.
#include "backends/cpu/gemm/quantize_rows_vnni.h"
#include "backends/cpu/recurrent/int8_words.h"
#include "backends/cpu/recurrent/walk.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kFour = 4;  // steps of depth that one instruction adds up

std::size_t packed_bytes(const RecurrentMatrix& m) { return packed_word_bytes(m, kFour); }

void pack(const RecurrentMatrix& m, const void* weights, std::byte* packed) { pack_words(m, weights, kFour, packed); }

/// Whole cache lines, an odd number of them, so that the rows of a tile do not meet in the same set of L1.
std::size_t row_bytes(std::size_t depth) { return ((depth + 63) / 64 | 1) * 64; }

float quantize(const float* in, std::size_t depth, std::uint8_t* steps) {
  float unit = 0;
  quantize_rows_vnni(RowPanels{1, depth}, in, 0, 1, {steps, &unit, nullptr});
  return unit;
}

/// sum += x w. As the intrinsic says it, GCC 12 copies every sum in each step and spills the copies.
MODELFLOW_INLINE void add_products(__m512i& sum, const __m512i& x, const __m512i& w) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
}

struct VnniProduct {
  static constexpr bool kManyRows = true;

  template <int Rows, int Gates>
  MODELFLOW_INLINE static void multiply(const RecurrentPart& part, const RecurrentRow* rows, std::size_t block,
                                        Floats (&sum)[Rows][Gates][kPieces]);
};

template <int Rows, int Gates>
MODELFLOW_INLINE void VnniProduct::multiply(const RecurrentPart& part, const RecurrentRow* rows, std::size_t block,
                                            Floats (&sum)[Rows][Gates][kPieces]) {
  // An addition takes five cycles and one or two start in each.
  constexpr int kSums = Rows * Gates, kApart = kSums >= 8 ? 1 : kSums >= 4 ? 2 : kSums >= 2 ? 4 : 8;
  const std::size_t count = (part.depth + kFour - 1) / kFour;
  const std::byte* b = part.packed + block * word_block_bytes(part.depth, Gates, kFour);
  __m512i apart[kApart][Rows][Gates];
#pragma GCC unroll 8
  for (int i = 0; i < kApart; ++i)
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
      for (int g = 0; g < Gates; ++g) apart[i][r][g] = _mm512_setzero_si512();
  const auto step = [&](std::size_t k, int i) __attribute__((always_inline)) {
    __m512i w[Gates];
#pragma GCC unroll 4
    for (int g = 0; g < Gates; ++g) w[g] = _mm512_loadu_si512(b + (i * Gates + g) * 64);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      std::int32_t four = 0;
      __builtin_memcpy(&four, rows[r].steps + k * kFour, sizeof four);
      const __m512i x = _mm512_set1_epi32(four);
#pragma GCC unroll 4
      for (int g = 0; g < Gates; ++g) add_products(apart[i][r][g], x, w[g]);
    }
  };
  std::size_t k = 0;
  for (; k + kApart <= count; k += kApart, b += kApart * Gates * 64) {
#pragma GCC unroll 8
    for (int i = 0; i < kApart; ++i) step(k + static_cast<std::size_t>(i), i);
  }
  for (; k < count; ++k, b += Gates * 64) step(k, 0);
  const float* scale = part.scale + block * Gates * kUnits;
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    const __m512 unit = _mm512_set1_ps(rows[r].unit);
#pragma GCC unroll 4
    for (int g = 0; g < Gates; ++g) {
      __m512i total = apart[0][r][g];
#pragma GCC unroll 8
      for (int i = 1; i < kApart; ++i) total = _mm512_add_epi32(total, apart[i][r][g]);
      total = _mm512_sub_epi32(total, _mm512_loadu_si512(b + g * 64));
      const __m512 by_gate = _mm512_mul_ps(_mm512_loadu_ps(scale + g * static_cast<int>(kUnits)), unit);
      sum[r][g][0] = _mm512_mul_ps(_mm512_cvtepi32_ps(total), by_gate);
    }
  }
}

}  // namespace

const RecurrentCode recurrent_code_vnni = {.layout = "vnni",
                                           .packed_bytes = packed_bytes,
                                           .pack = pack,
                                           .step_bytes = row_bytes,
                                           .quantize = quantize,
                                           .project_lstm = walk<VnniProduct, Projection<4>>,
                                           .project_gru = walk<VnniProduct, Projection<3>>,
                                           .lstm = walk<VnniProduct, LstmStep>,
                                           .gru = walk<VnniProduct, GruStep>,
                                           .gru_gates = walk<VnniProduct, GruGatesStep>,
                                           .gru_candidate = walk<VnniProduct, GruCandidateStep>};

}  // namespace modelflow::cpu
