// Where the channels of a tensor lie, from its extents.
#include "backends/cpu/frame/channel_tensor.h"

namespace modelflow::cpu {

ChannelTensor channel_tensor(std::span<const std::int64_t> dims, bool last) {
  ChannelTensor t{.batch = static_cast<std::size_t>(dims[0]), .rows = 1, .last = last};
  t.channels = static_cast<std::size_t>(last ? dims.back() : dims[1]);
  for (std::size_t i = last ? 1 : 2; i + (last ? 1 : 0) < dims.size(); ++i) t.rows *= static_cast<std::size_t>(dims[i]);
  return t;
}

}  // namespace modelflow::cpu
