// What the report says about lower precision.
#pragma once

#include <map>
#include <string>

#include "src/precision/trials.h"

namespace modelflow {

/// The report's account of low precision: its ops, what was tried, what was chosen.
class PrecisionReport {
 public:
  PrecisionReport(const Trials& trials, Report& report);
  /// The ops that can run in lower precision; what stands at the borders of 8 bits is none.
  void list(const Trial& all);
  /// A point of the frontier between speed and accuracy; `speedup` 0: not measured.
  void note(const Trial& made, double speedup);
  /// `why`: of the ops that could run in lower precision than they do.
  void describe(const Trial& chosen, const std::map<std::string, std::string>& why);
  /// What runs instead of every op that was tried is float32.
  void refuse(const std::string& why);

 private:
  double judged_drop(const Trial& made) const;
  std::map<std::string, double> errors_of_ops(const Trial& made) const;

  const Trials& trials_;
  Report& report_;
  std::map<std::string, std::string> float_ops_;  // by node, as they were before
};

}  // namespace modelflow
