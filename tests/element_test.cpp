// Numbers as elements of types that have few of them, and made-up data of these types.
#include "src/verify/element.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "modelflow/modelflow.h"
#include "src/verify/feeds.h"

namespace modelflow {
namespace {

constexpr DType kSmall[] = {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::f8e8m0,
                            DType::f4e2m1,   DType::u4,         DType::i4,     DType::u2,         DType::i2};

std::vector<double> stored(DType dtype, const std::vector<double>& values) {
  return Tensor::make(dtype, {static_cast<std::int64_t>(values.size())},
                      [&](std::byte* out) {
                        for (std::size_t i = 0; i < values.size(); ++i)
                          store_element(dtype, out, static_cast<std::int64_t>(i), values[i]);
                      })
      .to_doubles();
}

/// Of all codes, counted up.
std::vector<double> numbers(DType dtype) {
  const int width = bits(dtype), in_a_byte = 8 / width;
  return Tensor::make(dtype, {std::int64_t{1} << width},
                      [&](std::byte* out) {
                        for (int code = 0; code < 1 << width; ++code)
                          out[code / in_a_byte] |= static_cast<std::byte>(code << code % in_a_byte * width);
                      })
      .to_doubles();
}

TEST(Elements, EveryNumberOfASmallTypeIsStored) {
  for (const DType dtype : kSmall) {
    const std::vector<double> all = numbers(dtype), again = stored(dtype, all);
    for (std::size_t i = 0; i < all.size(); ++i)
      EXPECT_TRUE(again[i] == all[i] || (std::isnan(again[i]) && std::isnan(all[i]))) << name(dtype) << ' ' << all[i];
  }
}

TEST(Elements, OthersBecomeTheNearestInTheRange) {
  for (const DType dtype : kSmall) {
    std::vector<double> finite = numbers(dtype);
    std::erase_if(finite, [](double x) { return !std::isfinite(x); });
    const auto [low, high] = std::ranges::minmax(finite);
    EXPECT_EQ(stored(dtype, {1e60, -1e60}), (std::vector<double>{high, low})) << name(dtype);
  }
  EXPECT_EQ(stored(DType::f8e4m3fn, {1.06, 1.07}), (std::vector<double>{1, 1.125}));
  EXPECT_EQ(stored(DType::i4, {2.9, -2.9, NAN}), (std::vector<double>{2, -2, 0}));
  EXPECT_TRUE(std::isnan(stored(DType::f8e5m2, {NAN})[0]));
  EXPECT_EQ(stored(DType::f8e5m2, {-INFINITY})[0], -INFINITY);
}

TEST(Elements, WhatHoldsNoNumbersIsRefused) {
  std::byte out[8] = {};
  EXPECT_THROW(store_element(DType::string, out, 0, 1), Error);
  EXPECT_THROW(store_element(DType::undefined, out, 0, 1), Error);
}

TEST(Elements, MadeUpDataOfSmallTypesVary) {
  for (const DType dtype : kSmall) {
    Model model;
    model.graph().add_input("x", Type::tensor(dtype, Shape::of({8, 8})));
    const Tensor x = made_up(model, {{"x", {8, 8}}}, {}, Style::typical).at("x");
    const std::vector<double> values = x.to_doubles();
    EXPECT_GE(std::set<double>(values.begin(), values.end()).size(), 4U) << name(dtype);
    EXPECT_TRUE(std::ranges::all_of(values, [](double value) { return std::isfinite(value); })) << name(dtype);
  }
}

}  // namespace
}  // namespace modelflow
