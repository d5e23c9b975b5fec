// How many windows fit an axis.
#pragma once

#include <cstdint>

namespace modelflow::ops {

/// How many windows of a pooling fit, `room` being the padded extent without one window. ONNX Runtime rounds to 0:
/// where the window is the longer one by less than a stride there is one all the same, cut to the image.
inline std::int64_t windows_in(std::int64_t room, std::int64_t stride) {
  return room <= -stride ? 0 : room / stride + 1;
}

}  // namespace modelflow::ops
