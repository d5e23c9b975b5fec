// Which channel of a tensor an element belongs to.
#pragma once

#include <cstddef>
#include <cstdint>

#include "modelflow/tensor.h"

namespace modelflow::passes {

/// By the element's place among all; channels lie along `axis` of tensors of these extents.
class Channels {
 public:
  Channels(const Dims& dims, std::size_t axis) : extent_(dims.empty() ? 1 : dims[axis]) {
    for (std::size_t i = axis + 1; i < dims.size(); ++i) inner_ *= dims[i];
  }
  std::size_t operator()(std::size_t element) const {
    return static_cast<std::size_t>(static_cast<std::int64_t>(element) / inner_ % extent_);
  }

 private:
  std::int64_t extent_, inner_ = 1;
};

}  // namespace modelflow::passes
