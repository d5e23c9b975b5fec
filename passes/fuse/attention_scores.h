#pragma once

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
    drop    ///< where `value`: `number`
  };
  Kind kind;
  float number = 0;
  Value* value = nullptr;
  Shape scores;  ///< at this point
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
  float scale = 1;
  float softcap = 0;  ///< the scores end between this and its negative, as softcap of Attention; 0: they do not
  bool causal = false;
  Value* mask = nullptr;                ///< of rank 2 to 4: float32, added, or boolean
  float mask_true = 0, mask_false = 0;  ///< what a boolean mask adds
  bool windows = false;                 ///< it has the batches of one image and is repeated for all (Swin)
};

/// Turns the steps into a scale, a flag and one additive mask, whose nodes it makes in front of `before`. A no when
/// they mean anything else.
Verdict make_mask(const Core& core, std::int64_t heads, Node& before, Context& context, Masking& masking);

/// True where the last two axes hold `key <= query` and nothing else: constants, Trilu of ones, comparisons of ranges.
bool is_causal(const Value& allowed);
/// The same as numbers to add: 0 for those, a low number for all others.
bool is_causal_bias(const Value& bias);

/// The Range that `value` is a view of; null when it is no such thing.
const Node* range_behind(const Value& value);
/// True for a boolean constant without a false.
bool holds_everywhere(const Tensor& condition);

/// The same mask, or condition of one, without an Expand and without conditions that always hold.
Value& lean(Value& mask);

/// A score that low has no weight beside any other.
inline constexpr float kLow = -1e4f;

}  // namespace modelflow::passes
