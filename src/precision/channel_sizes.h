// How large the channels of values are on samples.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "passes/equalize/equalize.h"
#include "src/precision/intermediates.h"
#include "src/verify/session.h"

namespace modelflow {

using Channels = std::map<std::string, std::vector<ChannelSize>, std::less<>>;

/// Runs `runnable` (functions emitted) on some of the samples and says how large the channels of these values of its
/// main graph were. Left out are values that are not float32, or whose number of channels changes. Sizes only decide
/// which factor a channel gets, so a few samples tell enough.
Channels channel_sizes(const Sessions& sessions, const Model& runnable, const std::vector<passes::ChannelsOf>& values,
                       const CalibrationData& samples, const SessionOptions& session);

}  // namespace modelflow
