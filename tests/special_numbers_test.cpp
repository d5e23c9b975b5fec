// NaN and infinity where the bodies of ops have no one answer: ONNX Runtime keeps a NaN or drops it by where it stands,
// or casts it to an integer. Here it stays, in every kernel, and spoils nothing but what is computed from it. All else
// is compared with the bodies in generated_test.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/ops/matmul_attrs.h"
#include "tests/call_model.h"
#include "tests/close.h"
#include "tests/each_kernel.h"

namespace modelflow {
namespace {

using domains::Operands;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

Tensor with(const Tensor& tensor, std::initializer_list<std::pair<std::size_t, float>> numbers) {
  return Tensor::make(DType::f32, tensor.dims(), [&](std::byte* bytes) {
    std::copy_n(tensor.data(), byte_count(DType::f32, tensor.dims()), bytes);
    for (const auto& [at, number] : numbers) reinterpret_cast<float*>(bytes)[at] = number;
  });
}

TEST(SpecialNumbers, AMaximumOfAWindowKeepsNan) {
  for (const char* op : {"Pool", "PoolBf16"}) {
    for (const std::int64_t channels : {1, 17, 70}) {
      Operands made = call_of(op, {{"mode", std::string("max")},
                                   {"kernel_shape", Ints{2, 2}},
                                   {"strides", Ints{1, 1}},
                                   {"pads", Ints{1, 1, 0, 0}}});
      const auto c = static_cast<std::size_t>(channels);
      Tensor x = made.normal({1, 3, 3, channels});
      x = with(x, {{4 * c, kNan}, {0, -kInf}});  // the pixel in the middle, and the first one
      made.feed("x", x);
      with_results(made, [&](std::span<const float> y) {
        for (std::size_t i = 0; i < y.size(); ++i) {
          const std::size_t row = i / c / 3, column = i / c % 3;
          const bool spoiled = i % c == 0 && row >= 1 && column >= 1;
          EXPECT_EQ(std::isnan(y[i]), spoiled) << i;
        }
        EXPECT_EQ(y[0], -kInf) << "padding is no number";
      });
    }
  }
}

TEST(SpecialNumbers, AnInfinityWhoseGateIsZeroIsNoNumberBesideASkip) {
  for (const char* layout : {"NHWC", "NCHW"}) {
    for (const std::int64_t skip : {0, 1}) {
      Operands made = call_of("SqueezeExcite",
                              {{"layout", std::string(layout)}, {"gate", std::string("HardSigmoid")}, {"skip", skip}});
      const Tensor x =
          with(made.normal(std::string_view(layout) == "NHWC" ? Dims{1, 4, 5, 1} : Dims{1, 1, 4, 5}), {{7, kInf}});
      made.feed("x", x);
      made.constant("w1", Tensor::of<float>({1, 1, 1, 1}, {1}), true);
      made.constant("b1", Tensor::of<float>({1}, {0}), true);
      made.constant("w2", Tensor::of<float>({1, 1, 1, 1}, {-1}), true);  // the gate of -infinity is 0
      made.constant("b2", Tensor::of<float>({1}, {0}), true);
      with_results(made, [&](std::span<const float> y) {
        for (std::size_t i = 0; i < y.size(); ++i) {
          EXPECT_EQ(std::isnan(y[i]), i == 7) << i;
          if (i != 7) {
            EXPECT_EQ(y[i], skip != 0 ? x.as<float>()[i] : 0) << i;
          }
        }
      });
    }
  }
}

TEST(SpecialNumbers, LargestAndSmallestKeepNan) {
  for (const char* op : {"ReduceMax", "ReduceMin"}) {
    for (const std::int64_t n : {1, 7, 33, 600}) {
      for (const std::int64_t axis : {-1, -2}) {
        Operands made = call_of("Reduce", {{"program", std::string(op) + " x0; Neg t0"}, {"axis", axis}});
        const auto size = static_cast<std::size_t>(n);
        const std::size_t at = axis == -1 ? 2 * size + size / 2 : size / 2 * 5 + 2;
        made.feed("x0", with(made.normal(axis == -1 ? Dims{5, n} : Dims{n, 5}), {{at, kNan}}));
        with_results(made, [&](std::span<const float> y) {
          for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i == 2) << i;
        });
      }
    }
  }
}

/// A row with such a number has no steps: it spoils its own results, and all where they share a scale.
TEST(SpecialNumbers, ProductsIn8BitsKeepWhatIsNotFinite) {
  for (const float number : {kNan, kInf, -kInf}) {
    for (const bool tensor : {false, true}) {
      for (const std::int64_t rows : {1, 3, 40}) {
        Operands made = call_of("QMatMul", {{"a_per_tensor", std::int64_t{tensor}}});
        made.feed("a", with(made.normal({rows, 70}), {{69, number}}));
        made.constant("b", made.steps({70, 33}));
        made.constant("b_scale", made.weights({33}, 5000 * 70));
        with_results(made, [&](std::span<const float> y) {
          for (std::size_t i = 0; i < y.size(); ++i) {
            EXPECT_EQ(std::isfinite(y[i]), !tensor && i >= 33) << i << " of " << number;
            EXPECT_TRUE(tensor || !std::isinf(y[i])) << i << " of " << number << ": of what sign?";
          }
        });
      }
    }
    Operands made = call_of("QMatMul4", {{"block", std::int64_t{16}}});
    made.feed("a", with(made.normal({5, 32}), {{40, number}}));
    made.constant("b", made.bytes({33, 2, 8}));
    made.constant("b_scale", made.weights({33, 2}, 20 * 32));
    with_results(made, [&](std::span<const float> y) {
      for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 33 == 1) << i << " of " << number;
    });
  }
}

