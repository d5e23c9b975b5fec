// What goes from the host to kernels over rows: softmax, reductions, rotary position, embeddings, sums of rows that
// indices name.
#pragma once

#include "backends/cuda/launches/elements.h"

namespace modelflow::cuda {

/// Softmax of x * scale with a mask along n of [outer, n, inner]. Masks are for inner = 1: numbers of x's type that are
/// added, or flags for one of two numbers, which is added or, where it replaces, stands in place of the score.
struct SoftmaxLaunch {
  Number number;
  std::int64_t outer, n, inner;
  const void *x, *mask_numbers;
  const std::uint8_t* mask_flags;  ///< one of the two masks or none
  void* y;
  Places places;           ///< of x and the mask
  std::int32_t mask_step;  ///< along a row: 0 where one element serves the whole
  float scale, on, off;
  bool log, on_replaces, off_replaces;
};

/// How the numbers of a reduction join.
enum class Join : std::uint32_t { sum, max, min };

/// `before` on [outer, n, inner], the reduction over n, `behind` on what is left or, `full`, on all. To lines behind
/// it the result of the reduction is input `inputs`.
struct ReduceLaunch {
  Number number;
  Join join;
  bool squares, mean, root;  ///< of squares; divided by n; its square root
  bool full;
  std::int32_t inputs;
  std::int64_t outer, n, inner;
  const void* x[Places::kOperands];
  void* y;
  Places before_places, behind_places;
  Program before, behind;
};

/// Pairs of elements of each row turned by the angles of that row; elements behind `2 * pairs` are copied.
struct RotaryLaunch {
  Number number;
  std::int64_t extents[3];  ///< of the rows as they lie in memory, outermost first
  std::int64_t size;        ///< of a row
  std::int64_t pairs;
  std::int64_t cos_steps[3], sin_steps[3];  ///< from one row to the next along these axes
  bool interleaved;                         ///< a pair are neighbours, else i and i + pairs
  bool half_width;                          ///< one angle for each pair, else one for each element
  const void *x, *cos, *sin;
  void* y;
};

/// Sum of the rows that ids name in up to three tables, and its layer normalization. Where an id names no row, zeros
/// stand for it.
struct EmbeddingLaunch {
  static constexpr int kTables = 3;
  Number number;
  std::int32_t tables;
  std::int64_t rows, n;
  struct Table {
    const void *ids, *rows;  ///< no ids: rows in order
    std::int64_t count;
    bool narrow;  ///< ids are int32, else int64
  } table[kTables];
  const void *scale, *bias;  ///< null: no normalization
  void *y, *sum;             ///< sum may be null
  Places places;             ///< of the ids
  float epsilon;
};

/// Rows of tables side by side, each of which ids in a column of their own name; zeros for an id that names none. Sizes
/// are in bytes, as it moves any type.
struct ColumnEmbeddingLaunch {
  static constexpr int kTables = 64;
  struct Table {
    const void* rows;
    std::int64_t count, width;
    std::int64_t column;  ///< of the ids
  };
  std::int32_t tables;
  bool narrow;              ///< ids are int32, else int64
  std::int64_t rows, step;  ///< of the ids: rows, and from one to the next
  std::int64_t width, row;  ///< of all tables here, and from one row of y to the next
  Table table[kTables];
  const void* ids;
  void* y;
};

/// y = data, and to its rows that indices name those of the updates added. An index that names none adds nothing.
struct ScatterAddLaunch {
  Number number;
  std::int64_t rows, width, updates;
  const void *data, *indices, *update;
  bool narrow;  ///< indices are int32, else int64
  bool single;  ///< one for all updates
  float* sums;  ///< [rows, width], y itself where that is float32; null: each row looks for its updates
  void* y;
};

}  // namespace modelflow::cuda
