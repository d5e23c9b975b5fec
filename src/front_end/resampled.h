// Sound brought from one sample rate to another.
#pragma once

#include "src/front_end/draft.h"

namespace modelflow {

/// torchaudio.functional.resample with its defaults (sinc under a Hann window of six zero crossings, rolloff 0.99) by
/// the rational factor to / from: `samples` float32 [N, T] -> [N, ceil(T to / from)]. A convolution with `to` filters.
Value* resampled(const Draft& draft, Value* samples, int from, int to);

}  // namespace modelflow
