// Extents of images whose pixels are repeated.
#pragma once

#include <cstdint>
#include <string>

#include "modelflow/error.h"

namespace modelflow::ops {

/// `extent` pixels, each `factor` times. Throws Error(invalid_input) where no tensor has room for them.
inline std::int64_t repeated(const char* op, std::int64_t extent, std::int64_t factor) {
  std::int64_t grown = 0;
  if (factor < 1 || __builtin_mul_overflow(extent, factor, &grown))
    throw Error(ErrorKind::invalid_input, std::string(op) + ": factors that no tensor has room for");
  return grown;
}

}  // namespace modelflow::ops
