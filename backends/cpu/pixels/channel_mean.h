// The mean of each channel of an image.
#pragma once

#include "backends/cpu/frame/channel_tensor.h"

namespace modelflow::cpu {

struct VectorCode;

/// mean[n, c] over all rows, on the runtime's threads.
void channel_mean(const VectorCode& code, const float* x, const ChannelTensor& t, float* mean, Invocation& call);
/// Of 8-bit numbers, summed exactly.
void channel_mean(const VectorCode& code, const std::uint8_t* x, const ChannelTensor& t, float* mean, Invocation& call);

}  // namespace modelflow::cpu
