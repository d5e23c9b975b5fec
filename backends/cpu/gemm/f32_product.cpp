// Cuts products of float32 into tasks for the threads of a call.
#include "backends/cpu/gemm/f32_product.h"

#include <algorithm>
#include <string>

#include "backends/cpu/frame/near.h"
#include "backends/cpu/frame/scratch_tasks.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/frame/weight_cache.h"

namespace modelflow::cpu {

F32Product::F32Product(const F32Code& f32, const Target& target)
    : code(f32), blocks(f32.blocks(target)), small_b_(near_bytes(target, 256 << 10)) {}

void F32Product::reads_packed(Gemm& g) const {
  g.ldb = code.panel;
  g.panel = code.panel * g.k;
}

// Weights are what travels far: every thread gets its own columns, so that each weight is read by one core only. When B
// fits in L2 beside the rest, rows are cut instead. A few tasks per thread even out noise on busy machines.
ProductSplit F32Product::split(const Gemm& g, std::size_t threads) const {
  const double flops = 2.0 * static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  if (threads == 1 || flops < 1e6) return {};
  const std::size_t wanted = even_tasks(
      std::min<std::size_t>(threads * 3, std::max<std::size_t>(static_cast<std::size_t>(flops / 5e5), 2)), threads);
  const bool rows_first = g.k * g.n * sizeof(float) <= small_b_;
  return cut_product(wanted, rows_first, std::max<std::size_t>(g.m / 12, 1), tiles(g.n));
}

void F32Product::run_part(const Gemm& g, const ProductSplit& s, std::size_t task, std::byte* own) const {
  const std::size_t row = task / s.panels, column = task % s.panels, all = tiles(g.n);
  const std::size_t n0 = all * column / s.panels * code.tile, n1 = all * (column + 1) / s.panels * code.tile;
  code.gemm(g, g.m * row / s.rows, g.m * (row + 1) / s.rows, n0, std::min(n1, g.n), reinterpret_cast<float*>(own));
}

// Memory that each part of a product wants.
std::size_t F32Product::own_bytes(const Gemm& g, const ProductSplit& s) const {
  const std::size_t columns = tiles(g.n) / s.panels * code.tile;  // of the smallest part
  return code.packed_a_floats(g, (g.m + s.rows - 1) / s.rows, std::min(columns, g.n)) * sizeof(float);
}

void F32Product::multiply(std::span<const Gemm> products, Invocation& call) const {
  const ProductSplit s = split(products[0], products.size() < call.threads() ? call.threads() : 1);
  const std::size_t parts = s.tasks(), tasks = parts * products.size();
  const auto task = [&](std::size_t i, std::byte* own) { run_part(products[i / parts], s, i % parts, own); };
  if (const std::size_t bytes = own_bytes(products[0], s))
    return run_with_scratch(call, static_cast<std::int64_t>(tasks), bytes, task);
  if (tasks == 1) return task(0, nullptr);
  call.parallel(tasks, [&](std::size_t i) { task(i, nullptr); });
}

std::shared_ptr<const std::byte> packed_matrix(const Tensor& b, std::size_t k, std::size_t n, bool transposed,
                                               const F32Code& code) {
  const std::string layout = std::string(code.layout) + (transposed ? " transposed" : "");
  return packed_weights(b, layout, code.packed_floats(k, n) * sizeof(float), [&](std::byte* out) {
    code.pack_b(b.as<float>().data(), transposed ? k : n, transposed, k, n, 0, code.panels(n),
                reinterpret_cast<float*>(out));
  });
}

}  // namespace modelflow::cpu
