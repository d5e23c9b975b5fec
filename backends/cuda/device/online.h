// A softmax whose scores come in parts: the largest so far, the sum of weights relative to it, and how both become the
// result.
#pragma once

#include "backends/cuda/device/rows.h"

namespace modelflow::cuda {

struct Online {
  float largest = -INFINITY, sum = 0;

  /// Takes in a part with this largest score; what was summed before is to be multiplied by the result. Where nothing
  /// is above -infinity yet, weights are relative to 0.
  __device__ float grow(float part) {
    const float before = largest;
    largest = Max()(largest, part);
    const float factor = expf(before - base());
    sum *= factor;
    return factor;
  }
  __device__ float base() const { return largest == -INFINITY ? 0 : largest; }
  __device__ float weight(float score) const { return expf(score - base()); }

  /// What a weighted sum is multiplied by in the end. Rows that see nothing are NaN, or 0 where `guarded`: as are those
  /// with a score that is NaN or infinite.
  __device__ bool nothing() const { return largest == -INFINITY || !(sum == sum); }
};

}  // namespace modelflow::cuda
