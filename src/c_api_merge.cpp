// Merging and front ends through the C interface.
#include <filesystem>

#include "modelflow/compose.h"
#include "modelflow/front_end.h"
#include "src/c_api_handle.h"
#include "src/core/data_files.h"
#include "src/core/new_file.h"

namespace modelflow {
namespace {

std::string merge_files(const std::vector<Part>& parts, const std::vector<std::string>& edges, bool verify,
                        const std::filesystem::path& output) {
  std::vector<Edge> parsed;
  for (const std::string& edge : edges) parsed.push_back(parse_edge(edge, parts));
  const Merged merged = merge(parts, parsed);
  std::string signature = merged.signature();
  for (const std::string& note : merged.notes) signature += note + "\n";
  if (verify) signature += check_merge(parts, merged, {}).text() + "\n";
  merged.model.save(output);
  return signature;
}

}  // namespace
}  // namespace modelflow

using namespace modelflow;  // NOLINT: the C functions below

int modelflow_merge_files(const char* const* files, const char* const* names, size_t count, const char* const* edges,
                          size_t edge_count, int verify, const char* output, char** signature, char** error) {
  return guarded(error, [&] {
    if (files == nullptr || output == nullptr || (edges == nullptr && edge_count > 0))
      throw Error(ErrorKind::usage, "null argument");
    refuse_data_files(output, "output", {files, files + count});
    refuse_unwritable(output);
    const auto held = held_data_files({files, files + count});
    std::vector<Part> parts;
    for (size_t i = 0; i < count; ++i)
      parts.push_back({names ? names[i] : std::filesystem::path(files[i]).stem().string(), Model::load(files[i])});
    const std::vector<std::string> texts(edges, edges + edge_count);
    const std::string text = merge_files(parts, texts, verify != 0, output);
    if (signature != nullptr) *signature = duplicate(text);
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
