// That memory which nobody wrote holds NaN where kernels are tested for reading it (tests/poisoned/malloc.cpp).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <memory>

namespace modelflow {
namespace {

TEST(Poisoned, IsWhatNobodyWrote) {
  if (!std::getenv("LD_PRELOAD")) GTEST_SKIP() << "kernels_on_avx2 loads tests/poisoned";
  constexpr std::size_t kFloats = 1024;
  const std::unique_ptr<void, decltype(&std::free)> memory{std::aligned_alloc(64, kFloats * sizeof(float)), std::free};
  const volatile float* numbers = static_cast<const volatile float*>(memory.get());
  for (std::size_t i = 0; i < kFloats; ++i) ASSERT_TRUE(std::isnan(numbers[i])) << i;
}

}  // namespace
}  // namespace modelflow
