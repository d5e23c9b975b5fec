// The kernels of QMatMul: rows of A are quantized as they come, then multiplied by int8 weights.
#include <algorithm>
#include <cmath>

#include "backends/cpu/frame/near.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/frame/weight_cache.h"
#include "backends/cpu/gemm/int8_isas.h"
#include "backends/cpu/gemm/kernels.h"
#include "backends/cpu/gemm/low_precision_problem.h"
#include "backends/cpu/gemm/tasks.h"
#include "src/core/bounded_pairs.h"

namespace modelflow::cpu {
namespace {

using ops::QMatMulAttrs;

template <class On>
class QMatMulVectors : public Implementation {
 public:
  QMatMulVectors(const Call& call, const Target& target)
      : attrs_(call), activation_(activation_of(call)), near_(near_bytes(target, 448 << 10)) {
    const Tensor& b = *call.in(1).constant;
    const auto k = static_cast<std::size_t>(b.dims()[attrs_.trans_b]),
               n = static_cast<std::size_t>(b.dims()[1 - attrs_.trans_b]);
    const std::string layout = std::string(On::kLayout) + (attrs_.trans_b ? " transposed" : "");
    packed_ = packed_weights(b, layout, On::packed_bytes(k, n),
                             [&](std::byte* out) { On::pack(b.as<std::int8_t>().data(), attrs_.trans_b, k, n, out); });
    if (attrs_.has_zero_point) {
      const auto given = call.in(3).constant->as<float>();
      zeros_.assign(given.begin(), given.end());
      zeros_.resize((n + On::kColumns - 1) / On::kColumns * On::kColumns);
    }
  }

  void run(Invocation& call) const override {
    const QMatMulProblem p(attrs_, call);
    auto* y = static_cast<float*>(call.output(0, p.y));
    if (p.m == 0 || p.n == 0) return;
    const typename On::Panels a{p.m, p.k};
    auto* steps = reinterpret_cast<std::uint8_t*>(call.scratch(a.bytes()));
    auto* units = reinterpret_cast<float*>(call.scratch(p.m * sizeof(float)));
    const TensorSteps all = attrs_.per_tensor ? steps_of(p, call) : TensorSteps{attrs_.a_scale, attrs_.a_zero_point};
    BytesGemm g = product(p, steps, units, y);
    g.zero_point = attrs_.by_row() ? 128 : all.zero_point;
    auto* sums = zeros_.empty() ? nullptr : reinterpret_cast<std::int32_t*>(call.scratch(p.m * sizeof(std::int32_t)));
    g.row_sum = sums, g.column_zero = sums ? zeros_.data() : nullptr;
    const auto bytes = static_cast<double>(p.n) * static_cast<double>(p.k);
    const QuantizedRows out{steps, units, sums};
    const auto quantize = [&](std::size_t begin, std::size_t end) {
      if (attrs_.by_row()) return On::quantize_rows(a, p.a, begin, end, out);
      On::quantize(a, p.a, begin, end, all.scale, all.zero_point, out);
    };
    share_product(a, {p.m, p.n, p.k, On::kColumns, bytes}, 0, call, quantize,
                  [&](std::size_t begin, std::size_t end, std::size_t n_begin, std::size_t n_end, std::byte*) {
                    On::multiply(g, begin, end, n_begin, n_end);
                  });
  }

 private:
  /// From the range of all of a.
  static TensorSteps steps_of(const QMatMulProblem& p, Invocation& call) {
    const std::size_t n = p.m * p.k, parts = std::clamp<std::size_t>(n / 65536, 1, call.threads());
    auto* low = reinterpret_cast<float*>(call.scratch(2 * parts * sizeof(float)));
    float* high = low + parts;
    share(call, n, parts, [&](std::size_t begin, std::size_t end, std::size_t part) {
      On::range(p.a + begin, end - begin, low + part, high + part);
    });
    Range all;
    for (std::size_t i = 0; i < parts; ++i) all.add(low[i], high[i]);
    return tensor_steps(all);
  }

