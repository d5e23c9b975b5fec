// All stages of passes.
#pragma once

#include "modelflow/modelflow.h"

/// The stages; the passes of each are in the folder of its name, and its list in the file of that name, in running
/// order (clean/clean.cpp). What several stages share is in graph/. The order of the stages: route() in
/// src/optimize.cpp.
namespace modelflow::passes {

Stage clean(const Options& options);      ///< constants folded, the dead dropped, batch norm in convolutions
Stage normalize(const Options& options);  ///< many spellings of one idea become one
Stage fuse(const Options& options);       ///< many nodes become one fused op that some kernel of the target runs
Stage equalize(const Options& options);   ///< float32 still, but ready to lose less in 8 bits
Stage quantize(const Options& options);   ///< lower precision where asked for: fused ops in 8 bits
Stage layout(const Options& options);     ///< channels last for connected parts, transposes only at their borders
Stage finish(const Options& options);     ///< fused ops for what is left

}  // namespace modelflow::passes
