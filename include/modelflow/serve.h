// Models under load: how many sessions of how many threads serve most, and the folders that servers read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "modelflow/modelflow.h"

namespace modelflow {

/// So many sessions run at the same time, each with so many threads.
struct Split {
  int streams = 1, threads = 1;
};

/// What a split gave while each of its sessions began the next run as soon as one was done.
struct Load {
  Split split;
  std::size_t runs = 0;
  double runs_per_second = 0, p50_ms = 0, p99_ms = 0;
  double memory_bytes = 0;  ///< what the process grew by at most from loading and running them; 0: Linux does not tell
};

/// A model in a file, and the plugin to register (empty: none).
struct Served {
  std::filesystem::path model, plugin;
};

/// The ways to share out so many threads evenly: 1 x 4, 2 x 2, 4 x 1.
std::vector<Split> splits_of(int threads);

/// Loads the sessions of a split and keeps them busy for so many seconds. They share the weights that the plugin packs.
Load measure_load(Runtime& runtime, const Served& served, const Split& split, const Feeds& feeds, double seconds);

/// The one with the most runs per second; of those within 3 % of it the one with the lowest p99.
const Load& best_of(const std::vector<Load>& loads);

/// Runs of so many rows at once.
struct BatchLoad {
  std::int64_t rows = 1;
  double rows_per_second = 0, p99_ms = 0;
};

/// How a server should run a model.
struct ServingPlan {
  Split split;
  std::int64_t max_batch = 0;      ///< most rows that requests may be gathered to; 0: they are not
  std::string why_no_batch;        ///< where max_batch is 0
  std::vector<Load> loads;         ///< what `split` was chosen from, on inputs of one row where rows can be gathered
  std::vector<BatchLoad> batches;  ///< what `max_batch` was chosen from
};

/// Whether every input and output has the rows of a batch first, which runs show to be independent of each other, and
/// by measurement how many sessions, threads and rows serve most. Without Options::measure one session with all
/// threads, and eight rows where they are independent.
ServingPlan plan_serving(Runtime& runtime, const Served& served, const Options& options);

/// What Triton's ONNX Runtime backend reads as config.pbtxt. `plugin` is the path that the server will find it under;
/// empty: none. Throws Error(unsupported) for types of inputs and outputs that Triton does not have.
std::string triton_config(const std::string& name, const Model& model, const ServingPlan& plan,
                          const std::string& plugin);

}  // namespace modelflow
