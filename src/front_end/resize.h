// Pictures resized as the libraries do that clients use.
#pragma once

#include "modelflow/front_end.h"
#include "src/front_end/draft.h"

namespace modelflow {

/// Height and width, int64 [1] each.
struct Extent {
  Value *height, *width;
};

/// What a picture of `given` becomes before anything is cut off or put around it.
Extent resized_extent(const Draft& draft, const ImageFeatures& features, const Extent& given);

/// `pixels` uint8 [N, height, width, 3] of extent `from` -> [N, to.height, to.width, 3].
Value* resized(const Draft& draft, const ImageFeatures& features, Value* pixels, const Extent& from, const Extent& to);

}  // namespace modelflow
