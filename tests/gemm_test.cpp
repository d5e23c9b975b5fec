// Products of float32 in blocks: whatever the depth and the rows of blocks are, every number of A and B counts once.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "backends/cpu/gemm/f32.h"

namespace modelflow::cpu {
namespace {

std::vector<float> numbers(std::size_t count, std::mt19937& random) {
  std::vector<float> result(count);
  for (float& number : result) number = static_cast<float>(random() % 17) - 8;
  return result;
}

/// Small whole numbers: sums of products are exact in any order.
void expect_right(const F32Code& code, Gemm g, std::mt19937& random) {
  const std::vector<float> a = numbers(g.m * g.k, random), b = numbers(g.k * g.n, random);
  std::vector<float> packed(code.packed_floats(g.k, g.n)), c(g.m * g.n);
  code.pack_b(b.data(), g.n, false, g.k, g.n, 0, code.panels(g.n), packed.data());
  g.a = a.data(), g.lda = g.k;
  g.b = packed.data(), g.ldb = code.panel, g.panel = code.panel * g.k;
  g.c = c.data(), g.ldc = g.n;
  std::vector<float> own(code.packed_a_floats(g, g.m, g.n));
  code.gemm(g, 0, g.m, 0, g.n, own.empty() ? nullptr : own.data());
  for (std::size_t i = 0; i < g.m; ++i) {
    for (std::size_t j = 0; j < g.n; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < g.k; ++k) sum += a[i * g.k + k] * b[k * g.n + j];
      ASSERT_EQ(c[i * g.n + j], sum) << g.m << " x " << g.k << " x " << g.n << " in blocks of " << g.blocks.rows
                                     << " x " << g.blocks.depth << " at " << i << ", " << j;
    }
  }
}

void expect_any_blocks_right(const F32Code& code) {
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    Gemm g;
    g.m = 1 + random() % 150, g.n = 1 + random() % 70, g.k = 1 + random() % 400;
    g.blocks = {.depth = 4 + random() % 8 * 4, .rows = 6 + random() % 24 * 6};
    expect_right(code, g, random);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Gemm, AnyBlocksAreRightOnAvx2) {
  if (!host_isas().has(Isa::avx2)) GTEST_SKIP() << "needs AVX2";
  expect_any_blocks_right(f32_avx2);
}

TEST(Gemm, AnyBlocksAreRightOnAvx512) {
  if (!host_isas().has(Isa::avx512)) GTEST_SKIP() << "needs AVX-512";
  expect_any_blocks_right(f32_avx512);
}

}  // namespace
}  // namespace modelflow::cpu
