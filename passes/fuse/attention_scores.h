// What stands around the Softmax of an attention.
#pragma once

#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "modelflow/pass.h"

namespace modelflow::passes {

/// What happens to the scores of an attention on their way from the product of queries and keys to the softmax.
struct ScoreStep {
  enum class Kind {
    scale,  ///< times `number`
    tanh,   ///< capped (Gemma 2)
    add,    ///< plus `value`
    keep,   ///< where not `value`: `number`
    drop,   ///< where `value`: `number`
    grid    ///< plus `value` by the row of a key in a grid, and `columns` by its column
  };
  Kind kind;
  float number = 0;
  Value* value = nullptr;
  Shape scores;  ///< at this point
  Value* columns = nullptr;
};

/// The heart of an attention as found in a graph: product, steps, softmax, product.
struct Core {
  Node* scores = nullptr;        ///< Q K^T
  std::vector<ScoreStep> steps;  ///< in running order
  Node* softmax = nullptr;
  bool nan_guard = false;       ///< weights that are no numbers become 0
  Node* context = nullptr;      ///< weights V
  Value* values = nullptr;      ///< V
  bool turned = false;          ///< both are written the other way round: V^T weights^T
  std::set<const Node*> nodes;  ///< all of the above
};

/// Reads what stands around a Softmax; a no with the reason when it is no attention. `why.reason` is empty when
/// nothing looks like one.
Verdict read_core(Node& softmax, Core& core);

/// How the steps enter modelflow.Attention.
struct Masking {
  /// Keys behind their query: a number in place of their scores, or added to them, in front of the other masks or
  /// behind them.
  struct Causal {
    bool on = false;
    float number = -std::numeric_limits<float>::infinity();
    bool adds = false, first = false;
  };
  enum class Replaces { none, by_true, by_false };

  float scale = 1;
  float softcap = 0;  ///< the scores end between this and its negative, as softcap of Attention; 0: they do not
  Causal causal = {};
  Value *grid_rows = nullptr, *grid_columns = nullptr;  ///< [batch, heads, queries, rows or columns of the grid]
  Value *numbers = nullptr, *flags = nullptr;           ///< of rank 2 to 4: added; choosing between two numbers
  float flag_true = 0, flag_false = 0;                  ///< which are added
  Replaces replaces = Replaces::none;                   ///< or one of them stands in place of the score, the other is 0
  bool numbers_last = false;                            ///< behind what the flags do
  bool windows = false;  ///< the mask has the batches of one image and is repeated for all (Swin)
};

/// A sum over the rows and columns of a grid: `rows` is [..., high, 1], `columns` [..., 1, wide].
struct GridSum {
  Value *rows = nullptr, *columns = nullptr;
  std::int64_t high = 0, wide = 0;
};
/// Which of the two is which; nothing where they are anything else.
std::optional<GridSum> grid_sum(Value& a, Value& b);

/// Turns the steps into a scale, a triangle, flags and numbers, whose nodes it makes in front of `before`. A no when
/// they mean anything else.
Verdict make_mask(const Core& core, std::int64_t heads, Node& before, Context& context, Masking& masking);

/// True where the last two axes hold `key <= query` and nothing else: constants, Trilu of ones, comparisons of ranges.
bool is_causal(const Value& allowed);
/// The opposite: `key > query`.
bool is_later(const Value& hidden);
/// The same as numbers to add, 0 for those and a low number for all others: that number.
std::optional<float> causal_bias(const Value& bias);

/// The Range that `value` is a view of; null when it is no such thing.
const Node* range_behind(const Value& value);
/// True for a boolean constant without a false.
bool holds_everywhere(const Tensor& condition);

/// The same mask, or condition of one, without an Expand and without conditions that always hold, as long as what these
/// make it as wide as is known to be as wide as `scores`; null: it is known that all of it is.
Value& lean(Value& mask, const Shape* scores);

/// A score that low has no weight beside any other.
inline constexpr float kLow = -1e4f;

}  // namespace modelflow::passes
