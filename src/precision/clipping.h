// Ranges from histograms.
#pragma once

#include "modelflow/pass.h"
#include "src/precision/histogram.h"

namespace modelflow {

/// Ranges to quantize to, from what a histogram counted. `seen` is all that occurred, 0 included; so is the result.

/// Leaves out the outermost (100 - percent) per cent of the elements at either end.
Range percentile_range(const Histogram& histogram, Range seen, double percent);
/// The range whose 8-bit histogram says most about the original one (Kullback-Leibler divergence): the low and the high
/// end are sought one after the other.
Range entropy_range(const Histogram& histogram, Range seen);
/// The range with the least squared error of rounding and clipping together.
Range mse_range(const Histogram& histogram, Range seen);

}  // namespace modelflow
