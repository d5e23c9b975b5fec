// The float form that leaves: the fastest here of those that were found right, looked at once more.
#pragma once

#include "src/correct.h"
#include "src/measure/select.h"

namespace modelflow {

/// At O1 what was cleaned up; else selection by the clock where this machine is the target and can run the model, else
/// by the cost model. Emitted: what runtimes load.
Selected fastest(const Model& original, const Pipeline& pipeline, Corrected& corrected, const Verifier& verifier,
                 Runtime* runtime, Report& report);

/// A form that was not verified yet is a part of one that was, in another layout: looked at before it leaves. The
/// original where that is wrong.
Selected verified(Selected chosen, const Model& original, const Corrected& corrected, const Verifier& verifier,
                  Report& report);

}  // namespace modelflow
