// Several frames as one.
#pragma once

#include "src/front_end/draft.h"

namespace modelflow {

/// `count` frames side by side, every `hop` frames: [N, frames, features] -> [N, stacks, count features]. With `edges`
/// as many stacks as frames / hop, rounded up: the first frame is repeated in front (count - 1) / 2 times, the last one
/// behind (low frame rate of FunASR); without, only whole stacks.
Value* stacked(const Draft& draft, Value* frames, int count, int hop, bool edges);

}  // namespace modelflow
