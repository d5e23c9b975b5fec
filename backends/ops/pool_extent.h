// How many windows fit an axis.
#pragma once

#include <cstdint>

namespace modelflow::ops {

/// A spatial axis of a pooling: its extent, the padding on either side, the window and its stride.
struct PoolAxis {
  std::int64_t in, begin, end, kernel, stride;
  bool ceil;  ///< a last window may hang over the border behind
};

/// How many windows of a pooling fit. ONNX Runtime rounds to 0: where the window is the longer one by less than a
/// stride there is one all the same, cut to the image. A window that ceil_mode adds must not begin in the padding
/// behind.
inline std::int64_t windows_in(const PoolAxis& axis) {
  const std::int64_t room = axis.in + axis.begin + axis.end - axis.kernel;
  if (room <= -axis.stride) return 0;
  const std::int64_t floor = room / axis.stride + 1;
  const bool hangs = axis.ceil && room > 0 && room % axis.stride != 0;
  return hangs && floor * axis.stride < axis.in + axis.begin ? floor + 1 : floor;
}

}  // namespace modelflow::ops