  BytesGemm<typename On::Panels> product(const QMatMulProblem& p, const std::uint8_t* steps, const float* units,
                                         float* y) const {
    BytesGemm<typename On::Panels> g;
    g.rows = {p.m, p.k};
    g.n = p.n;
    g.a = steps;
    g.b = packed_.get();
    g.row_scale = units;
    g.column_scale = p.b_scale;
    g.out = {y, p.n, p.bias, p.residual, attrs_.residual, activation_};
    g.near = near_;
    return g;
  }

  QMatMulAttrs attrs_;
  ActivationSpec activation_;
  std::size_t near_;
  std::shared_ptr<const std::byte> packed_;
  std::vector<std::int32_t> zeros_;  // of the columns of b, whole panels; empty: 0
};

Verdict accepts(const Call& call, const Target& target) {
  if (Verdict v = accepts_qmatmul(call, target); !v) return v;
  const Tensor* b = call.in(1).constant;
  if (!b) return no("b is not constant", call.in(1).name);
  if (QMatMulAttrs(call).has_zero_point && !call.in(3).constant)
    return no("the zero points are not constant", call.in(3).name);
  return b->elements() > 0 ? yes() : no("b is empty", call.in(1).name);
}

Verdict accepts_amx(const Call& call, const Target& target) {
  if (Verdict v = accepts(call, target); !v) return v;
  return rows_of_product(call, kFewRows) < kFewRows ? no("has few rows", call.in(0).name) : yes();
}

/// In units of what an fma does: vpdpbusd 4, a tile 64 for as long as it is read from L1, vpmaddwd and its sum 1.5.
double cost_at(const Call& call, const Target& target, double products) {
  const ProductWork work = qmatmul_work(call);
  return std::max(target.compute(work.steps / products + work.epilogue, 0.8), target.stream(work.bytes));
}

/// The same in words, whose panels of columns are whole.
double cost_in_words(const Call& call, const Target& target, double products) {
  const Tensor* b = call.in(1).constant;
  const double n = b ? static_cast<double>(b->dims()[1 - QMatMulAttrs(call).trans_b]) : 0;
  const double whole = n > 0 ? std::ceil(n / OnPairs::kColumns) * OnPairs::kColumns / n : 1;
  return cost_at(call, target, products / whole);
}

}  // namespace

const Kernel qmatmul_amx = {
    .op = "QMatMul",
    .name = "cpu.qmatmul_amx",
    .needs = Isa::amx,
    .accepts = accepts_amx,
    .cost = [](const Call& call, const Target& target) { return cost_at(call, target, 24); },
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<QMatMulVectors<OnAmx>>(call, target);
    },
};

const Kernel qmatmul_vnni = {
    .op = "QMatMul",
    .name = "cpu.qmatmul_vnni",
    .needs = Isa::avx512_vnni,
    .accepts = accepts,
    .cost = [](const Call& call, const Target& target) { return cost_at(call, target, 4); },
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<QMatMulVectors<OnVnni>>(call, target);
    },
};

const Kernel qmatmul_avx_vnni = {
    .op = "QMatMul",
    .name = "cpu.qmatmul_avx_vnni",
    .needs = Isa::avx_vnni,
    .accepts = accepts,
    .cost = [](const Call& call, const Target& target) { return cost_in_words(call, target, 4); },
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<QMatMulVectors<OnQuads>>(call, target);
    },
};

const Kernel qmatmul_avx2 = {
    .op = "QMatMul",
    .name = "cpu.qmatmul_avx2",
    .needs = Isa::avx2,
    .accepts = accepts,
    .cost = [](const Call& call, const Target& target) { return cost_in_words(call, target, 1.5); },
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      const Tensor& b = *call.in(1).constant;
      const bool transposed = QMatMulAttrs(call).trans_b;
      if (bounded_pairs(b.as<std::int8_t>(), static_cast<std::size_t>(b.dims()[1 - transposed]), transposed))
        return std::make_unique<QMatMulVectors<OnBoundedQuads>>(call, target);
      return std::make_unique<QMatMulVectors<OnPairs>>(call, target);
    },
};

}  // namespace modelflow::cpu
