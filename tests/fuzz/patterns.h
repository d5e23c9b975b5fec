// Where generated models take their substance from: the models of tests/passes and the blocks of tests/fuzz.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "modelflow/model.h"
#include "tests/fuzz/dice.h"

namespace modelflow::fuzz {

/// A small model that some rule of ours looks at, whether it fires or must not.
struct Pattern {
  std::string name;  ///< "gelu.onnxtxt: the title of the case"
  Model model;
};

/// The models in front of the "=>" of every case of tests/passes, as far as they are made of standard ops.
std::vector<Pattern> pass_cases();

/// A model as text with holes that a throw of the dice fills: ${a|b|c} is one of these, ${3..70} a number, ${N=...}
/// gives it a name that ${N} repeats and ${N*M+1} computes with; "~" in front of an initializer without values
/// ("~float[3,4] w") fills it with random ones.
struct Block {
  std::string name, text;
};
std::vector<Block> blocks(const std::filesystem::path& folder);
Pattern filled(const Block& block, Dice& dice);

}  // namespace modelflow::fuzz
