// How a server should run a model, by measurement.
#include <algorithm>
#include <set>
#include <thread>

#include "modelflow/serve.h"
#include "src/serve/rows.h"

namespace modelflow {
namespace {

constexpr double kSeconds = 0.5;  // of each load: long against a run of most models, short for who waits
constexpr std::int64_t kMostRows = 64;
constexpr std::int64_t kUnmeasuredRows = 8;
constexpr double kWorthwhile = 1.05;  // so much more must twice the rows give
constexpr double kMostMs = 1000;      // what nobody waits for

/// The original may have had inputs that are bound now, and a server gives none that have a default.
void keep_to_inputs_of(const Model& model, Options& options) {
  std::set<std::string> waiting;
  for (const Value* input : model.graph().inputs())
    if (!input->is_initializer()) waiting.insert(input->name());
  const auto is_none = [&](const auto& entry) { return !waiting.contains(entry.first); };
  std::erase_if(options.input_shapes, is_none);
  for (Feeds& feeds : options.inputs) std::erase_if(feeds, is_none);
}

/// Reads the model beside a session of it.
struct Plan {
  Runtime& runtime;
  const Served& served;
  Options options;
  Model model = Model::load(served.model);
  std::unique_ptr<Session> session = runtime.load(served.model, {.threads = options.threads, .plugin = served.plugin});
  ServingPlan plan = {};

  Feeds first_feeds() {
    return options.inputs.empty() ? typical_feeds(*session, model, options) : options.inputs.front();
  }

  /// Inputs of one row where rows are independent.
  Feeds look_at_rows(Feeds feeds) {
    plan.why_no_batch = why_no_rows(model);
    if (!plan.why_no_batch.empty()) return feeds;
    try {
      if (!rows_are_independent(*session, with_rows(*session, model, feeds, 2))) {
        plan.why_no_batch = "rows of a batch are not independent";
        return feeds;
      }
      plan.max_batch = kUnmeasuredRows;
      return with_rows(*session, model, feeds, 1);
    } catch (const Error& error) {
      plan.max_batch = 0;
      plan.why_no_batch = std::string("it does not run with other batches: ") + error.what();
      return feeds;
    }
  }

  /// Doubles the rows while that gives more of them.
  void measure_rows(const Feeds& one) {
    double best = 0;
    plan.max_batch = 1;
    for (std::int64_t rows = 1; rows <= kMostRows; rows *= 2) {
      const Feeds feeds = with_rows(*session, model, one, rows);
      const Load load = measure_load(runtime, served, plan.split, feeds, kSeconds);
      const double rate = load.runs_per_second * static_cast<double>(rows);
      plan.batches.push_back({rows, rate, load.p99_ms});
      if (rate < best * kWorthwhile || load.p99_ms > kMostMs) break;
      best = rate;
      plan.max_batch = rows;
    }
  }

  ServingPlan made() {
    keep_to_inputs_of(model, options);
    const int all =
        options.threads > 0 ? options.threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    plan.split = {1, all};
    const Feeds feeds = look_at_rows(first_feeds());
    if (!options.measure) return plan;
    for (const Split& split : splits_of(all))
      plan.loads.push_back(measure_load(runtime, served, split, feeds, kSeconds));
    plan.split = best_of(plan.loads).split;
    if (plan.max_batch > 0) measure_rows(feeds);
    return plan;
  }
};

}  // namespace

ServingPlan plan_serving(Runtime& runtime, const Served& served, const Options& options) {
  return Plan{runtime, served, options}.made();
}

}  // namespace modelflow
