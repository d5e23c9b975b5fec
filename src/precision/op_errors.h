// The error of each op in lower precision.
#pragma once

#include <map>
#include <string>

#include "modelflow/model.h"
#include "src/verify/session.h"

namespace modelflow {

/// A model before and after its functions were emitted: where its fused ops are, and what runs.
struct EmittedForm {
  const Model& fused;
  Model runnable;
};

/// The signal to noise ratio in dB, on one sample, of the first output of each node of the main graph that computes in
/// lower precision in `quantized` and, by the same name, in float32 in `reference`. What the nodes before it did is
/// part of the noise. Nodes without any difference are left out.
std::map<std::string, double> op_errors(const Sessions& sessions, const EmittedForm& reference,
                                        const EmittedForm& quantized, const Feeds& sample,
                                        const SessionOptions& session);

}  // namespace modelflow
