// How far one result is from another.
#pragma once

#include <string>
#include <vector>

#include "modelflow/report.h"
#include "modelflow/tensor.h"
#include "src/verify/sections.h"

namespace modelflow {

/// Where no tolerance is given: float32 sums in another order.
constexpr double kTolerance = 1e-4;

/// `b` against the reference `a`. NaN equals NaN and an infinity itself; `max_rel` is max |a-b| over max |a|, or
/// over what makes `floor` (a tenth of max |a| at most) the bound, where that is more: next to nothing of next to
/// nothing is no difference.
/// ok means: type and shape agree; floats within `tolerance` or four steps of a 16-bit type of that (or within 1e-6
/// absolutely where a is zero throughout and there is no floor); integers, booleans and strings equal, except 8-bit
/// numbers: of every whole thousand one may be off by one, since float reassociation moves what is rounded.
OutputDiff difference(const std::string& output, const Tensor& a, const Tensor& b, double tolerance, double floor = 0);
/// The same for floats whose `sections` are judged each by its own largest value.
OutputDiff difference(const std::string& output, const Tensor& a, const Tensor& b, double tolerance, double floor,
                      const Sections& sections);

/// Compares what kind of numbers they are: NaN, an infinity, or finite; of booleans, what they say. Where `other` (may
/// be null), a second result of the same model, differs from `a`, the model leaves it open, and either will do.
OutputDiff difference_in_kind(const std::string& output, const Tensor& a, const Tensor& b, const Tensor* other);

/// "differs by 1.3e-02 of its largest value"
std::string describe(const OutputDiff& diff);

}  // namespace modelflow
