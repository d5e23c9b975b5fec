// How a fused attention writes its result.
#pragma once

#include <optional>
#include <string_view>

#include "modelflow/pass.h"

namespace modelflow::passes {

/// What follows the product with the values and only moves its elements: how the fused op writes its result, and what
/// it stands in for.
struct Continuation {
  /// How `end` lies: as the product gives it; with its last axes swapped; [batch, sequence, heads * size];
  /// [batch, sequence, heads, size]; [sequence, batch, heads * size]; the rows of these together, [rows, heads * size].
  enum class Form { bnsh, bnhs, bsh, bhs, bsnd, sbh, rows, sequence_rows };
  Value* end = nullptr;
  Form form = Form::bnsh;
  bool windows = false;  ///< the batch of `end` is two axes, images and their windows

  std::string_view layout() const { return form == Form::bnsh || form == Form::bnhs ? "BNSH" : "BSH"; }
};

/// `context` is the product of probabilities and values. Returns the last value behind it that a fused attention can
/// compute itself; nothing when it cannot compute even `context`. `turned`: the last two axes of `context` are swapped.
std::optional<Continuation> read_continuation(Value& context, std::int64_t heads, bool turned);

/// From the fused result to a value like `end`, with nodes in front of `before` where it takes some.
Value& continue_to(const Continuation& to, Value& result, std::int64_t heads, Node& before, Context& context);

}  // namespace modelflow::passes
