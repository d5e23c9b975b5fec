#pragma once

#include <vector>

#include "modelflow/modelflow.h"

/// The stages; the passes of each are in the folder of its name. running_order() is the order to read first.
namespace modelflow::passes {

Stage clean(const Options& options);      ///< constants folded, the dead dropped, batch norm in convolutions
Stage normalize(const Options& options);  ///< many spellings of one idea become one
Stage fuse(const Options& options);       ///< many nodes become one fused op that some kernel of the target runs
Stage equalize(const Options& options);   ///< float32 still, but ready to lose less in 8 bits
Stage quantize(const Options& options);   ///< lower precision where asked for: fused ops in 8 bits
Stage layout(const Options& options);     ///< channels last for whole islands, transposes only at their borders

/// Every stage for these options in running order; a stage may come twice. What is not faster on this machine is taken
/// back between fuse and layout by src/measure/select.h, which needs the clock and the layout of every candidate.
std::vector<Stage> running_order(const Options& options);

}  // namespace modelflow::passes
