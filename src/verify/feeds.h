#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "modelflow/model.h"
#include "modelflow/modelflow.h"

namespace modelflow {

/// Inputs made up for a model, most representative first: sensible extents for dynamic dims (tied by symbol, or as
/// options.input_shapes says) and sensible values by dtype, input name and use. The first few should run; the later
/// ones are other sizes for models that refuse those. Always the same for the same model. Throws Error(unsupported)
/// for an input that is no tensor.
std::vector<Feeds> synthetic_feeds(const Model& model, const Options& options);

/// How the extents of one set of feeds are chosen.
struct Extents {
  std::int64_t batch = 1, sequence = 64, past = 8, image = 320, channels = 3;
};
/// Values for every symbol and unknown dim of the inputs; `given` wins.
std::map<std::string, Dims> input_dims(const Model& model, const Extents& extents,
                                       const std::map<std::string, Dims>& given);

/// The values of one input. `style` alternates between distributions where several are plausible.
Tensor synthetic_values(const Value& input, const Dims& dims, const std::map<std::string, Dims>& all_dims, int style);

}  // namespace modelflow
