// Shares a product of float32 on AMX among threads. Tiles multiply bfloat16 only: every float32 number is split into
// three of 8 significant bits, and six of their nine products are computed; the others are below the last bit of the
// result (Henry, Tang, Heinecke: Leveraging the bfloat16 Artificial Intelligence Datatype, 2019).
#include "backends/cpu/gemm/f32_tiles.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "backends/cpu/gemm/f32_amx.h"
#include "backends/cpu/gemm/tasks.h"

namespace modelflow::cpu {

// In cycles of Emerald Rapids: products at the rate that tiles have with numbers that are not zero (1.28 times the
// time), sums that pass through memory, rows and weights cut into parts, and waking the unit. A neighbour on the same
// core takes more from tiles (60 %) than from vectors (30 %), so that a small gain is none.
bool tiles_pay(std::size_t rows, std::size_t columns, std::size_t depth) {
  constexpr std::size_t kLeastRows = 48;  // fewer leave the vector units no time to cut the weights into parts
  constexpr double kLeastGain = 1.3;
  const auto whole = [](std::size_t n) { return static_cast<double>((n + kTileBlock - 1) / kTileBlock * kTileBlock); };
  const auto m = static_cast<double>(rows), n = static_cast<double>(columns), k = static_cast<double>(depth);
  const double vectors = m * n * k / 29;
  const double tiles = 0.015 * m * whole(columns) * whole(depth) + 1.3 * m * n + 0.5 * m * k + 0.8 * n * k + 12000;
  return rows >= kLeastRows && kLeastGain * tiles < vectors;
}

Verdict accepts_tiles(const Operand& rows, const Tensor& weights, std::size_t columns) {
  constexpr std::size_t kMany = 4096;  // rows of an unknown number
  const auto depth = static_cast<std::size_t>(weights.elements()) / columns;
  const std::size_t m = rows.shape.known() ? static_cast<std::size_t>(rows.shape.known_elements()) / depth : kMany;
  return tiles_pay(m, columns, depth) ? yes() : no("takes AVX-512 less time", rows.name);
}

double tiles_cost(double flops, double bytes, const Target& target) {
  constexpr double kRate = 16;  // of products of bfloat16, beside those of float32
  return std::max(target.compute(flops * static_cast<double>(kPartProducts) / kRate, 0.6), target.stream(1.5 * bytes));
}

bool all_finite(std::span<const float> numbers) {
  return std::ranges::all_of(numbers, [](float x) { return std::isfinite(x); });
}

bool multiply_on_tiles(const Gemm& gemm, Invocation& call) {
  const double bytes = 4.0 * static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
  constexpr std::size_t kTaskRows = 128;  // each task cuts its columns of B into parts
  const ProductExtent extent{gemm.m, gemm.n, gemm.k, kTileBlock, bytes, kTaskRows};
  const ops::Residual use = gemm.residual ? gemm.residual_use : ops::Residual::none;
  F32Gemm g{{gemm.m, split_row_bytes(gemm.k)},
            gemm.n,
            gemm.k,
            gemm.a,
            nullptr,
            gemm.b,
            {gemm.c, gemm.n, gemm.bias, gemm.residual, use, gemm.activation},
            gemm.scale};
  // Rows that several tasks read are split once for all of them.
  std::byte* parts = split_product(extent, call.threads()).panels > 1 ? call.scratch(g.rows.bytes()) : nullptr;
  g.parts = parts;
  std::atomic<bool> finite = true;
  share_product(
      g.rows, extent, gemm_f32_amx_scratch(g, g.rows.count(), g.n), call,
      [&](std::size_t begin, std::size_t end) {
        if (parts && !split_rows_amx(g.rows, g.a, g.k, begin, end, parts)) finite = false;
      },
      [&](std::size_t begin, std::size_t end, std::size_t n0, std::size_t n1, std::byte* own) {
        if (!gemm_f32_amx(g, begin, end, n0, n1, own)) finite = false;
      });
  return finite;
}

}  // namespace modelflow::cpu
