// Normalization against double precision: sizes around the vector width, means far from zero, every instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "backends/cpu/loops/vector_code.h"
#include "backends/host_invocation.h"
#include "modelflow/kernel.h"
#include "modelflow/target.h"

namespace modelflow::cpu {
namespace {

std::vector<float> numbers(std::size_t n, float mean, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(mean);
  std::vector<float> values(n);
  for (float& value : values) value = normal(engine);
  return values;
}

struct Expected {
  double mean = 0, variance = 0;
};

Expected moments_of(const std::vector<float>& x) {
  Expected e;
  for (const float value : x) e.mean += value;
  e.mean /= static_cast<double>(x.size());
  for (const float value : x) e.variance += (value - e.mean) * (value - e.mean);
  e.variance /= static_cast<double>(x.size());
  return e;
}

struct Compiled {
  const char* name;
  Isa needs;
  const VectorCode& code;
};
const Compiled kCompiled[] = {{"any", Isa::baseline, vector_code_any},
                              {"avx2", Isa::avx2, vector_code_avx2},
                              {"avx512", Isa::avx512, vector_code_avx512}};

class NormLoopsTest : public testing::TestWithParam<const Compiled*> {
 protected:
  static const NormLoops& loops() { return GetParam()->code.norm; }
  void SetUp() override {
    if (!host_isas().has(GetParam()->needs)) GTEST_SKIP() << "not on this machine";
  }
};

TEST_P(NormLoopsTest, SoftmaxOfLongColumnsAddsUpToOne) {
  for (const std::size_t inner : {3U, 40U}) {
    const std::size_t n = (1U << 22) / inner;
    const std::vector<float> x = numbers(n * inner, 0, 1);
    std::vector<float> y(n * inner);
    GetParam()->code.softmax.columns({.n = n, .inner = inner, .count = inner, .x = x.data(), .y = y.data()});
    for (std::size_t column = 0; column < inner; ++column) {
      double sum = 0;
      for (std::size_t i = column; i < y.size(); i += inner) sum += y[i];
      EXPECT_NEAR(sum, 1, 3e-6) << column << " of " << inner;
    }
  }
}

/// Three rows of n numbers, with a residual and without, whose sum is kept or not; y where x is.
void check_rows(const VectorCode& code, std::size_t n, bool residual, bool keep) {
  constexpr std::size_t kRows = 3;
  const std::vector<float> x = numbers(kRows * n, 0, 1), r = numbers(kRows * n, 0, 2), scale = numbers(n, 1, 3),
                           bias = numbers(n, 0, 4);
  std::vector<float> sum(kRows * n), plain(kRows * n), rms(kRows * n), both = x;
  for (std::size_t i = 0; residual && i < both.size(); ++i) both[i] += r[i];
  NormRows rows{n,
                kRows,
                x.data(),
                residual ? r.data() : nullptr,
                scale.data(),
                bias.data(),
                1e-5F,
                keep ? sum.data() : nullptr,
                plain.data()};
  code.norm.layer_norm(rows);
  if (keep) {
    EXPECT_EQ(sum, both);
  }
  rows.bias = nullptr;
  rms = x;
  rows.x = rows.y = rms.data();
  code.norm.rms_norm(rows);
  for (std::size_t first = 0; first < kRows * n; first += n) {
    const Expected e = moments_of(
        {both.begin() + static_cast<std::ptrdiff_t>(first), both.begin() + static_cast<std::ptrdiff_t>(first + n)});
    const double root = std::sqrt(e.variance + 1e-5), size = std::sqrt(e.variance + e.mean * e.mean + 1e-5);
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(plain[first + i], (both[first + i] - e.mean) / root * scale[i] + bias[i], 2e-5) << n;
      EXPECT_NEAR(rms[first + i], both[first + i] / size * scale[i], 2e-5) << n;
    }
  }
}

TEST_P(NormLoopsTest, RowsOfAnySize) {
  std::vector<std::size_t> sizes = {384, 768, 1000, 1024};
  for (std::size_t n = 1; n < 150; ++n) sizes.push_back(n);
  for (const std::size_t n : sizes) {
    check_rows(GetParam()->code, n, false, false);
    check_rows(GetParam()->code, n, false, true);
    check_rows(GetParam()->code, n, true, false);
    check_rows(GetParam()->code, n, true, true);
  }
}

// The square of the mean is 10^8 times the variance: its rounding alone would swamp E[x^2] - E[x]^2.
// What is left is the rounding of the mean, some 0.0005.
TEST_P(NormLoopsTest, AMeanFarFromZero) {
  const std::vector<float> x = numbers(768, 10000, 5), ones(768, 1), zeros(768, 0);
  const Expected e = moments_of(x);
  std::vector<float> y(768);
  loops().layer_norm({768, 1, x.data(), nullptr, ones.data(), zeros.data(), 0, nullptr, y.data()});
  for (std::size_t i = 0; i < 768; ++i) EXPECT_NEAR(y[i], (x[i] - e.mean) / std::sqrt(e.variance), 2e-3);
}

TEST_P(NormLoopsTest, MomentsOfPiecesAddUp) {
  const std::vector<float> x = numbers(100000, 300, 6);
  const Expected e = moments_of(x);
  Moments all;
  for (std::size_t i = 0; i < x.size(); i += 3000)
    all.add(loops().moments(x.data() + i, std::min<std::size_t>(3000, x.size() - i)));
  EXPECT_EQ(all.count, 100000);
  EXPECT_NEAR(all.mean, e.mean, 1e-3);
  EXPECT_NEAR(all.variance(), e.variance, 1e-4);
}

/// Nothing is left of an image of one number, which 1 / sqrt(epsilon) would enlarge.
TEST_P(NormLoopsTest, TheMeanOfEqualNumbersIsThatNumber) {
  const float number = 0.18351021F;
  const std::vector<float> x(4000, number);
  Moments all;
  for (std::size_t n : {4000U, 3999U, 17U, 1U}) all.add(loops().moments(x.data(), n));
  EXPECT_EQ(static_cast<float>(all.mean), number);
  EXPECT_LT(all.variance(), 1e-20);
  const std::vector<float> mean(37, 0.183510F);  // as far off as a sum of many may be
  std::vector<float> sum(37), squares(37);
  loops().add_distances(x.data(), 100, 37, mean.data(), sum.data(), squares.data());
  const Moments of_channel = Moments::about(mean[5], 100, sum[5], squares[5]);
  EXPECT_EQ(static_cast<float>(of_channel.mean), number);
  EXPECT_LT(of_channel.variance(), 1e-20);
}

TEST_P(NormLoopsTest, ChannelsSideBySide) {
  for (const std::size_t channels : {3U, 16U, 37U}) {
    const std::vector<float> x = numbers(11 * channels, 2, 7), mean = numbers(channels, 2, 8);
    const std::vector<float> factor = numbers(channels, 1, 9), term = numbers(channels, 0, 10);
    std::vector<float> sum(channels), squares(channels), y(x.size());
    loops().add_distances(x.data(), 11, channels, mean.data(), sum.data(), squares.data());
    loops().shift_and_scale_rows(x.data(), 11, channels, mean.data(), factor.data(), term.data(), y.data());
    for (std::size_t c = 0; c < channels; ++c) {
      double want = 0, apart = 0;
      for (std::size_t r = 0; r < 11; ++r) {
        const std::size_t i = r * channels + c;
        apart += x[i] - mean[c];
        want += (x[i] - mean[c]) * (x[i] - mean[c]);
        EXPECT_NEAR(y[i], (x[i] - mean[c]) * factor[c] + term[c], 1e-5);
      }
      EXPECT_NEAR(sum[c], apart, 1e-4);
      EXPECT_NEAR(squares[c], want, 1e-4);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, NormLoopsTest, testing::Values(&kCompiled[0], &kCompiled[1], &kCompiled[2]),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(GroupNorm, BothOrdersAndAllSplitsAgree) {
  HostThreads threads(3);
  const std::int64_t channels = 24, pixels = 700;
  for (const std::int64_t groups : {1, 3, 24}) {
    const std::vector<float> values = numbers(static_cast<std::size_t>(2 * channels * pixels), 50, 11);
    std::vector<float> turned(values.size());
    for (std::int64_t n = 0; n < 2; ++n)
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t p = 0; p < pixels; ++p)
          turned[static_cast<std::size_t>((n * pixels + p) * channels + c)] =
              values[static_cast<std::size_t>((n * channels + c) * pixels + p)];
    const Tensor scale = Tensor::of<float>({channels}, numbers(24, 1, 12)),
                 bias = Tensor::of<float>({channels}, numbers(24, 0, 13));
    std::vector<Tensor> results;
    for (const bool last : {false, true}) {
      const Dims dims = last ? Dims{2, pixels, channels} : Dims{2, channels, pixels};
      const Tensor x = Tensor::of<float>(dims, last ? turned : values);
      Call call{"GroupNorm", find_fused_op("GroupNorm")->defaults, {}, {}};
      call.attrs.set("num_groups", groups).set("layout", last ? "NHWC" : "NCHW");
      for (const Tensor* tensor : {&x, &scale, &bias})
        call.inputs.push_back({"", DType::f32, Shape::of(tensor->dims()), nullptr});
      HostInvocation invocation(threads, {x, scale, bias});
      choose_kernel(call, Target::host()).kernel->create(call, Target::host())->run(invocation);
      results.push_back(invocation.result(0));
    }
    const auto first = results[0].as<float>(), last = results[1].as<float>();
    for (std::int64_t n = 0; n < 2; ++n)
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t p = 0; p < pixels; ++p)
          ASSERT_NEAR(first[static_cast<std::size_t>((n * channels + c) * pixels + p)],
                      last[static_cast<std::size_t>((n * pixels + p) * channels + c)], 1e-4);
  }
}

}  // namespace
}  // namespace modelflow::cpu
