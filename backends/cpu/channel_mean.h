#pragma once

#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// [batch, rows, channels] or, with channels second, [batch, channels, rows].
struct ChannelTensor {
  std::size_t batch = 0, rows = 0, channels = 0;
  bool last = true;
  std::size_t size() const { return batch * rows * channels; }
};
/// Reads the dims of rank 3 or more.
ChannelTensor channel_tensor(std::span<const std::int64_t> dims, bool last);

/// mean[n, c] over all rows, on the runtime's threads.
void channel_mean(const float* x, const ChannelTensor& t, float* mean, Invocation& call);

/// How many tasks a pass over `floats` is worth.
std::size_t tasks_for(std::size_t floats, const Invocation& call);

}  // namespace modelflow::cpu
