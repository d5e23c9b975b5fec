// Names that the options give are looked up, and what stays on of something that is off becomes what is off of it.
#include "src/flow/switches.h"

#include <algorithm>

#include "src/core/nearest.h"

namespace modelflow {

void check_names(const Options& options, const std::vector<Stage>& stages) {
  std::set<std::string> known;
  for (const Stage& stage : stages) {
    known.insert(stage.name);
    for (const Pass& pass : stage.passes) {
      known.insert(pass.name);
      for (const Rule& rule : pass.rules) known.insert(rule.name);
    }
  }
  const std::vector<std::string> candidates(known.begin(), known.end());
  for (const std::set<std::string>* names : {&options.disabled, &options.enabled}) {
    for (const std::string& name : *names) {
      if (known.contains(name)) continue;
      throw Error(ErrorKind::usage, "no stage, pass or rule is called '" + name + "'" + did_you_mean(name, candidates));
    }
  }
}

std::set<std::string> switched_off(const Options& options, const std::vector<Stage>& stages) {
  std::set<std::string> off = options.disabled;
  const auto wanted = [&](const std::string& name) { return options.enabled.contains(name); };
  const auto stays = [&](const Pass& pass) {
    return wanted(pass.name) || std::ranges::any_of(pass.rules, wanted, &Rule::name);
  };
  for (const Stage& stage : stages) {
    if (off.contains(stage.name) && (wanted(stage.name) || std::ranges::any_of(stage.passes, stays))) {
      off.erase(stage.name);
      if (!wanted(stage.name))
        for (const Pass& pass : stage.passes) off.insert(pass.name);
    }
    for (const Pass& pass : stage.passes) {
      if (!stays(pass) || !off.erase(pass.name) || wanted(pass.name)) continue;
      for (const Rule& rule : pass.rules) off.insert(rule.name);
    }
  }
  for (const std::string& name : options.enabled) off.erase(name);
  return off;
}

}  // namespace modelflow
