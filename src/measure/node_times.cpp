// Times of nodes from profiles of whole runs.
#include "src/measure/node_times.h"

#include <algorithm>
#include <cmath>

#include "src/measure/timing.h"

namespace modelflow {
namespace {

constexpr double kTurn = 0.15;  // seconds

void take_faster(NodeTimes& known, std::vector<NodeTime> times) {
  for (NodeTime& time : times) {
    const auto [place, fresh] = known.try_emplace(time.name, time);
    if (!fresh && time.seconds < place->second.seconds) place->second = std::move(time);
  }
}

}  // namespace

std::vector<NodeTimes> node_times(const Sessions& sessions, const std::vector<const Model*>& models, const Feeds& feeds,
                                  const Options& options, const std::filesystem::path& plugin, int turns,
                                  const OpenSession& open) {
  SessionOptions session = timing_session(options);
  session.plugin = plugin;
  session.profile = true;
  std::vector<NodeTimes> found(models.size());
  for (int turn = 0; turn < turns; ++turn)
    for (std::size_t i = 0; i < models.size(); ++i) {
      const auto opened = open(sessions, *models[i], session);
      // They are in the profile too; three others make them a minority, beside which medians stand.
      for (int warm = 0; warm < kRunsThatTakeMemory; ++warm) opened->timed_run(feeds);
      const double once = std::max(opened->timed_run(feeds), 1e-6);
      for (double left = std::clamp(std::ceil(kTurn / once), 2.0, 100.0); left > 0; --left) opened->timed_run(feeds);
      take_faster(found[i], opened->profile());
    }
  return found;
}

}  // namespace modelflow
