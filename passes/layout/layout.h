#pragma once

#include <vector>

#include "modelflow/pass.h"

/// Level O2: one memory order for whole islands of the graph. Convolutions run channels last; whatever can run between
/// them in that order does, and the few Transposes that remain stand where they move the fewest bytes.
namespace modelflow::passes {

Pass channels_last();       ///< chooses the islands by minimum cut and rewrites them
Pass quantized_borders();   ///< what rounds to 8-bit numbers and back where these begin and end
Pass absorb_transposes();   ///< a Transpose beside an op that reads and writes either order becomes an attribute
Pass absorb_activations();  ///< what follows an op that only layout makes
Pass absorb_upsamples();    ///< repeated pixels that a Concat reads
Pass unit_transposes();     ///< Transposes that move nothing

std::vector<Pass> layout();

}  // namespace modelflow::passes
