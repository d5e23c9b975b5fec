// ONNX text of the Transpose between the two places of channels.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace modelflow::ops {

/// ONNX text of the Transpose of a tensor of this rank to channels last (or back to channels second), with a newline.
std::string transpose_text(std::string_view y, std::string_view x, std::size_t rank, bool to_last);

}  // namespace modelflow::ops
