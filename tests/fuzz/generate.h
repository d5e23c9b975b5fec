// Whole models from a seed: patterns planted, glued together, changed and wrapped.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/fuzz/patterns.h"

namespace modelflow::fuzz {

struct Generated {
  Model model;
  std::string story;  ///< "gelu.onnxtxt: tanh, two times; glued; constant nudged; in If"
};

struct Material {
  std::vector<Pattern> patterns;
  std::vector<Block> blocks;
};

/// `runs` says whether ONNX Runtime takes a model: every step that makes it refuse is taken back.
Generated generate(const Material& material, std::uint64_t seed, const std::function<bool(const Model&)>& runs);

}  // namespace modelflow::fuzz
