// The smallest model and inputs that show what was found wrong.
#pragma once

#include "src/search.h"

namespace modelflow {

/// What a fault was found with.
struct Finding {
  const Model& original;
  const Options& options;
  const Pipeline& pipeline;
  const Verifier& verifier;
};

/// Cuts the original down to the nodes that the fault needs and writes into options.reproducer, which is made where it
/// is missing: model.onnxtxt and model.onnx, feeds.npz (what lies before the cut has the values that the original
/// computes), wrong.onnx (the result) and fault.txt. A second fault goes into the folder `2` of it, and so on.
void keep_reproducer(const Finding& finding, const Without& without, const Outcome& found, const Fault& fault,
                     Report& report);

}  // namespace modelflow
