// The C interface: options by name, models from and to files and bytes, errors as numbers and one line.
#include "modelflow/c_api.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>

#include "modelflow/compose.h"
#include "modelflow/data.h"
#include "src/c_api_handle.h"
#include "src/core/data_files.h"
#include "src/core/new_file.h"
#include "src/core/once.h"
#include "src/core/shallow_json.h"
#include "src/flow/report_json.h"

namespace modelflow {
namespace {

constexpr int kMostThreads = 1024;
constexpr double kMostNodes = 1e12, kMostDepth = 1000;

double number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') throw Error(ErrorKind::usage, "'" + text + "' is not a number");
  return value;
}

double positive(const std::string& text) {
  const double value = number(text);
  if (value > 0 && std::isfinite(value)) return value;
  throw Error(ErrorKind::usage, "'" + text + "' is not a positive number");
}

int thread_count(const std::string& text) {
  const double value = number(text);
  if (value >= 0 && value <= kMostThreads && value == std::floor(value)) return static_cast<int>(value);
  throw Error(ErrorKind::usage, "'" + text + "' is no number of threads");
}

double seconds(const std::string& text) {
  const double value = number(text);
  if (value >= 0 && std::isfinite(value)) return value;
  throw Error(ErrorKind::usage, "'" + text + "' is no time in seconds");
}

/// A whole number from 1 to `most`.
double count(const std::string& text, double most) {
  const double value = number(text);
  if (value >= 1 && value <= most && value == std::floor(value)) return value;
  throw Error(ErrorKind::usage, "'" + text + "' is no number from 1 to " + std::to_string(std::llround(most)));
}

double per_cent(const std::string& text) {
  const double value = number(text);
  if (value >= 0 && value <= 100) return value;
  throw Error(ErrorKind::usage, "'" + text + "' is not between 0 and 100 per cent");
}

Level level(const std::string& text) {
  const std::string_view digit = std::string_view(text).substr(text.starts_with('O'));
  if (digit == "0" || digit == "1" || digit == "2") return static_cast<Level>(digit[0] - '0');
  throw Error(ErrorKind::usage, "level '" + text + "': expected O0, O1 or O2");
}

WriteOptions::ExternalData external_data(const std::string& text) {
  using External = WriteOptions::ExternalData;
  if (text == "auto") return External::automatic;
  if (text == "always") return External::always;
  if (text == "never") return External::never;
  throw Error(ErrorKind::usage, "external_data '" + text + "': expected auto, always or never");
}

void set(modelflow_options& handle, const std::string& key, const std::string& value) {
  Options& options = handle.options;
  const std::map<std::string, std::function<void()>> setters = {
      {"level", [&] { options.level = level(value); }},
      {"target", [&] { options.target = Target::parse(value); }},
      {"measure", [&] { options.measure = number(value) != 0; }},
      {"profile", [&] { options.profile = number(value) != 0; }},
      {"verify", [&] { options.verify = number(value) != 0; }},
      {"threads", [&] { options.threads = thread_count(value); }},
      {"tolerance", [&] { options.tolerance = positive(value); }},
      {"max_seconds", [&] { options.max_seconds = positive(value); }},
      {"verify_seconds", [&] { options.verify_seconds = positive(value); }},
      {"max_memory", [&] { options.limits.max_memory = parse_bytes(value); }},
      {"timeout", [&] { options.limits.timeout = seconds(value); }},
      {"max_nodes", [&] { options.limits.max_nodes = static_cast<std::size_t>(count(value, kMostNodes)); }},
      {"max_depth", [&] { options.limits.max_depth = static_cast<int>(count(value, kMostDepth)); }},
      {"disable", [&] { options.disabled.insert(value); }},
      {"enable", [&] { options.enabled.insert(value); }},
      {"precision", [&] { options.precision = parse_precision(value); }},
      {"calibration", [&] { options.calibration = read_one_by_one(value); }},
      {"inputs", [&] { options.inputs = read_feeds(value); }},
      {"observer", [&] { options.observer = parse_observer(value); }},
      {"metric", [&] { options.metric = parse_metric(value); }},
      {"max_drop", [&] { options.max_drop = per_cent(value); }},
      {"reproducer", [&] { options.reproducer = value; }},
      {"input_shape", [&] { add_once(options.input_shapes, {parse_input_shape(value)}, "input_shape"); }},
      {"bind", [&] { handle.bind.push_back(value); }},
      {"output", [&] { options.outputs.push_back(value); }},
      {"drop_output", [&] { options.drop_outputs.push_back(value); }},
      {"custom_ops", [&] { options.custom_ops.emplace_back(value); }},
      {"external_data", [&] { handle.write.external_data = external_data(value); }},
  };
  const auto it = setters.find(key);
  if (it == setters.end()) throw Error(ErrorKind::usage, "unknown option '" + key + "'");
  it->second();
}

Result run(Model model, const modelflow_options* handle) {
  if (handle == nullptr) return optimize(std::move(model));
  const std::vector<std::string> names = input_names(model);
  Options options = with_callbacks(*handle, names);
  for (const std::string& text : handle->bind) add_once(options.bind, parse_bind(model, text), "bind");
  Result result = optimize(std::move(model), options);
  stop_if_cancelled(*handle);  // nothing is written then
  return result;
}

}  // namespace

