// Sample calls of MatMul: layers of real models, then every option once.
#include "backends/ops/activation_body.h"
#include "backends/ops/matmul_attrs.h"
#include "backends/ops/sample_weights.h"

namespace modelflow::ops {
namespace {

struct Sample {
  Dims a, b;
  Attrs attrs = {};
  bool weights = true;
};

const Attrs kBias = {{"has_bias", std::int64_t{1}}};
const Attrs kRowBias = {{"has_bias", std::int64_t{1}}, {"row_bias", std::int64_t{1}}};
const Attrs kTransA = {{"trans_a", std::int64_t{1}}};
const Attrs kTransB = {{"trans_b", std::int64_t{1}}};

Attrs dense(std::string_view activation) { return with(kBias, activation_sample(activation)); }

// Layers of BERT, ViT and PP-OCR first, then every option once on something small.
std::vector<Sample> samples() {
  const Attrs scaled = {{"scale", 0.125f}};
  const Attrs before = {{"residual", "before"}}, after = {{"residual", "after"}}, times = {{"residual", "times"}};
  std::vector<Sample> all = {
      {{1, 128, 768}, {768, 768}, with(kBias, before)},
      {{1, 128, 768}, {768, 3072}, dense("Gelu")},
      {{1, 32, 3072}, {3072, 768}, with(kBias, before)},
      {{1, 197, 384}, {384, 1536}, dense("Gelu")},
      {{8, 312}, {1000, 312}, with(kBias, kTransB)},
      {{1, 1024}, {1024, 1000}, kBias},
      {{1, 12, 128, 64}, {1, 12, 128, 64}, with(kTransB, scaled), false},
      {{1, 12, 128, 128}, {1, 12, 128, 64}, {}, false},
      {{1, 40, 120}, {120, 6625}, kBias},
      {{3, 1, 5, 33}, {4, 33, 17}, {}, false},
      {{4, 33, 5}, {3, 1, 17, 33}, with(with(kTransA, kTransB), scaled), false},
      {{2, 7, 65}, {65, 70}, {}, false},
      {{65, 7}, {65, 70}, kTransA},
      {{13, 1}, {1, 45}, kBias},
      {{0, 7, 64}, {64, 48}, kBias},
      {{2, 7, 0}, {0, 48}, kBias, false},
      {{2, 7, 64}, {64, 0}, {}, false},
      {{1, 3, 129}, {2, 129, 31}, with(kBias, after)},
      {{1, 600, 40}, {40, 24}, with(dense("Relu"), after)},
      {{6, 1030}, {1030, 97}, with(dense("SiLU"), with(scaled, after))},
      {{1, 20, 64}, {64, 172}, with(dense("SiLU"), times)},
      {{3, 70}, {70, 33}, times, false},
      {{2, 7, 0}, {0, 48}, times, false},
      {{196, 196}, {1, 196, 768}, with(kRowBias, times), false},  // tokens of gMLP and MLP-Mixer
      {{256, 49}, {1, 49, 512}, with(kRowBias, activation_sample("Gelu")), false},
      {{2, 9, 40}, {40, 70}, with(kRowBias, before)},
  };
  for (const std::string& activation : activation_names()) {
    all.push_back({{3, 11, 40}, {40, 50}, with(dense(activation), before)});
    all.push_back({{2, 5, 20}, {20, 19}, with(activation_sample(activation), after), false});
  }
  all.push_back({{5, 20}, {20, 37}, with(dense("HardSwish"), {{"post_scale", 1.5f}, {"post_shift", -0.25f}})});
  return all;
}

/// Every attribute is written out.
Call matmul_call(const Dims& a, const Dims& b, const Attrs& attrs) {
  Call call{"MatMul", with(matmul_op.defaults, attrs), {}, {}};
  const MatMulAttrs matmul(call);
  const std::size_t rank = std::max(a.size(), b.size());
  Dims y(rank);
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    const std::int64_t left = i + a.size() < rank ? 1 : a[i + a.size() - rank];
    y[i] = left != 1 || i + b.size() < rank ? left : b[i + b.size() - rank];
  }
  y[rank - 2] = a[a.size() - 2 + matmul.trans_a];
  y[rank - 1] = b[b.size() - 1 - matmul.trans_b];
  const auto operand = [](const char* name, const Dims& dims) { return Operand{name, DType::f32, Shape::of(dims)}; };
  call.inputs = {operand("a", a), operand("b", b)};
  call.outputs = {operand("y", y)};
  if (matmul.has_bias) call.inputs.push_back(operand("bias", matmul.row_bias ? Dims{y[rank - 2], 1} : Dims{y.back()}));
  if (matmul.residual != Residual::none) call.inputs.push_back(operand("residual", y));
  return call;
}

}  // namespace

std::vector<Call> matmul_samples() {
  static const Samples made = [] {
    Samples all;
    for (Sample& sample : samples()) {
      Call call = matmul_call(sample.a, sample.b, sample.attrs);
      const MatMulAttrs matmul(call);
      const std::int64_t depth = sample.a[sample.a.size() - 1 - matmul.trans_a];
      for (std::size_t i = 1; i < 2u + matmul.has_bias; ++i) {
        if (i == 1 && !sample.weights) continue;
        const Dims dims = call.inputs[i].shape.values();
        call.inputs[i].constant = &all.weights.emplace_back(sample_weights(dims, i == 1 ? depth : 9));
      }
      all.calls.push_back(std::move(call));
    }
    return all;
  }();
  return made.calls;
}

}  // namespace modelflow::ops
