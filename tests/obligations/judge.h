// One mutant: is it a model, do passes change it, and does what comes out compute the same.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "modelflow/modelflow.h"

namespace modelflow::obligations {

/// A model and the passes whose obligation it helps to discharge.
struct Seed {
  std::string name;  ///< "views.onnxtxt:12", "rule gelu-from-erf #3"
  std::vector<Pass> passes;
  Options options;
  Model model;
  int rounds = 20;  ///< of the passes, at most
};

/// What the process is at: what is to blame where it dies.
enum class Work { passes, original, result };

/// What became of one mutant.
struct Judgement {
  enum class Kind { invalid, unchanged, equal, wrong } kind = Kind::invalid;
  std::string what;                      ///< wrong: everything one has to know
  std::string why;                       ///< wrong: in one line
  std::map<std::string, int> hits = {};  ///< rules and passes that changed something where results were compared
};

class Judge {
 public:
  Judge(std::shared_ptr<Runtime> runtime, std::function<void(Work)> at)
      : runtime_(std::move(runtime)), at_(std::move(at)) {}
  /// `whole`: all of O2 as well, and O1.
  Judgement judge(const Seed& seed, const Model& mutant, bool whole, unsigned long long number);

 private:
  struct Reference;
  bool prepare(Reference& reference);
  std::string compare(Reference& reference, const Model& result, const Options& options,
                      const std::map<std::string, int>& hits);
  std::string compare_run(Reference& reference, std::size_t feed, const std::vector<Tensor>& results, bool any_kind,
                          bool everywhere);
  double noise(Reference& reference, std::size_t feed, std::size_t output);

  std::shared_ptr<Runtime> runtime_;
  std::function<void(Work)> at_;
};

/// The types of all values as inference tells them now. False where this is no model.
bool settle(Model& model);

}  // namespace modelflow::obligations
