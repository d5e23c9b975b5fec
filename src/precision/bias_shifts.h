// What rounding takes from the mean of each output channel.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/precision/intermediates.h"
#include "src/verify/session.h"

namespace modelflow {

using BiasShifts = std::map<std::string, std::vector<float>, std::less<>>;

/// What rounding takes from the mean of each output channel of a convolution or product, before its activation: the
/// mean of W x in `reference` less that of W' x' in `quantized`, where W' are the weights in 8 bits and x' is the x of
/// the reference rounded to the scale that it has there. A page that is mostly of one colour, or an activation with a
/// flat part, rounds the same way nearly everywhere, so the error does not average out. Each op alone: what the ops
/// before it did to x is theirs to correct, which makes the result the same whichever of them stay in float.
///
/// Both are fused models whose nodes go by the same names; `runnable` is `reference` with its functions emitted.
BiasShifts bias_shifts(const Sessions& sessions, const Model& reference, const Model& runnable, const Model& quantized,
                       const CalibrationData& samples, const SessionOptions& session);

}  // namespace modelflow
