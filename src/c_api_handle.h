// What the C interface's handles hold, for the files that implement it.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "modelflow/c_api.h"
#include "modelflow/modelflow.h"

/// A callback with what its owner wants to get back.
template <class Function>
struct modelflow_callback {
  Function function = nullptr;
  void* user = nullptr;
};

struct modelflow_options {
  modelflow::Options options;
  modelflow::WriteOptions write;
  std::vector<std::string> bind;  ///< as modelflow::parse_bind reads it, once there is a model
  modelflow_callback<modelflow_next_sample> calibration, inputs;
  modelflow_callback<modelflow_progress> progress;
  modelflow_callback<modelflow_score> score;
  std::atomic<bool> cancelled = false;
};

struct modelflow_sample {
  const std::vector<std::string>* inputs = nullptr;  ///< of the model, in its order
  modelflow::Feeds feeds;
};

struct modelflow_candidate {
  const modelflow::Model* model = nullptr;
};

namespace modelflow {

/// Thrown through a run, whose code catches Error only, to its C function.
struct Cancelled {};
void stop_if_cancelled(const modelflow_options& handle);

/// Of null the defaults.
Limits limits_of(const modelflow_options* handle);

/// Of what is to be read and written, before any work: throws Error(usage) where the output would replace weights of
/// the inputs, and Error(output) where it cannot be written. As long as what this gives lives, these weights stay.
std::vector<std::shared_ptr<const void>> checked_files(const std::vector<std::filesystem::path>& inputs,
                                                       const std::filesystem::path& output);

/// Writes it as the options say, unless they cancelled the run.
void save(const Model& model, const std::filesystem::path& output, const modelflow_options* handle);

/// For the caller to free; null without memory.
char* duplicate(std::string_view text);

/// Runs `body`; what it throws becomes a number and a message, since nothing may be thrown across the C boundary.
int guarded(char** error, const std::function<void()>& body);

/// The inputs that a caller has to give: those without a default value.
std::vector<std::string> input_names(const Model& model);

/// The options of one run over a model with these inputs; `handle` and `names` must outlive the run.
Options with_callbacks(const modelflow_options& handle, const std::vector<std::string>& names);

}  // namespace modelflow
