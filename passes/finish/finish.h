// The passes of the stage finish.
#pragma once

#include "modelflow/pass.h"

/// Level O2: fused ops for standard ones that every other stage looks for, and left. Their order: finish.cpp.
namespace modelflow::passes {

Pass fuse_transposes();

}  // namespace modelflow::passes
