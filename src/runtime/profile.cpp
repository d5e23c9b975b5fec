// Profiles that ONNX Runtime writes, read.
#include "src/runtime/profile.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "modelflow/error.h"
#include "src/core/median.h"

namespace modelflow {

namespace {

/// [{"float": [1, 3]}, ...]
std::vector<Dims> extents(const nlohmann::json& args, const char* name) {
  std::vector<Dims> all;
  if (!args.contains(name)) return all;
  for (const nlohmann::json& operand : args[name])
    for (const nlohmann::json& dims : operand) all.push_back(dims.get<Dims>());
  return all;
}

}  // namespace

std::vector<NodeTime> read_profile(const std::filesystem::path& file) {
  std::ifstream stream(file);
  const nlohmann::json events = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!events.is_array())
    throw Error(ErrorKind::unsupported, "ONNX Runtime's profile is no JSON array").within(file.string());
  constexpr std::string_view suffix = "_kernel_time";
  std::map<std::string, NodeTime> times;
  std::map<std::string, std::vector<double>> seconds;  // of each run
  std::size_t runs = 0;
  for (const nlohmann::json& event : events) {
    std::string name = event.value("name", "");
    if (name == "model_run") ++runs;
    if (!name.ends_with(suffix)) continue;
    name.resize(name.size() - suffix.size());
    NodeTime& time = times[name];
    time.name = name;
    if (event.contains("args")) {
      time.op = event["args"].value("op_name", "");
      time.inputs = extents(event["args"], "input_type_shape");
      time.outputs = extents(event["args"], "output_type_shape");
    }
    std::vector<double>& of_runs = seconds[name];
    of_runs.resize(runs + 1);
    of_runs.back() += event.value("dur", 0.0) * 1e-6;
    ++time.calls;
  }
  std::vector<NodeTime> sorted;
  for (auto& [name, time] : times) {
    seconds[name].resize(std::max<std::size_t>(runs, 1));
    time.seconds = median(std::move(seconds[name]));
    sorted.push_back(std::move(time));
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return sorted;
}

}  // namespace modelflow
