// The transposition of a constant.
#include "passes/graph/transposed.h"

#include <cstring>

namespace modelflow::passes {

Tensor transposed(const Tensor& source, const Ints& perm) {
  using Sizes = std::vector<std::size_t>;
  const std::size_t rank = perm.size(), width = static_cast<std::size_t>(bits(source.dtype())) / 8;
  Sizes strides(rank, width);
  for (std::size_t i = rank - 1; i > 0; --i) strides[i - 1] = strides[i] * static_cast<std::size_t>(source.dims()[i]);
  Dims dims(rank);
  Sizes step(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    dims[i] = source.dims()[static_cast<std::size_t>(perm[i])];
    step[i] = strides[static_cast<std::size_t>(perm[i])];
  }
  const std::size_t row = static_cast<std::size_t>(dims.back());
  return Tensor::make(source.dtype(), dims, [&](std::byte* out) {
    Sizes at(rank, 0);
    std::size_t offset = 0;
    for (std::size_t left = static_cast<std::size_t>(source.elements()); left > 0; left -= row) {
      for (std::size_t i = 0; i < row; ++i, out += width)
        std::memcpy(out, source.data() + offset + i * step.back(), width);
      for (std::size_t axis = rank - 1; axis-- > 0;) {  // odometer over the outer axes
        offset += step[axis];
        if (++at[axis] < static_cast<std::size_t>(dims[axis])) break;
        offset -= step[axis] * at[axis];
        at[axis] = 0;
      }
    }
  });
}

}  // namespace modelflow::passes
