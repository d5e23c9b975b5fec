// The heads of queries, keys or values as they lie in some value.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "modelflow/graph.h"
#include "passes/graph/strided_view.h"

namespace modelflow::passes {

/// One way to read an operand of an attention: the heads of queries, keys or values as they lie in `value`.
struct Heads {
  enum class Form {
    bsh,   ///< [batch, sequence, heads * size]
    sbh,   ///< [sequence, batch, heads * size]
    bhs,   ///< [batch, heads * size, sequence]
    bsnd,  ///< [batch, sequence, heads, size]
    bnsh,  ///< [batch, heads, sequence, size]
    bnhs   ///< [batch, heads, size, sequence]
  };
  static constexpr std::int64_t kWidest = 1 << 20;  ///< columns, which are listed one by one
  Value* value = nullptr;
  /// Of `value`, or with its first two axes, images and their windows (MaxViT, NesT), as one batch, or with its last
  /// two, rows and columns of pixels, as one sequence.
  Shape shape;
  Form form;
  std::int64_t heads = 1;  ///< in `value`
  std::int64_t group = 1;  ///< how often each of them is repeated on the way
  /// Batch and heads lie together in the first axis of the product's operand, which the product repeats where it is 1.
  bool together = false;
  Dim size;
  float factor = 1;                  ///< multiplied on the way
  Ints columns;                      ///< bsh, sbh and bhs: where in its axis each number of each head stands
  std::vector<const Value*> passed;  ///< from the operand back, `value` not included

  explicit Heads(Form form) : form(form) {}
  /// The heads make up all of their axis in order.
  bool whole() const;
  Dim batch() const { return shape[form == Form::sbh ? 1 : 0]; }
  /// It is `value` with axes joined.
  bool joined() const { return shape.rank() < value->shape().rank(); }
  /// These axes are rows and columns of pixels.
  bool pixels() const;
  /// Nobody but these nodes reads what lies between `value` and the product.
  bool read_only_by(const std::set<const Node*>& nodes) const;
};

/// All ways to read `operand`, an input of a product of attention; what lies furthest back comes first. `transposed`:
/// its last two axes are swapped. Rank 5 is [images, windows, heads, sequence, size].
std::vector<Heads> read_heads(Value& operand, bool transposed);

}  // namespace modelflow::passes
