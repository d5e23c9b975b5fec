#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/precision/rows.h"
#include "src/precision/trials.h"

namespace modelflow {

/// Chooses the precision of every op. First the ops go back that take no less time, which costs nothing; then, where
/// the bound asks for it, those that cost the most accuracy, as few as a search finds. Precision::automatic does so
/// twice where the target multiplies bfloat16: for what runs in that and not in float32, then for what runs in 8 bits
/// and not in what the first round found for it.
class Chooser {
 public:
  Chooser(Trials& trials, Rows& rows) : trials_(trials), work_(trials.work), options_(work_.options), rows_(rows) {}
  /// The fastest form found that loses no more than options.max_drop; nothing of it is lowered when there is none.
  Trial choose(Trial lowest);
  /// Of the ops that could run in lower precision than they do now.
  const std::map<std::string, std::string>& why() const { return why_; }

 private:
  using Names = std::set<std::string>;

  std::optional<Trial> in_bf16();
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
  Rows& rows_;
  Allowed allowed_;                      ///< empty: whatever there is
  Precision lowers_to_ = Precision::i8;  ///< what this round is about
  std::optional<Precision> settled_;     ///< what the round before was about
  Names kept_;                           ///< what this round found to gain nothing
  std::map<std::string, std::string> why_;
};

}  // namespace modelflow
