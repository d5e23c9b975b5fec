#pragma once

#include "modelflow/graph.h"

namespace modelflow {

/// Whether a value is kept in what low precision keeps numbers in: 8 bits, bfloat16.
inline bool is_narrow(const Value& value) {
  const DType dtype = value.dtype();
  return dtype == DType::u8 || dtype == DType::i8 || dtype == DType::bf16;
}

}  // namespace modelflow
