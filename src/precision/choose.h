// The choice of a precision for every op.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/precision/precision_report.h"
#include "src/precision/trials.h"

namespace modelflow {

/// Chooses the precision of every op. First the ops go back that take no less time, which costs nothing; then, where
/// the bound asks for it, those that cost the most accuracy, as few as a search finds. Precision::automatic does so
/// twice where the target multiplies bfloat16: for what runs in that and not in float32, then for what runs in 8 bits
/// and not in what the first round found for it. So do weights of 8 and 4 bits on a GPU, after float16.
class Chooser {
 public:
  Chooser(Trials& trials, PrecisionReport& report)
      : trials_(trials), work_(trials.work), options_(work_.options), report_(report) {}
  /// The fastest form found that loses no more than options.max_drop; nothing of it is lowered when there is none.
  Trial choose(Trial lowest);
  /// Why each op that could run in lower precision does not, by name.
  const std::map<std::string, std::string>& why() const { return why_; }

 private:
  using Names = std::set<std::string>;

  std::optional<Precision> half_precision() const;
  std::optional<Trial> in_half();
  Trial chosen(Trial all, const Model& full);
  Trial gaining(Trial all, const Model& full);
  Trial within_bound(const Trial& all);
  Trial faster(Trial best, Trial other);
  Allowed without(const Names& kept) const;
  Names names(const Trial& trial) const;
  std::vector<std::string> by_sensitivity(const Names& all);
  void note(const Trial& made);

  Trials& trials_;
  const Lowering& work_;
  const Options& options_;
  PrecisionReport& report_;
  Allowed allowed_;                      ///< empty: whatever there is
  Precision lowers_to_ = Precision::i8;  ///< what this round is about
  std::optional<Precision> settled_;     ///< what the round before was about
  Names kept_;                           ///< what this round found to gain nothing
  std::map<std::string, std::string> why_;
};

/// Which ops to keep in float32 so that a bound holds, as few as a search finds. `holds` measures one choice; what is
/// returned was measured and held. `ranked`: all ops, the most harmful first; keeping all of them holds and
/// keeping none does not, by definition.
///
/// More ops in float do not always mean less error: two errors may have cancelled each other. So the bisection over the
/// ranking only gives a first choice; then each op of it, the least harmful first, is tried in low precision again
/// while the others stay, up to `most_tries` of them.
std::set<std::string> fewest_kept(const std::vector<std::string>& ranked,
                                  const std::function<bool(const std::set<std::string>& keep)>& holds,
                                  std::size_t most_tries);

}  // namespace modelflow
