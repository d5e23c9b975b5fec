// The passes of the stage layout.
#pragma once

#include "modelflow/pass.h"

/// Level O2: one memory order for whole connected parts of the graph ("islands"). Convolutions run channels last;
/// whatever can run between them in that order does, and the few Transposes that remain stand where they move the
/// fewest bytes. What each pass does, and their order: layout.cpp.
namespace modelflow::passes {

Pass channels_last();
Pass innermost_axis();
Pass quantized_borders();
Pass absorb_transposes();
Pass absorb_activations();
Pass absorb_pre_activations();
Pass absorb_upsamples();
Pass plain_concats();
Pass unit_transposes();
Pass pick_slices();

}  // namespace modelflow::passes
