// What generated models are run on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "modelflow/model.h"
#include "modelflow/runtime.h"

namespace modelflow::fuzz {

/// One set of inputs with the sizes of the symbols that it was made for.
struct Sample {
  Feeds feeds;
  std::map<std::string, std::int64_t> symbols;
};

/// Inputs of several sizes: unlike symbols unlike, ones, odd ones, one that is empty. They follow from the seed and the
/// names of inputs and symbols, so they stay the same while the model around them shrinks. `kinds`: with NaN and
/// infinities among them. `empty`: one with symbols that are 0.
std::vector<Sample> samples(const Model& model, std::uint64_t seed, bool kinds, bool empty);

}  // namespace modelflow::fuzz
