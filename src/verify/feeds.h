#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "modelflow/model.h"
#include "modelflow/modelflow.h"

namespace modelflow {

/// Inputs made up for a model: sensible extents for dynamic dims (tied by symbol, or as options.input_shapes says) and
/// sensible values by dtype, input name and use. Groups of alternatives, most likely first: the first group of which
/// the model takes anything is the one to use, since a later one may be degenerate for it (a pool larger than its
/// image). Always the same for the same model. Throws Error(unsupported) for an input that is no tensor.
std::vector<std::vector<Feeds>> feed_groups(const Model& model, const Options& options);

/// How the extents of one set of feeds are chosen.
struct Extents {
  std::int64_t batch = 1, sequence = 64, past = 8, height = 320, width = 320, channels = 3;
};
/// Values for every symbol and unknown dim of the inputs; `given` wins.
std::map<std::string, Dims> input_dims(const Model& model, const Extents& extents,
                                       const std::map<std::string, Dims>& given);

/// The values of one input. `style` alternates between distributions where several are plausible.
Tensor synthetic_values(const Value& input, const Dims& dims, const std::map<std::string, Dims>& all_dims, int style);

}  // namespace modelflow
