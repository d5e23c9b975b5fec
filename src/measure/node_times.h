// How long each node takes within its model.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "modelflow/model.h"
#include "modelflow/modelflow.h"
#include "src/verify/session.h"

namespace modelflow {

/// Opens a model in memory.
using OpenSession =
    std::function<std::unique_ptr<Session>(const Sessions&, const Model&, const SessionOptions& options)>;

/// By node name, among all other nodes of its model: what its data leave in the cache for it counts.
using NodeTimes = std::map<std::string, NodeTime, std::less<>>;

/// The times of the nodes of each of these runnable models on the same feeds. The models take turns; the fastest turn
/// of every node counts. `plugin` is registered.
std::vector<NodeTimes> node_times(const Sessions& sessions, const std::vector<const Model*>& models, const Feeds& feeds,
                                  const Options& options, const std::filesystem::path& plugin, int turns = 3,
                                  const OpenSession& open = open_session);

}  // namespace modelflow
