// Runs a matrix product in low precision on the threads of a call: rows are packed by whoever comes first.
#pragma once

#include <algorithm>

#include "backends/cpu/frame/scratch_tasks.h"
#include "backends/cpu/frame/shared_work.h"
#include "backends/cpu/gemm/split.h"

namespace modelflow::cpu {

/// Runs a product of [m, k] by packed [k, n] on the threads of the call. `a` tells the panels of rows; `pack(begin,
/// end)` brings some of them into order, each once; `multiply(begin, end, n_begin, n_end, scratch)` does a part of the
/// product with rows that are, `scratch` being `bytes` of memory of its own.
template <class Panels, class Pack, class Multiply>
void share_product(const Panels& a, const ProductExtent& e, std::size_t bytes, Invocation& call, Pack pack,
                   Multiply multiply) {
  const ProductSplit s = split_product(e, call.threads());
  const std::size_t parts = std::clamp<std::size_t>(e.m * e.k / 16384, 1, std::min(a.count(), call.threads() * 2));
  SharedWork rows(parts);
  run_with_scratch(call, static_cast<std::int64_t>(s.tasks()), bytes, [&](std::int64_t task, std::byte* scratch) {
    const std::size_t i = static_cast<std::size_t>(task) / s.panels, j = static_cast<std::size_t>(task) % s.panels;
    const std::size_t begin = a.count() * i / s.rows, end = a.count() * (i + 1) / s.rows;
    if (s.panels == 1) {
      pack(begin, end);
    } else {  // several tasks read the same rows
      rows.finish([&](std::size_t part) { pack(a.count() * part / parts, a.count() * (part + 1) / parts); });
    }
    const std::size_t all = (e.n + e.panel - 1) / e.panel;
    multiply(begin, end, all * j / s.panels * e.panel, std::min(all * (j + 1) / s.panels * e.panel, e.n), scratch);
  });
}

}  // namespace modelflow::cpu
