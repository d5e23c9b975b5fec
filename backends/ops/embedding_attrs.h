// The attributes of Embedding.
#pragma once

#include "backends/call_attrs.h"
#include "modelflow/kernel.h"

namespace modelflow::ops {

/// The attributes of modelflow.Embedding, read once and checked. Throws Error(invalid_input). Its inputs are ids and
/// table of every table, then scale and bias.
struct EmbeddingAttrs {
  explicit EmbeddingAttrs(const CallAttrs& attrs);

  std::size_t tables = 1;
  bool norm = false;      ///< the sum is normalized
  bool keep_sum = false;  ///< and an output too
  float epsilon = 0;

  static constexpr std::size_t kTables = 3;
  std::size_t inputs() const { return 2 * tables + (norm ? 2 : 0); }
};

}  // namespace modelflow::ops
