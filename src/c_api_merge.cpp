// Merging, front ends and bodies written out through the C interface.
#include <algorithm>
#include <filesystem>

#include "modelflow/compose.h"
#include "modelflow/front_end.h"
#include "src/c_api_handle.h"
#include "src/input_shape.h"
#include "src/request.h"

namespace modelflow {
namespace {

/// Throws Error(usage) where one of them is null.
std::vector<std::string> texts(const char* const* given, size_t count) {
  const auto is_there = [](const char* text) { return text != nullptr; };
  if (count > 0 && (given == nullptr || !std::all_of(given, given + count, is_there)))
    throw Error(ErrorKind::usage, "null argument");
  return {given, given + count};
}

std::vector<Part> load_parts(const std::vector<std::string>& files, std::vector<std::string> names,
                             const Limits& limits) {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < files.size(); ++i)
    parts.push_back({names.empty() ? std::filesystem::path(files[i]).stem().string() : std::move(names[i]),
                     Model::load(files[i], limits)});
  return parts;
}

/// What came of running the parts beside the whole, a line; nothing where that is not asked for.
std::string compared(const std::vector<Part>& parts, const Merged& merged, const modelflow_options* handle) {
  if (handle != nullptr && !handle->options.verify) return "";
  const std::vector<std::string> names = input_names(merged.model);
  Options options = handle != nullptr ? with_callbacks(*handle, names) : Options{};
  check_input_shapes(merged.model, options.input_shapes);
  watch_limits(options);
  return check_merge(parts, merged, options).text() + "\n";
}

std::string merge_files(const std::vector<Part>& parts, const std::vector<std::string>& edges,
                        const std::filesystem::path& output, const modelflow_options* handle) {
  std::vector<Edge> parsed;
  for (const std::string& edge : edges) parsed.push_back(parse_edge(edge, parts));
  const Merged merged = merge(parts, parsed);
  std::string signature = merged.signature();
  for (const std::string& note : merged.notes) signature += note + "\n";
  signature += compared(parts, merged, handle);
  save(merged.model, output, handle);
  return signature;
}

}  // namespace
}  // namespace modelflow

using namespace modelflow;  // NOLINT: the C functions below

int modelflow_merge_files(const char* const* files, const char* const* names, size_t count, const char* const* edges,
                          size_t edge_count, const char* output, const modelflow_options* options, char** signature,
                          char** error) {
  return guarded(error, [&] {
    if (files == nullptr || output == nullptr) throw Error(ErrorKind::usage, "null argument");
    const std::vector<std::string> models = texts(files, count), ties = texts(edges, edge_count);
    const std::vector<std::string> called = texts(names, names != nullptr ? count : 0);
    const auto held = checked_files({models.begin(), models.end()}, output);
    const std::string text = merge_files(load_parts(models, called, limits_of(options)), ties, output, options);
    if (signature != nullptr) *signature = duplicate(text);
  });
}

int modelflow_inline_file(const char* input, const char* output, const modelflow_options* options, char** error) {
  return guarded(error, [&] {
    if (input == nullptr || output == nullptr) throw Error(ErrorKind::usage, "null argument");
    const auto held = checked_files({input}, output);
    save(inline_functions(Model::load(input, limits_of(options))), output, options);
  });
}

int modelflow_audio_front_end(const char* features, const char* output, char** error) {
  return guarded(error, [&] {
    if (features == nullptr || output == nullptr) throw Error(ErrorKind::usage, "null argument");
    audio_front_end(parse_audio_features(features)).save(output);
  });
}

int modelflow_image_front_end(const char* features, const char* output, char** error) {
  return guarded(error, [&] {
    if (features == nullptr || output == nullptr) throw Error(ErrorKind::usage, "null argument");
    image_front_end(parse_image_features(features)).save(output);
  });
}
