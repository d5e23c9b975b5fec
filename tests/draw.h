// Random numbers, the same ones for the same seed.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

namespace modelflow {

/// Numbers of a distribution, the same ones for the same seed.
template <class Distribution>
std::vector<float> draw(std::size_t count, Distribution distribution, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(random);
  return values;
}

}  // namespace modelflow
