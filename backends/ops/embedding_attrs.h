// The attributes of Embedding.
#pragma once

#include "backends/call_attrs.h"
#include "modelflow/kernel.h"

namespace modelflow::ops {

/// The attributes of modelflow.Embedding, read once and checked. Throws Error(invalid_input). Its inputs are ids and
/// table of every table, then scale and bias. The last table may do without ids.
struct EmbeddingAttrs {
  explicit EmbeddingAttrs(const CallAttrs& attrs);

  std::size_t tables = 1;
  bool in_order = false;  ///< rows of the last table are taken in order along the last axis of the first ids
  bool norm = false;      ///< the sum is normalized
  bool keep_sum = false;  ///< and an output too
  float epsilon = 0;

  static constexpr std::size_t kTables = 3;
  std::size_t with_ids() const { return tables - (in_order ? 1 : 0); }  ///< the first ones
  bool is_ids(std::size_t input) const { return input < 2 * with_ids() && input % 2 == 0; }
  /// Where the inputs have table `i`.
  std::size_t table(std::size_t i) const { return i < with_ids() ? 2 * i + 1 : 2 * with_ids(); }
  std::size_t scale() const { return table(tables - 1) + 1; }
  std::size_t inputs() const { return scale() + (norm ? 2 : 0); }
};

}  // namespace modelflow::ops