Limits limits_of(const modelflow_options* handle) { return handle != nullptr ? handle->options.limits : Limits{}; }

std::vector<std::shared_ptr<const void>> checked_files(const std::vector<std::filesystem::path>& inputs,
                                                       const std::filesystem::path& output) {
  refuse_data_files(output, "output", inputs);
  refuse_unwritable(output);
  return held_data_files(inputs);
}

void save(const Model& model, const std::filesystem::path& output, const modelflow_options* handle) {
  if (handle != nullptr) stop_if_cancelled(*handle);
  model.save(output, handle != nullptr ? handle->write : WriteOptions{});
}

char* duplicate(std::string_view text) {
  auto* out = static_cast<char*>(std::malloc(text.size() + 1));
  if (out == nullptr) return nullptr;
  std::memcpy(out, text.data(), text.size());
  out[text.size()] = '\0';
  return out;
}

int guarded(char** error, const std::function<void()>& body) {
  const auto fail = [&](ErrorKind kind, std::string_view message) {
    if (error != nullptr) *error = duplicate(message);
    return static_cast<int>(kind);
  };
  if (error != nullptr) *error = nullptr;
  try {
    body();
    return 0;
  } catch (const Error& e) {
    return fail(e.kind(), e.what());
  } catch (const Cancelled&) {
    if (error != nullptr) *error = duplicate("cancelled");
    return MODELFLOW_CANCELLED;
  } catch (const std::bad_alloc&) {
    return fail(ErrorKind::limit, "out of memory");
  } catch (const std::exception& e) {
    return fail(ErrorKind::internal, e.what());
  }
}

}  // namespace modelflow

using namespace modelflow;  // NOLINT: the C functions below

const char* modelflow_version(void) { return version().data(); }
modelflow_options* modelflow_options_create(void) {
  try {
    return new (std::nothrow) modelflow_options;
  } catch (const Error&) {  // the defaults ask what this machine is, and MODELFLOW_MAX_ISA may be nonsense
    return nullptr;
  }
}
void modelflow_options_free(modelflow_options* options) { delete options; }
void modelflow_free(void* memory) { std::free(memory); }

int modelflow_options_set(modelflow_options* options, const char* key, const char* value, char** error) {
  return guarded(error, [&] {
    if (options == nullptr || key == nullptr || value == nullptr) throw Error(ErrorKind::usage, "null argument");
    set(*options, key, value);
  });
}

int modelflow_optimize_file(const char* input, const char* output, const modelflow_options* options, char** report,
                            char** error) {
  return guarded(error, [&] {
    if (input == nullptr || output == nullptr) throw Error(ErrorKind::usage, "null argument");
    const auto held = checked_files({input}, output);
    Result result = run(Model::load(input, limits_of(options)), options);
    result.report.input = input;
    save(result.model, output, options);
    if (report != nullptr) *report = duplicate(result.report.json());
  });
}

int modelflow_report_page(const char* report, char** page, char** error) {
  return guarded(error, [&] {
    if (report == nullptr || page == nullptr) throw Error(ErrorKind::usage, "null argument");
    const auto json = shallow_json<Json>(report);
    if (!json.is_object()) throw Error(ErrorKind::usage, "a report is a JSON object of a few levels");
    *page = duplicate(page_of(json));
  });
}

int modelflow_optimize_bytes(const void* input, size_t size, const modelflow_options* options, void** output,
                             size_t* output_size, char** report, char** error) {
  return guarded(error, [&] {
    if (input == nullptr || output == nullptr || output_size == nullptr) throw Error(ErrorKind::usage, "null argument");
    Result result =
        run(Model::from_bytes({static_cast<const std::byte*>(input), size}, {}, limits_of(options)), options);
    const std::string bytes = result.model.to_bytes();
    *output = duplicate(bytes);
    *output_size = bytes.size();
    if (report != nullptr) *report = duplicate(result.report.json());
  });
}