TEST(SpecialNumbers, KnownStepsOfNanAreThoseOfQuantizeLinear) {
  Operands made = call_of("QMatMul", {{"a_scale", 0.02f}, {"a_zero_point", std::int64_t{7}}});
  made.feed("a", with(Tensor::of<float>({1, 1}, std::vector<float>{0}), {{0, kNan}}));
  made.constant("b", Tensor::of<std::int8_t>({1, 1}, std::vector<std::int8_t>{3}));
  made.constant("b_scale", Tensor::of<float>({1}, std::vector<float>{1}));
  with_results(made, [&](std::span<const float> y) { EXPECT_NEAR(y[0], -7 * 0.02f * 3, 1e-6); });
}

TEST(SpecialNumbers, AttentionIn8BitsKeepsNan) {
  for (const float number : {kNan, kInf, -kInf}) {
    for (const std::int64_t guard : {0, 1}) {
      Operands made = call_of("QAttention", {{"packed", std::int64_t{1}}, {"nan_guard", guard}});
      made.feed("qkv", with(made.normal({1, 20, 3 * 16}), {{3 * 48 + 5, number}}));  // query 3
      with_results(made, [&](std::span<const float> y) {
        for (std::size_t i = 0; i < y.size(); ++i) {
          const bool row = i / 16 == 3;
          EXPECT_EQ(std::isnan(y[i]), row && !guard) << i << " of " << number;
          EXPECT_TRUE(!row || !guard || y[i] == 0) << i << " of " << number;
        }
      });
    }
    Operands made = call_of("QAttention", {{"packed", std::int64_t{1}}});
    made.feed("qkv", with(made.normal({1, 20, 3 * 16}), {{4 * 48 + 32 + 7, number}}));  // column 7 of the values
    with_results(made, [&](std::span<const float> y) {
      for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i % 16 == 7) << i << " of " << number;
    });
  }
}

/// Behind an infinity the gates of float32 are numbers; a row in 8 bits has no steps then.
TEST(SpecialNumbers, CellsKeepNan) {
  for (const auto& [op, number] :
       {std::pair{"LSTM", kNan}, {"GRU", kNan}, {"QLSTM", kNan}, {"QGRU", kNan}, {"QLSTM", kInf}, {"QGRU", -kInf}}) {
    const bool lstm = std::string(op).ends_with("LSTM"), steps = op[0] == 'Q';
    const std::int64_t hidden = 19, rows = (lstm ? 4 : 3) * hidden;
    Operands made = call_of(op, {{"hidden_size", hidden}, {"outputs", std::string("Y_h")}});
    made.feed("x", with(made.normal({3, 4, 8}), {{32 + 2 * 8 + 1, number}}));  // step 1 of sequence 2
    for (const auto& [name, depth] : {std::pair{"w", std::int64_t{8}}, std::pair{"r", hidden}})
      made.constant(name, steps ? made.steps({1, rows, depth}) : made.weights({1, rows, depth}, depth));
    for (const char* name : {"w_scale", "r_scale"})
      if (steps) made.constant(name, made.weights({1, rows}, 5000 * 8));
    with_results(made, [&](std::span<const float> y) {
      for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 19 == 2) << i;
    });
  }
}

TEST(SpecialNumbers, AttentionOfUnlikeBatchesIsAnError) {
  Operands made = call_of("Attention", {});
  for (const auto& [name, batch] : {std::pair{"q", 2}, std::pair{"k", 3}, std::pair{"v", 3}})
    made.feed(name, made.normal({batch, 5, 8}));
  const std::string said = find_fused_op("Attention")->infer(made.call).reason;
  EXPECT_NE(said.find("has 3 batches, the operands before it 2"), std::string::npos) << said;
  for (Operand& in : made.call.inputs) in.shape = Shape();  // known at run time only
  HostThreads threads(2);
  for (const Kernel* kernel : kernels()) {
    if (kernel->op != "Attention" || !kernel->fits(Target::host())) continue;
    HostInvocation invocation(threads, {made.values().begin(), made.values().end()});
    EXPECT_THROW(kernel->create(made.call, Target::host())->run(invocation), Error) << kernel->name;
  }
}

}  // namespace
}  // namespace modelflow
