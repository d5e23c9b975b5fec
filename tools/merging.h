// Several models of the command line as one.
#pragma once

#include "optimize_options.h"
#include "terminal.h"

namespace modelflow::tools {

inline constexpr const char* kFront = "front";  ///< what --map calls a front end

/// Whether what is optimized is made of several models, or of a front end.
inline bool is_composed(const Arguments& arguments) {
  return arguments.merge || !arguments.audio_front_end.empty() || !arguments.image_front_end.empty();
}

/// The files of the models that are given, --merge's NAME=FILE among them.
std::vector<std::filesystem::path> files_of(const Arguments& arguments);
/// What a model goes by, as --merge takes it, FILE or NAME=FILE.
std::string part_name(const std::filesystem::path& given);

/// Loads the models of --merge, with the front end before them, joins them as --map says and runs the whole beside its
/// parts; prints the signature where --explain asks for reasons. What is to be told of it goes into `notes`.
Model load_merged(const Arguments& arguments, Progress& progress, std::vector<std::string>& notes);

}  // namespace modelflow::tools
