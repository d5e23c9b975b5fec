// Results of a transposed convolution, sorted by the inputs that they are made of, beside what its definition says.
#include "backends/ops/transposed_phases.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "backends/floats.h"

namespace modelflow::ops {
namespace {

/// By result: which tap each input is multiplied by.
using Meetings = std::vector<std::map<std::int64_t, std::int64_t>>;

Meetings by_definition(const WindowAxis& axis, std::int64_t inputs) {
  const std::int64_t extent = axis.extent(static_cast<std::size_t>(inputs));
  Meetings results(static_cast<std::size_t>(extent));
  for (std::int64_t i = 0; i < inputs; ++i)
    for (std::int64_t tap = 0; tap < static_cast<std::int64_t>(axis.kernel); ++tap) {
      const std::int64_t at = i * static_cast<std::int64_t>(axis.stride) - static_cast<std::int64_t>(axis.pad) + tap;
      if (at >= 0 && at < extent) results[static_cast<std::size_t>(at)][i] = tap;
    }
  return results;
}

/// As kernels compute it: group by group, the phases of which are neighbours.
Meetings by_groups(const WindowAxis& axis, std::int64_t inputs) {
  const auto extent = static_cast<std::size_t>(axis.extent(static_cast<std::size_t>(inputs)));
  Meetings results(extent);
  std::size_t made = 0;
  for (const auto& [phase, size] : phase_groups(axis))
    for (std::size_t v = 0; v < places(extent, phase.r, axis.stride); ++v)
      for (std::size_t n = 0; n < size; ++n, ++made)
        for (std::size_t i = 0; i < phase.taps; ++i) {
          const std::int64_t input = static_cast<std::int64_t>(v + i) + phase.shift;
          if (input < 0 || input >= inputs) continue;
          results.at(axis.stride * v + phase.r + n)[input] = static_cast<std::int64_t>(phase.tap(i) + n);
        }
  EXPECT_EQ(made, extent);
  return results;
}

TEST(TransposedPhases, GroupsHaveEveryResultOnceAndAreFewEnoughForKernels) {
  for (std::size_t kernel = 1; kernel <= 9; ++kernel)
    for (std::size_t stride = 1; stride <= 7; ++stride)
      for (std::size_t pad = 0; pad <= 8; ++pad)
        for (std::int64_t behind = -2; behind <= 8; ++behind) {
          const auto sum = static_cast<std::int64_t>(kernel) - static_cast<std::int64_t>(stride + pad);
          const WindowAxis axis{kernel, stride, pad, sum - behind};
          EXPECT_LE(phase_groups(axis).size(), 4U) << kernel << " " << stride << " " << pad << " " << behind;
          for (const std::int64_t inputs : {0, 1, 2, 5}) {
            if (axis.extent(static_cast<std::size_t>(inputs)) < 0) continue;
            EXPECT_EQ(by_groups(axis, inputs), by_definition(axis, inputs))
                << kernel << " " << stride << " " << pad << " " << behind << ", inputs " << inputs;
          }
        }
}

/// Windows of 2 x 2, one weight of which is not finite, in three types.
TEST(TransposedPhases, WeightsThatOverlapAreFinite) {
  const TransposedWindows apart{{2, 2}, {2, 2}, {0, 0, 0, 0}, {0, 0}}, overlap{{2, 2}, {1, 1}, {0, 0, 0, 0}, {0, 0}};
  for (const float number : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 1.0F})
    for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
      const std::vector<float> weights = {1, 2, 3, number};
      const Tensor w = in_type(Tensor::of<float>({1, 1, 2, 2}, weights), type);
      const Operand operand{"w", type, Shape::of(w.dims()), &w};
      EXPECT_TRUE(accepts_phases(apart, operand));
      EXPECT_EQ(static_cast<bool>(accepts_phases(overlap, operand)), number == 1);
      EXPECT_FALSE(accepts_phases({{2, 2}, {1 << 16, 2}, {0, 0, 0, 0}, {0, 0}}, operand));
    }
}

}  // namespace
}  // namespace modelflow::ops
