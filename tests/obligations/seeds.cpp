// The models that mutants are made of.
#include "tests/obligations/seeds.h"

#include <set>

#include "tests/pass_cases.h"

namespace modelflow::obligations {

std::vector<Seed> written_seeds() {
  std::vector<Seed> seeds;
  for (const Case& c : all_cases()) {
    const Options options = options_of(c);
    Seed seed{c.file.filename().string() + ":" + std::to_string(c.line), passes_of(c.passes, options), options,
              parse(c, c.before)};
    if (settle(seed.model)) seeds.push_back(std::move(seed));
  }
  return seeds;
}

std::vector<Pass> every_pass() {
  std::vector<Pass> passes;
  std::set<std::string> seen;
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::bf16_weights, Precision::i8,
                                    Precision::i8_dynamic, Precision::i8_weights, Precision::i4_weights}) {
    Options options;
    options.precision = precision;
    options.target = Target::parse("cpu:amx");
    for (const Stage& stage : stages(options))
      for (const Pass& pass : stage.passes)
        if (seen.insert(pass.name).second) passes.push_back(pass);
  }
  return passes;
}

}  // namespace modelflow::obligations
