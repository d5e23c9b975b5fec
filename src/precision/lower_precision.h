// Lower precision, from samples to a choice. Every step has files of its own, in this order:
//
//   samples    samples.h            the user's data in two parts, one to calibrate with and one to evaluate with
//   ranges     calibrate.h          which numbers each value of the float model takes on the first part
//                                   (intermediates.h runs it; observer.h, histogram.h and clipping.h sum up)
//   plan       plan.h               what the quantizing passes go by: these ranges, and what makes up for rounding
//                                   (channel_sizes.h, roundings.h by compensation.h and moments.h, bias_shifts.h)
//   trials     trials.h             forms of the model by that plan, and what each loses on the second part
//                                   (output_errors.h; op by op: op_errors.h)
//   choice     choose.h             which op gets which precision, by measured times (gains.h) and the loss allowed
//
// and precision_report.h tells the user what was found.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/correct.h"
#include "src/pipeline.h"
#include "src/verify/session.h"

namespace modelflow {

/// What lower precision starts from.
struct Precise {
  const Model& original;
  const Corrected& corrected;  ///< the float forms, found right
  const Model& fastest;        ///< the float form that was chosen: what a lower precision has to beat
};

/// The model in the precision that the options ask for, runnable: calibrated, with as many ops in float as
/// options.max_drop asks for, its kernels held against the bodies of their ops, and measured. Nothing when it is not
/// faster than the float form, or when no part of it can be quantized within the bound; the notes say why.
/// Throws Error(usage) for calibration data that does not fit the model.
std::optional<Model> lower_precision(const Precise& precise, const Options& options, const Pipeline& pipeline,
                                     const Sessions& sessions, const std::filesystem::path& plugin,
                                     const std::vector<Feeds>& synthetic, Report& report);

}  // namespace modelflow
