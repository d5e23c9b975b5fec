// Matrix products by weights of 4 bits, and the packing of the weights.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/gemm/epilogue.h"

namespace modelflow::cpu {

/// Columns of B that lie side by side in packed form.
inline constexpr std::size_t kPanel4 = 32;

/// The scale and the sums of one block of a row of A in 8-bit numbers.
struct BlockSteps {
  float unit;           ///< the scale: what a step is worth
  float sum;            ///< of the block, in float32
  std::int32_t eights;  ///< -8 times the sum of its steps
};

/// A product by weights of 4 bits in blocks of k that have a scale each; so have those of A. In float32
/// C[m, n] = sum over blocks of unit[m] * scale[n] * sum(A (B - zero[n])), and what the epilogue adds.
struct Gemm4 {
  std::size_t n = 0, blocks = 0, block = 0;
  bool zero_points = false;  ///< else all of them are 8
  const std::int8_t* a = nullptr;
  std::size_t lda = 0;
  const BlockSteps* steps = nullptr;  ///< [m, blocks]
  const std::byte* b = nullptr;       ///< as pack_b4 left it
  ProductEpilogue out;
};

/// The code for an instruction set.
struct Code4 {
  /// Computes the columns [n_begin, n_end) of the rows [m_begin, m_end) on the calling thread. n_begin must be a
  /// multiple of kPanel4.
  void (*multiply)(const Gemm4& gemm, std::size_t m_begin, std::size_t m_end, std::size_t n_begin, std::size_t n_end);
  /// Rows of blocks in steps of (largest of the block) / 127.
  void (*quantize_blocks)(const float* a, std::size_t rows, std::size_t blocks, std::size_t block, std::int8_t* out,
                          std::size_t ldo, BlockSteps* steps);
};
extern const Code4 code4_vnni, code4_avx2;
extern const Code4 code4_quads_avx2;  ///< with AVX-VNNI

/// Weights as the op has them: [n, blocks, block / 2] bytes, scales and zero points [n, blocks].
struct Weights4 {
  std::size_t n, blocks, block;
  const std::uint8_t* b;
  const float *scale, *zero;  ///< zero: null when all are 8
};
/// Scales, and scales times zero points unless these are all 8, stand in front of each block of a panel.
static inline std::size_t header4_bytes(bool zeros) { return (zeros ? 2 : 1) * kPanel4 * sizeof(float); }
static inline std::size_t block4_bytes(std::size_t block, bool zeros) {
  return header4_bytes(zeros) + block / 2 * kPanel4;
}

std::size_t packed_b4_bytes(const Weights4& weights);
/// Panel by panel and block by block: scales, scales times zero points, then for every 8 steps of k 16 columns of 4
/// bytes, and the other 16: the first four steps in the lower halves, the last four in the upper ones.
void pack_b4(const Weights4& weights, std::byte* out);

}  // namespace modelflow::cpu
