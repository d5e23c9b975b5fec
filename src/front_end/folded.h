// Spectra of symmetric windows: a frame is added to its mirror image, and taken from it, which halves the products.
#pragma once

#include <optional>

#include "modelflow/front_end.h"
#include "src/front_end/draft.h"

namespace modelflow {

/// The sample `first + i` of a frame and its partner `last - i`, for i below `count`; the middle may be its own
/// partner. What has no partner weighs nothing.
struct Fold {
  int first = 0, last = 0, count = 0;
};

/// None where samples of a frame are not treated as their partners are.
std::optional<Fold> fold_of(const AudioFeatures& features);

/// `samples` float32 [N, T + hop_length], whose last hop is not heard -> the power spectra [N, frames, bins].
Value* folded_power(const Draft& draft, const AudioFeatures& features, const Fold& fold, Value* samples);

}  // namespace modelflow
