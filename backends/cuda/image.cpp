// Reads the extents of image tensors.
#include "backends/cuda/image.h"

#include <algorithm>
#include <string>

namespace modelflow::cuda {

Image image_of(const char* op, const View& x, bool last) {
  const std::optional<Number> number = number_or_bytes_of(x.dtype);
  if (!number || x.dims.size() < 3)
    throw Error(ErrorKind::invalid_input, std::string(op) + ": x is not of numbers and rank 3 or more");
  Image image = {};
  image.number = *number;
  image.batch = x.dims[0];
  image.channels = last ? x.dims.back() : x.dims[1];
  image.rows = element_count(x.dims.subspan(last ? 1 : 2, x.dims.size() - 2));
  image.last = last;
  image.parts = 1;
  image.x = x.data;
  return image;
}

std::int64_t parts_of(std::int64_t units, std::int64_t length) {
  constexpr std::int64_t kBlocks = 512, kLeast = 512;  // of any device; elements that are worth a block
  const std::int64_t wanted = kBlocks / std::max<std::int64_t>(units, 1);
  return std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(length / kLeast, 1));
}

}  // namespace modelflow::cuda
