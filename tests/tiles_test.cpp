// Products of float32 on AMX are sums of products of bfloat16: as exact as those of AVX-512, for numbers of all sizes.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "backends/cpu/gemm/f32.h"
#include "backends/cpu/gemm/f32_amx.h"
#include "modelflow/target.h"

namespace modelflow::cpu {
namespace {

struct Product {
  std::size_t m, n, k;
  std::vector<float> a, b;

  /// Numbers of both signs from 2^-`range` to 2^`range`.
  Product(std::size_t rows, std::size_t columns, std::size_t depth, float range)
      : m(rows), n(columns), k(depth), a(m * k), b(k * n) {
    std::mt19937 random(7);
    std::uniform_real_distribution<float> exponent(-range, range), sign(-1, 1);
    for (auto* numbers : {&a, &b})
      for (float& x : *numbers) x = std::copysign(std::exp2(exponent(random)), sign(random));
  }

  std::vector<float> packed() const {
    std::vector<float> out(f32_avx512.packed_floats(k, n));
    f32_avx512.pack_b(b.data(), n, false, k, n, 0, (n + f32_avx512.panel - 1) / f32_avx512.panel, out.data());
    return out;
  }

  /// `shared`: rows are split by somebody else.
  std::vector<float> on_tiles(float scale, bool shared) const {
    const auto memory = [](std::size_t bytes) {
      return std::unique_ptr<std::byte, void (*)(void*)>(
          static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)), std::free);
    };
    const std::vector<float> weights = packed();
    std::vector<float> c(m * n);
    F32Gemm g{{m, split_row_bytes(k)}, n, k, a.data(), nullptr, weights.data(), {}, scale};
    g.out.c = c.data(), g.out.n = n;
    const auto parts = memory(g.rows.bytes());
    if (shared) {
      split_rows_amx(g.rows, a.data(), k, 0, g.rows.count(), parts.get());
      g.parts = parts.get();
    }
    const auto scratch = memory(gemm_f32_amx_scratch(g, g.rows.count(), n));
    gemm_f32_amx(g, 0, g.rows.count(), 0, n, scratch.get());
    return c;
  }

  std::vector<float> on_avx512(float scale) const {
    const std::vector<float> weights = packed();
    std::vector<float> c(m * n);
    Gemm g;
    g.m = m, g.n = n, g.k = k, g.a = a.data(), g.lda = k, g.b = weights.data(), g.ldb = f32_avx512.panel;
    g.panel = f32_avx512.panel * k, g.c = c.data(), g.ldc = n, g.scale = scale;
    f32_avx512.gemm(g, 0, m, 0, n, nullptr);
    return c;
  }

  /// Root of the mean square of errors, each in units of the sum of what was added up.
  double error(const std::vector<float>& c, double scale) const {
    double sum = 0;
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        double exact = 0, size = 0;
        for (std::size_t l = 0; l < k; ++l) {
          const double product = scale * static_cast<double>(a[i * k + l]) * static_cast<double>(b[l * n + j]);
          exact += product, size += std::abs(product);
        }
        const double off = (static_cast<double>(c[i * n + j]) - exact) / size;
        sum += off * off;
      }
    }
    return std::sqrt(sum / static_cast<double>(m * n));
  }
};

TEST(Tiles, ProductsOfFloatsAreAsExactAsOnVectors) {
  if (!host_isas().has(Isa::amx)) GTEST_SKIP() << "needs AMX";
  // Rows and columns that fill no tile, sums that go to memory and come back, many panels of rows.
  for (const auto& [m, n, k] :
       {std::array<std::size_t, 3>{33, 45, 100}, {20, 64, 1601}, {300, 33, 65}, {270, 70, 1601}, {1, 16, 32}}) {
    for (const float range : {0.0f, 6.0f, 20.0f}) {
      const Product p(m, n, k, range);
      const std::vector<float> own = p.on_tiles(0.5f, false);
      EXPECT_EQ(own, p.on_tiles(0.5f, true)) << m << "x" << k << "x" << n;
      EXPECT_LE(p.error(own, 0.5), std::max(1.5 * p.error(p.on_avx512(0.5f), 0.5), 0x1p-23))  // the products left out
          << m << "x" << k << "x" << n << " range " << range;
    }
  }
}

TEST(Tiles, TheLargestFloatsStayFinite) {
  if (!host_isas().has(Isa::amx)) GTEST_SKIP() << "needs AMX";
  Product p(17, 33, 40, 1);
  for (float& x : p.a) x = 0;
  for (float& x : p.b) x = 1;
  p.a[3 * p.k + 5] = std::numeric_limits<float>::max();
  p.a[4 * p.k + 6] = std::numeric_limits<float>::infinity();
  p.a[5 * p.k + 7] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> c = p.on_tiles(1, false);
  EXPECT_EQ(c[3 * p.n], std::numeric_limits<float>::max());
  EXPECT_FALSE(std::isfinite(c[4 * p.n]));
  EXPECT_TRUE(std::isnan(c[5 * p.n]));
  EXPECT_EQ(c[6 * p.n], 0);
}

}  // namespace
}  // namespace modelflow::cpu
