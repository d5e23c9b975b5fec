// The C interface's callbacks: samples, scores and progress come and go through them, and end a run.
#include <algorithm>
#include <cstring>
#include <optional>

#include "modelflow/c_api.h"
#include "src/c_api_handle.h"

namespace modelflow {
namespace {

Tensor copied(int dtype, const int64_t* dims, size_t rank, const void* data) {
  if (bits(static_cast<DType>(dtype)) == 0)
    throw Error(ErrorKind::usage,
                "dtype " + std::to_string(dtype) + " is none of dense numbers" +
                    (dtype == static_cast<int>(DType::string) ? ": call modelflow_sample_set_strings" : ""));
  return Tensor::make(static_cast<DType>(dtype), rank > 0 ? Dims(dims, dims + rank) : Dims(), [&](std::byte* out) {
    std::memcpy(out, data, byte_count(static_cast<DType>(dtype), std::span(dims, rank)));
  });
}

Tensor copied(const int64_t* dims, size_t rank, const char* const* data) {
  Dims extents = rank > 0 ? Dims(dims, dims + rank) : Dims();
  const std::span texts(data, static_cast<std::size_t>(element_count(extents)));
  if (std::ranges::find(texts, nullptr) != texts.end()) throw Error(ErrorKind::usage, "null argument");
  return Tensor(std::move(extents), {texts.begin(), texts.end()});
}

/// Who cancels from within a callback need not answer it well.
std::optional<Feeds> asked_for(const modelflow_options& handle, const modelflow_callback<modelflow_next_sample>& next,
                               const std::vector<std::string>& names, std::size_t index, const char* what) {
  stop_if_cancelled(handle);
  modelflow_sample sample{&names, {}};
  const int answer = next.function(next.user, index, &sample);
  stop_if_cancelled(handle);
  if (answer == 0) return std::nullopt;
  if (answer != 1) throw Error(ErrorKind::usage, "the callback gave up").within(what + std::to_string(index));
  return std::move(sample.feeds);
}

double scored(const modelflow_options& handle, const Model& model) {
  stop_if_cancelled(handle);
  const modelflow_candidate candidate{&model};
  double score = 0;
  const int answer = handle.score.function(handle.score.user, &candidate, &score);
  stop_if_cancelled(handle);
  if (answer != 0) throw Error(ErrorKind::usage, "the callback gave up").within("score");
  return score;
}

void tell(const modelflow_options& handle, std::string_view step, double done) {
  stop_if_cancelled(handle);
  if (handle.progress.function && handle.progress.function(handle.progress.user, std::string(step).c_str(), done) != 0)
    throw Cancelled{};
  stop_if_cancelled(handle);
}

template <class Function>
int set_callback(modelflow_options* options, modelflow_callback<Function> modelflow_options::*member, Function function,
                 void* user, char** error) {
  return guarded(error, [&] {
    if (options == nullptr || function == nullptr) throw Error(ErrorKind::usage, "null argument");
    options->*member = {function, user};
  });
}

}  // namespace

void stop_if_cancelled(const modelflow_options& handle) {
  if (handle.cancelled) throw Cancelled{};
}

std::vector<std::string> input_names(const Model& model) {
  std::vector<std::string> names;
  for (const Value* input : model.graph().inputs())
    if (!input->is_initializer()) names.push_back(input->name());
  return names;
}

Options with_callbacks(const modelflow_options& handle, const std::vector<std::string>& names) {
  stop_if_cancelled(handle);
  Options options = handle.options;
  if (handle.calibration.function)
    options.calibration = [&](std::size_t index) {
      return asked_for(handle, handle.calibration, names, index, "calibration sample ");
    };
  if (handle.inputs.function) {
    options.inputs.clear();
    while (auto feeds = asked_for(handle, handle.inputs, names, options.inputs.size(), "inputs "))
      options.inputs.push_back(std::move(*feeds));
  }
  if (handle.score.function) options.score = [&](const Model& model) { return scored(handle, model); };
  options.progress = [&](std::string_view step, double done) { tell(handle, step, done); };
  return options;
}

}  // namespace modelflow

using namespace modelflow;  // NOLINT: the C functions below

int modelflow_sample_set(modelflow_sample* sample, const char* input, int dtype, const int64_t* dims, size_t rank,
                         const void* data, char** error) {
  return guarded(error, [&] {
    if (sample == nullptr || input == nullptr || data == nullptr || (rank > 0 && dims == nullptr))
      throw Error(ErrorKind::usage, "null argument");
    sample->feeds[input] = copied(dtype, dims, rank, data);
  });
}

int modelflow_sample_set_strings(modelflow_sample* sample, const char* input, const int64_t* dims, size_t rank,
                                 const char* const* data, char** error) {
  return guarded(error, [&] {
    if (sample == nullptr || input == nullptr || data == nullptr || (rank > 0 && dims == nullptr))
      throw Error(ErrorKind::usage, "null argument");
    sample->feeds[input] = copied(dims, rank, data);
  });
}

const char* modelflow_sample_input(const modelflow_sample* sample, size_t position) {
  const bool there = sample != nullptr && sample->inputs != nullptr && position < sample->inputs->size();
  return there ? (*sample->inputs)[position].c_str() : nullptr;
}

int modelflow_candidate_save(const modelflow_candidate* candidate, const char* file, char** error) {
  return guarded(error, [&] {
    if (candidate == nullptr || file == nullptr) throw Error(ErrorKind::usage, "null argument");
    candidate->model->save(file);
  });
}

int modelflow_options_set_calibration(modelflow_options* options, modelflow_next_sample next, void* user,
                                      char** error) {
  return set_callback(options, &modelflow_options::calibration, next, user, error);
}

int modelflow_options_set_inputs(modelflow_options* options, modelflow_next_sample next, void* user, char** error) {
  return set_callback(options, &modelflow_options::inputs, next, user, error);
}

int modelflow_options_set_progress(modelflow_options* options, modelflow_progress progress, void* user, char** error) {
  return set_callback(options, &modelflow_options::progress, progress, user, error);
}

int modelflow_options_set_score(modelflow_options* options, modelflow_score score, void* user, char** error) {
  return set_callback(options, &modelflow_options::score, score, user, error);
}

void modelflow_cancel(modelflow_options* options) {
  if (options != nullptr) options->cancelled = true;
}
