// Stages run over a model until nothing changes, timed and counted.
#include "src/flow/flow.h"

#include "src/core/stopwatch.h"
#include "src/flow/held.h"
#include "src/graph/verify.h"
#include "src/onnx/infer_node.h"

namespace modelflow {
namespace {

constexpr int kMaxRounds = 20;  // of a repeated stage; real models need 2 to 4

std::size_t count_nodes(const Graph& graph) {
  std::size_t count = graph.nodes().size();
  if (!graph.holds_graphs()) return count;
  for (const auto& node : graph.nodes()) {
    for (const Graph* nested : node->subgraphs()) count += count_nodes(*nested);
  }
  return count;
}

int total_hits(const StepReport& step) {
  int total = 0;
  for (const auto& [rule, times] : step.hits) total += times;
  return total;
}

}  // namespace

int Flow::run_pass(Model& model, const Pass& pass, StepReport& step) {
  Context context{.model = model,
                  .options = options_,
                  .target = options_.target,
                  .runtime = runtime_,
                  .step = &step,
                  .notes = &report_.notes,
                  .plan = plan_,
                  .limit = limit_,
                  .typical = typical_};
  const Stopwatch watch;
  const int hits_before = total_hits(step);
  int changes = 0;
  try {
    changes = run_held(pass, model.graph(), context);
  } catch (const Error& error) {
    throw error.within("pass '" + pass.name + "'");
  }
  step.seconds += watch.seconds();
  if (changes > 0 && total_hits(step) == hits_before) step.hits[pass.name] += changes;  // it keeps no count of its own
#ifdef MODELFLOW_CHECKS
  verify(model, "after pass '" + pass.name + "'");
#endif
  return changes;
}

int Flow::run(Model& model, const Stage& stage) {
  std::vector<const Pass*> passes;
  for (const Pass& pass : stage.passes) {
    if (!options_.disabled.contains(pass.name) && !options_.disabled.contains(stage.name)) passes.push_back(&pass);
  }
  std::vector<StepReport> steps(passes.size());
  int total = 0;
  for (int round = 0; round < kMaxRounds; ++round) {
    if (stage.repeat && changed_) refresh_types(model);
    if (stage.repeat) changed_ = false;
    int changes = 0;
    for (std::size_t i = 0; i < passes.size(); ++i) {
      StepReport& step = steps[i];
      if (round == 0) {
        step.stage = stage.name;
        step.name = passes[i]->name;
        step.nodes_before = step.nodes_after = count_nodes(model.graph());
      }
      if (options_.progress) {
        options_.progress(stage.name + ": " + passes[i]->name,
                          static_cast<double>(i) / static_cast<double>(passes.size()));
      }
      const std::size_t nodes = count_nodes(model.graph());
      changes += run_pass(model, *passes[i], step);
      step.nodes_after += count_nodes(model.graph()) - nodes;  // its own share over all rounds
    }
    total += changes;
    changed_ |= changes > 0;
    if (!stage.repeat || changes == 0) break;
    if (round + 1 == kMaxRounds) {
      report_.notes.push_back("stage '" + stage.name + "' was still changing the model after " +
                              std::to_string(kMaxRounds) + " rounds");
    }
  }
  for (StepReport& step : steps) report_.steps.push_back(std::move(step));
  return total;
}

}  // namespace modelflow
