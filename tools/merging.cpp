// Models read, joined and checked for `optimize --merge` and front ends.
#include "merging.h"

#include "modelflow/compose.h"
#include "modelflow/front_end.h"

namespace modelflow::tools {
namespace {

namespace fs = std::filesystem;

/// A model as --merge takes it, FILE or NAME=FILE, without its name.
fs::path file_of(const fs::path& given) {
  const std::string text = given.string();
  const std::size_t equals = text.find('=');
  std::error_code error;
  return equals == std::string::npos || equals == 0 || fs::exists(given, error) ? given
                                                                                : fs::path(text.substr(equals + 1));
}

/// "NAME=FILE", or a file that is called by its stem.
Part load_part(const fs::path& given, const Limits& limits) {
  return {part_name(given), Model::load(file_of(given), limits)};
}

/// Whether there is one; it stands before the models.
bool begin_with_front_end(const Arguments& arguments, std::vector<Part>& parts) {
  const std::string &sound = arguments.audio_front_end, &image = arguments.image_front_end;
  if (!sound.empty()) parts.push_back({kFront, audio_front_end(parse_audio_features(sound))});
  if (!image.empty()) parts.push_back({kFront, image_front_end(parse_image_features(image))});
  return !parts.empty();
}

}  // namespace

std::vector<fs::path> files_of(const Arguments& arguments) {
  std::vector<fs::path> files;
  for (const fs::path& given : arguments.models) files.push_back(arguments.merge ? file_of(given) : given);
  return files;
}

std::string part_name(const fs::path& given) {
  const std::string text = given.string();
  return file_of(given) == given ? given.stem().string() : text.substr(0, text.find('='));
}

Model load_merged(const Arguments& arguments, Progress& progress, std::vector<std::string>& notes) {
  std::vector<Part> parts;
  const bool has_front = begin_with_front_end(arguments, parts);
  const std::vector<fs::path> files = arguments.merge ? arguments.models : std::vector<fs::path>{arguments.input};
  for (const fs::path& file : files)
    if (!file.empty()) parts.push_back(load_part(file, arguments.options.limits));
  if (parts.size() == 1 && !arguments.merge) return std::move(parts.front().model);
  std::vector<Edge> edges;
  for (const std::string& text : arguments.maps) edges.push_back(parse_edge(text, parts));
  if (edges.empty() && has_front)
    edges.push_back(fitting_edge(parts[0], parts[0].model.graph().outputs().front()->name(), parts[1]));
  Merged merged = merge(parts, edges);
  if (arguments.explain && !arguments.json && !arguments.quiet) print(merged.signature() + "\n");
  for (const std::string& note : merged.notes) notes.push_back(note);
  if (arguments.options.verify) {
    progress.show("compare with the parts in turn", 0);
    notes.push_back(check_merge(parts, merged, arguments.options).text());
  }
  return std::move(merged.model);
}

}  // namespace modelflow::tools
