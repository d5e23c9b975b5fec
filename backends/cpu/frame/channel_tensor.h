// Image tensors as batch, rows (pixels) and channels, with the channels last or second, and loops over parts of them.
#pragma once

#include <algorithm>

#include "backends/cpu/frame/share.h"

namespace modelflow::cpu {

/// [batch, rows, channels] or, with channels second, [batch, channels, rows].
struct ChannelTensor {
  std::size_t batch = 0, rows = 0, channels = 0;
  bool last = true;
  std::size_t size() const { return batch * rows * channels; }
};
/// Reads the dims of rank 3 or more.
ChannelTensor channel_tensor(std::span<const std::int64_t> dims, bool last);

/// Some `units` of one image: rows of channels, or planes of rows. `at`: where they begin in the tensor, `channel`:
/// that of the first in [batch, channels].
struct ChannelPart {
  std::size_t at, units, width, channel;
};

/// Runs body(part) on parts that make up the tensor, on the runtime's threads.
template <class Body>
void for_channels(const ChannelTensor& t, Invocation& call, const Body& body) {
  const std::size_t units = t.last ? t.rows : t.channels, width = t.last ? t.channels : t.rows;
  const std::size_t parts = std::min(tasks_for(t.rows * t.channels, call), units);
  const auto task = [&](std::size_t i) {
    const std::size_t n = i / parts, first = units * (i % parts) / parts, end = units * (i % parts + 1) / parts;
    body(ChannelPart{(n * units + first) * width, end - first, width, n * t.channels + (t.last ? 0 : first)});
  };
  if (t.batch * parts == 1) return task(0);
  call.parallel(t.batch * parts, task);
}

}  // namespace modelflow::cpu
