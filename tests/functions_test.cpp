// The functions that activations are made of, on every instruction set, against double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/loops/vector_code.h"

namespace modelflow {
namespace {

using cpu::VectorCode;
using modelflow::Activation;

std::vector<const VectorCode*> compiled() {
  std::vector<const VectorCode*> all = {&cpu::vector_code_any};
  if (host_isas().has(Isa::avx2)) all.push_back(&cpu::vector_code_avx2);
  if (host_isas().has(Isa::avx512)) all.push_back(&cpu::vector_code_avx512);
  return all;
}

std::vector<float> run(const VectorCode& code, Activation kind, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  code.pointwise.activate({.kind = kind}, x.data(), y.data(), x.size());
  return y;
}

/// The largest error of numbers from -`most` to `most`, relative to what is right.
double error(const VectorCode& code, Activation kind, double most, double (*right)(double)) {
  std::vector<float> x;
  for (int i = -200'000; i <= 200'000; ++i) x.push_back(static_cast<float>(i * most / 200'000));
  const std::vector<float> y = run(code, kind, x);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = right(static_cast<double>(x[i]));
    if (want != 0) worst = std::max(worst, std::abs(static_cast<double>(y[i]) / want - 1));
  }
  return worst;
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double tangent(double x) { return std::tanh(x); }

TEST(Functions, AreCloseOnEveryInstructionSet) {
  for (const VectorCode* code : compiled()) {
    EXPECT_LT(error(*code, Activation::sigmoid, 10, logistic), 5e-7);
    EXPECT_LT(error(*code, Activation::sigmoid, 86, logistic), 2.5e-6);
    EXPECT_LT(error(*code, Activation::tanh, 1, tangent), 4e-7);
    EXPECT_LT(error(*code, Activation::tanh, 20, tangent), 5e-7);
    EXPECT_LT(error(*code, Activation::tanh, 1e-3, tangent), 2e-7);
  }
}

TEST(Functions, HaveTheirLimits) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {-infinity, -1e30f, -100, 0, 100, infinity, nan};
  for (const VectorCode* code : compiled()) {
    const std::vector<float> gate = run(*code, Activation::sigmoid, x), tanh = run(*code, Activation::tanh, x);
    const std::vector<float> gates = {0, 0, 0, 0.5f, 1, 1}, limits = {-1, -1, -1, 0, 1, 1};
    EXPECT_TRUE(std::equal(gates.begin(), gates.end(), gate.begin()));
    EXPECT_TRUE(std::equal(limits.begin(), limits.end(), tanh.begin()));
    EXPECT_TRUE(std::isnan(gate.back()) && std::isnan(tanh.back()));
    for (const float y : run(*code, Activation::tanh, std::vector<float>(64, 7.7f))) EXPECT_LE(y, 1);
  }
}

}  // namespace
}  // namespace modelflow
