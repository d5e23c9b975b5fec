// ONNX text of the Transpose between the two places of channels.
#include "backends/ops/layout_text.h"

namespace modelflow::ops {

std::string transpose_text(std::string_view y, std::string_view x, std::size_t rank, bool to_last) {
  std::string perm = "0";
  if (!to_last) perm += ", " + std::to_string(rank - 1);
  for (std::size_t axis = to_last ? 2 : 1; axis + (to_last ? 0 : 1) < rank; ++axis) perm += ", " + std::to_string(axis);
  if (to_last) perm += ", 1";
  return std::string(y) + " = Transpose <perm = [" + perm + "]> (" + std::string(x) + ")\n";
}

}  // namespace modelflow::ops
