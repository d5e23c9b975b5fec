// The ways to run a model, as the report has them: how fast, with how much memory, and where the time goes.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "modelflow/modelflow.h"
#include "src/measure/timing.h"

namespace modelflow {

/// The times of one side; `base` took turns with it.
SideReport side_report(std::string name, std::string graph, const Timing& base, const Timing& side);

/// The machine, without the measured peaks.
MachineReport this_machine(int threads);

/// What stands behind the sides "stock" and "optimized".
struct Profiled {
  const Model& original;
  const Model& result;
};
/// Adds to these sides of the report the times of their nodes and the memory that they take, and to the machine its
/// peaks. The plugin is registered for the result where that has fused ops. What takes too long, or has no room for its
/// temporary files, is left out, and `notes` say so: the result is there already.
void profile_sides(const Sessions& sessions, const Profiled& models, const Feeds& feeds, const Options& options,
                   const std::filesystem::path& plugin, Report& report);

/// What this process grows by at most while `work` runs; 0 where Linux does not tell.
double growth_of_memory(const std::function<void()>& work);

/// The nodes of a profile of this model with their work, as shares of these peaks.
std::vector<NodeRun> node_runs(const std::vector<NodeTime>& times, const Model& model, const MachineReport& machine);

}  // namespace modelflow
