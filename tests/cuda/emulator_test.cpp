// The emulator: its numbers are those of the types, and what is wrong with a kernel shows.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "backends/cuda/device/device.h"
#include "backends/cuda/device/rows.h"
#include "backends/cuda/device/tensor_core.h"
#include "backends/cuda/launches/shared_memory.h"

namespace modelflow::cuda {
namespace {

TEST(Emulator, HalvesAreTheNearestToFloats) {
  const auto value = [](unsigned bits) {
    Half h;
    h.bits = static_cast<std::uint16_t>(bits);
    return static_cast<float>(h);
  };
  for (unsigned bits = 0; bits < 0x7c00; ++bits) {
    const float x = value(bits), next = value(bits + 1);
    ASSERT_EQ(Half(x).bits, bits);
    ASSERT_EQ(Half(-x).bits, bits | 0x8000U);
    if (bits + 1 == 0x7c00) break;
    const float middle = (x + next) / 2;  // exact
    ASSERT_EQ(Half(middle).bits, bits + (bits & 1U)) << "ties to even";
    ASSERT_EQ(Half(std::nextafter(middle, next)).bits, bits + 1);
    ASSERT_EQ(Half(std::nextafter(middle, x)).bits, bits);
  }
  EXPECT_EQ(value(0x3c00), 1.0F);
  EXPECT_EQ(value(1), 0x1p-24F);
  EXPECT_EQ(Half(65519.0F).bits, 0x7bffU);
  EXPECT_EQ(Half(65520.0F).bits, 0x7c00U);
  EXPECT_TRUE(std::isinf(value(0x7c00)));
  EXPECT_TRUE(std::isnan(static_cast<float>(Half(std::numeric_limits<float>::quiet_NaN()))));
}

__global__ void reversed(const float* x, float* y) {
  __shared__ float shared[64];
  shared[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = shared[63 - threadIdx.x];
}

__global__ void some_wait(float* y) {
  if (threadIdx.x < 32) __syncthreads();
  y[threadIdx.x] = __shfl_xor_sync(~0U, 1.0F, 1);
  if (threadIdx.x < 40) return;
  y[threadIdx.x] = __shfl_xor_sync(~0U, 2.0F, 1);
}

__global__ void sums(const float* x, float* y) {
  __shared__ float partial[32];
  const float total = block_reduce(x[threadIdx.x], Sum(), partial);
  const float largest = block_reduce(x[threadIdx.x], Max(), partial);
  y[threadIdx.x] = total + 1000 * largest;
}

TEST(Emulator, ThreadsOfABlockMeet) {
  std::vector<float> x(96), y(96);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  ASSERT_EQ(launch(reversed, {1, 64}, x.data(), y.data()), nullptr);
  EXPECT_EQ(y[0], 63.0F);
  EXPECT_EQ(y[63], 0.0F);
  ASSERT_EQ(launch(sums, {1, 96}, x.data(), y.data()), nullptr);
  for (const float v : y) EXPECT_EQ(v, 95.0F * 96 / 2 + 95000);
}

TEST(Emulator, ThreadsThatNeverMeetAreAnError) {
  std::vector<float> y(64);
  const char* why = launch(some_wait, {1, 64}, y.data());
  ASSERT_NE(why, nullptr);
  EXPECT_NE(std::string(why).find("threads wait for one another"), std::string::npos) << why;
  EXPECT_NE(launch(reversed, {1, 2000}, y.data(), y.data()), nullptr);
  EXPECT_EQ(launch(reversed, {1, 64}, y.data(), y.data()), nullptr) << "the next one runs";
}

__global__ void nothing() {}

__global__ void copied(const float* from, float* to) {
  MF_DYNAMIC_SHARED(float, shared);
  copy_async_16(shared + 4 * threadIdx.x, from + 4 * threadIdx.x, 16);
  copy_async_commit();
  copy_async_wait<0>();
  __syncthreads();
  std::uint32_t r[4];
  ldmatrix_x4<false>(r, shared + threadIdx.x * 4);
  to[threadIdx.x] = shared[127 - threadIdx.x];
}

TEST(Emulator, WhatMovesSixteenBytesIsAligned) {
  alignas(16) float from[132] = {};
  float to[32] = {};
  from[127] = 1;
  EXPECT_EQ(launch(copied, {1, 32, sizeof from}, &from[0], &to[0]), nullptr);
  EXPECT_EQ(to[0], 1);
  const char* why = launch(copied, {1, 32, sizeof from}, &from[1], &to[0]);
  ASSERT_NE(why, nullptr);
  EXPECT_NE(std::string(why).find("multiple of 16"), std::string::npos) << why;
}

/// What a kernel declares counts beside what its launch names, and everybody asks for more than 48 KiB of both.
TEST(Emulator, SharedMemoryHasAnEnd) {
  constexpr unsigned kAll = 227 << 10, kDeclared = kStaticShared;
  EXPECT_EQ(launch(nothing, {1, 32, kAll - kDeclared}), nullptr);
  EXPECT_NE(launch(nothing, {1, 32, kAll}), nullptr);
  EXPECT_NE(launch(nothing, {1, 32, kAll - 128}), nullptr);
  EXPECT_TRUE(has_to_ask(kGrantedShared - 64) && has_to_ask(kGrantedShared));
  EXPECT_FALSE(has_to_ask(kGrantedShared - kStaticShared));
}

}  // namespace
}  // namespace modelflow::cuda
