#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/correct.h"
#include "src/pipeline.h"

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
                                     Runtime& runtime, const std::filesystem::path& plugin,
                                     const std::vector<Feeds>& synthetic, Report& report);

}  // namespace modelflow
