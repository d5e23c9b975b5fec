// Second moments of values on samples.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "src/precision/intermediates.h"
#include "src/verify/session.h"

namespace modelflow {

/// The sum of x^T x over all rows x of a value, [depth, depth]; empty where no sample gave finite numbers.
using Moments = std::vector<float>;

/// Runs `runnable` (functions emitted) on some of the samples and shows the second moments of these values of its main
/// graph, each with the extent of its last axis. The runtime multiplies: its products are fast on every machine. Values
/// whose moments do not fit into memory together are gone through in groups. A sample that is not finite at a value
/// does not count there.
void see_moments(const Sessions& sessions, const Model& runnable, const std::map<std::string, std::int64_t>& depths,
                 const CalibrationData& samples, const SessionOptions& session,
                 const std::function<void(const std::string& value, const Moments& moments)>& show);

}  // namespace modelflow
