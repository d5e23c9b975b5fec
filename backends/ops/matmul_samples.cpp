// Sample calls of MatMul: layers of real models, then every option once.
#include <cmath>
#include <list>

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
  };
  for (const std::string& activation : activation_names()) {
    all.push_back({{3, 11, 40}, {40, 50}, with(dense(activation), before)});
    all.push_back({{2, 5, 20}, {20, 19}, with(activation_sample(activation), after), false});
  }
  all.push_back({{5, 20}, {20, 37}, with(dense("HardSwish"), {{"post_scale", 1.5f}, {"post_shift", -0.25f}})});
  return all;
}

// Weights that are the same on every machine, of a size that keeps results near one.
Tensor constant(const Dims& dims, std::int64_t depth) {
  const float scale = 1.5f / std::sqrt(static_cast<float>(depth));
  return Tensor::make(DType::f32, dims, [&](std::byte* bytes) {
    auto* out = reinterpret_cast<float*>(bytes);
    std::uint32_t state = 88172645u + static_cast<std::uint32_t>(element_count(dims));
    for (std::int64_t i = 0; i < element_count(dims); ++i) {
      state = state * 1664525u + 1013904223u;
      out[i] = scale * (static_cast<float>(state >> 8) / 8388608.0f - 1);
    }
  });
}

}  // namespace

Call matmul_call(Dims a, Dims b, Attrs attrs) {
  const auto otherwise = [&](const char* name, const Attr& value) {
    if (!attrs.has(name)) attrs.set(name, value);
  };
  for (const char* name : {"trans_a", "trans_b", "has_bias"}) otherwise(name, std::int64_t{0});
  otherwise("scale", 1.0f);
  otherwise("residual", std::string("none"));
  otherwise("activation", std::string("None"));
  otherwise("alpha", 0.0f);
  otherwise("beta", 0.0f);
  otherwise("post_scale", 1.0f);
  otherwise("post_shift", 0.0f);
  const MatMulAttrs matmul(attrs);
  const std::size_t rank = std::max(a.size(), b.size());
  Dims y(rank);
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    const std::int64_t left = i + a.size() < rank ? 1 : a[i + a.size() - rank];
    y[i] = left != 1 || i + b.size() < rank ? left : b[i + b.size() - rank];
  }
  y[rank - 2] = a[a.size() - 2 + matmul.trans_a];
  y[rank - 1] = b[b.size() - 1 - matmul.trans_b];
  const auto operand = [](const char* name, const Dims& dims) { return Operand{name, DType::f32, Shape::of(dims)}; };
  Call call{"MatMul", std::move(attrs), {operand("a", a), operand("b", b)}, {operand("y", y)}};
  if (matmul.has_bias) call.inputs.push_back(operand("bias", {y.back()}));
  if (matmul.residual != MatMulAttrs::Residual::none) call.inputs.push_back(operand("residual", y));
  return call;
}

std::vector<Call> matmul_samples() {
  static const auto made = [] {
    std::pair<std::vector<Call>, std::list<Tensor>> result;  // the list keeps what the calls point to
    for (Sample& sample : samples()) {
      Call call = matmul_call(sample.a, sample.b, sample.attrs);
      const MatMulAttrs matmul(call.attrs);
      const std::int64_t depth = sample.a[sample.a.size() - 1 - matmul.trans_a];
      for (std::size_t i = 1; i < 2u + matmul.has_bias; ++i) {
        if (i == 1 && !sample.weights) continue;
        call.inputs[i].constant =
            &result.second.emplace_back(constant(call.inputs[i].shape.values(), i == 1 ? depth : 9));
      }
      result.first.push_back(std::move(call));
    }
    return result;
  }();
  return made.first;
}

}  // namespace modelflow::ops
