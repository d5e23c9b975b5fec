// Sums of the channels of an image over parts of its rows: the first step of means.
#pragma once

#include "backends/cuda/device/grid.h"
#include "backends/cuda/launches/pixels.h"

namespace modelflow::cuda {

/// sums: [batch, parts, channels]; one part where channels are second.
const char* sum_channels(const Image& image, float* sums, void* stream);

/// The mean of channel `c` of image `n` from those sums.
__device__ inline float mean_of(const Image& image, const float* sums, std::int64_t n, std::int64_t c) {
  float sum = 0;
  for (std::int64_t part = 0; part < image.parts; ++part) sum += sums[(n * image.parts + part) * image.channels + c];
  return sum / static_cast<float>(image.rows);
}

}  // namespace modelflow::cuda
