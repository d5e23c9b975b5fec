// Mutants by number, tried in processes of their own: one may die of what it does to ONNX Runtime or to a pass.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/obligations/seeds.h"

namespace modelflow::obligations {

struct Plan {
  std::vector<Seed> seeds;
  bool every = false;           ///< each single change once; else changes drawn until the time is over
  unsigned long long seed = 1;  ///< of what is drawn
  double seconds = 60;          ///< of CPU time in all; 0: no end
  int jobs = 2;
  long long only = -1;  ///< one mutant, by its number
};

struct Finding {
  unsigned long long mutant = 0;
  std::string seed, change, why, text;
};

struct Tally {
  unsigned long long tried = 0, fired = 0, compared = 0, invalid = 0, died_in_original = 0;
  std::map<std::string, unsigned long long> hits;  ///< by rule and pass: mutants that were compared
  std::vector<Finding> findings;
};

Tally run(const Plan& plan);

}  // namespace modelflow::obligations
