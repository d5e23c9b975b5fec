// Binding and choosing outputs as the options ask for it, with the data that belongs to it.
#include "src/compose/specialize.h"

#include <fmt/format.h>

#include <set>

#include "modelflow/compose.h"
#include "src/compose/wording.h"

namespace modelflow {
namespace {

std::set<std::string> input_set(const Model& model) {
  std::set<std::string> names;
  for (const Value* input : model.graph().inputs()) names.insert(input->name());
  return names;
}

/// The model never sees inputs that are gone, whoever made the data.
void forget(Options& options, const std::set<std::string>& gone) {
  const auto without = [gone](Feeds feeds) {
    std::erase_if(feeds, [&](const auto& entry) { return gone.contains(entry.first); });
    return feeds;
  };
  for (Feeds& feeds : options.inputs) feeds = without(std::move(feeds));
  std::erase_if(options.input_shapes, [&](const auto& entry) { return gone.contains(entry.first); });
  if (!options.calibration) return;
  options.calibration = [next = std::move(options.calibration), without](std::size_t index) -> std::optional<Feeds> {
    std::optional<Feeds> feeds = next(index);
    return feeds ? std::optional(without(std::move(*feeds))) : std::nullopt;
  };
}

}  // namespace

Model specialized(Model model, Options& options, std::vector<std::string>& notes) {
  if (options.bind.empty() && options.outputs.empty() && options.drop_outputs.empty()) return model;
  if (!options.outputs.empty() && !options.drop_outputs.empty())
    throw Error(ErrorKind::usage, "outputs to keep and outputs to drop: name one or the other");
  const std::size_t nodes = model.graph().nodes().size();
  std::set<std::string> gone = input_set(model);
  model = bind_inputs(std::move(model), options.bind);
  if (!options.outputs.empty()) model = keep_outputs(std::move(model), options.outputs);
  if (!options.drop_outputs.empty()) model = drop_outputs(std::move(model), options.drop_outputs);
  for (const std::string& left : input_set(model)) gone.erase(left);
  forget(options, gone);
  if (!gone.empty()) notes.push_back(fmt::format("no inputs any more: {}", listed({gone.begin(), gone.end()})));
  if (model.graph().nodes().size() != nodes)
    notes.push_back(fmt::format("only what the outputs need: {} of {} nodes", model.graph().nodes().size(), nodes));
  return model;
}

}  // namespace modelflow
