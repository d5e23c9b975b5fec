// The obligations of rules and passes: what they change must go on computing the same, at the edges too. The models of
// tests/passes and models planted from the patterns of rules are changed at one, two or three places (extents, ranks,
// types, attributes, constants, operands, readers, opsets, subgraphs around them), the passes run on them, and where
// these did something both forms run in ONNX Runtime without optimisations. A rule or pass that changed nothing that
// was compared fails.
//
//     modelflow_obligations                            60 seconds of CPU, a fresh seed, which it prints
//     modelflow_obligations --first                    the models as they are: what CI runs, with all feeds and levels
//     modelflow_obligations --seed 7 --seconds 3600    more, or the same again
//     modelflow_obligations --every                    each single change of each model
//     modelflow_obligations --seed 7 --only 1234       one mutant, with everything there is to know
//     modelflow_obligations --in views.onnxtxt         mutants of these models alone
#include <cstring>
#include <iostream>
#include <set>

#include "tests/obligations/campaign.h"

namespace modelflow::obligations {
namespace {

constexpr std::size_t kShown = 3;  // findings of one seed

struct Wanted {
  Plan plan;
  std::string in;
  bool brief = false;
};

Wanted wanted(int argc, char** argv) {
  Wanted all;
  all.plan.seed = std::random_device()();
  const std::vector<std::string> words(argv + 1, argv + argc);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto value = [&]() -> const std::string& {
      if (i + 1 == words.size()) throw Error(ErrorKind::usage, words[i] + " wants a value");
      return words[++i];
    };
    if (words[i] == "--every")
      all.plan.every = true, all.plan.seconds = 0;
    else if (words[i] == "--seed")
      all.plan.seed = std::stoull(value());
    else if (words[i] == "--seconds")
      all.plan.seconds = std::stod(value());
    else if (words[i] == "--jobs")
      all.plan.jobs = std::stoi(value());
    else if (words[i] == "--only")
      all.plan.only = std::stoll(value()), all.plan.jobs = 1;
    else if (words[i] == "--in")
      all.in = value();
    else if (words[i] == "--first")
      all.plan.seconds = 1e-9;  // behind the first round, in which every model is as it was
    else if (words[i] == "--brief")
      all.brief = true;
    else
      throw Error(ErrorKind::usage, "what is " + words[i] + "?");
  }
  return all;
}

/// Rules and passes that nothing tried: each is an obligation that nobody discharged.
std::vector<std::string> untried(const Tally& tally) {
  std::vector<std::string> names;
  for (const Pass& pass : every_pass()) {
    if (!tally.hits.contains(pass.name)) names.push_back("pass " + pass.name);
    for (const Rule& rule : pass.rules)
      if (!tally.hits.contains(rule.name)) names.push_back("rule " + rule.name);
  }
  return names;
}

void show(const Tally& tally, bool brief) {
  std::map<std::string, std::size_t> shown;
  for (const Finding& finding : tally.findings) {
    if (++shown[finding.seed] > kShown) continue;
    std::cout << "WRONG " << finding.seed << "  mutant " << finding.mutant << ": " << finding.change << "\n  "
              << (brief ? finding.why : finding.text) << "\n";
  }
}

int main(int argc, char** argv) {
  Wanted all = wanted(argc, argv);
  std::vector<Seed> seeds = written_seeds();
  for (Seed& seed : calibrated_seeds()) seeds.push_back(std::move(seed));
  for (Seed& seed : planted_seeds(all.plan.seed, 200)) seeds.push_back(std::move(seed));
  for (Seed& seed : seeds)
    if (seed.name.find(all.in) != std::string::npos) all.plan.seeds.push_back(std::move(seed));
  std::cout << all.plan.seeds.size() << " models, seed " << all.plan.seed << std::endl;
  const Tally tally = run(all.plan);
  show(tally, all.brief);
  std::cout << "mutants " << tally.tried << ", changed and compared " << tally.compared << ", no models "
            << tally.invalid << ", not run by ONNX Runtime itself " << tally.died_in_original << ", wrong "
            << tally.findings.size() << ", rules and passes " << tally.hits.size() << "\n";
  bool good = tally.findings.empty();
  if (all.in.empty() && all.plan.only < 0)
    for (const std::string& name : untried(tally)) good = false, std::cout << "NEVER TRIED: " << name << "\n";
  return good ? 0 : 1;
}

}  // namespace
}  // namespace modelflow::obligations

int main(int argc, char** argv) {
  try {
    return modelflow::obligations::main(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "obligations: " << error.what() << "\n";
    return 2;
  }
}
