// The command line of `optimize`.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "modelflow/modelflow.h"

namespace modelflow::tools {

/// What the command line asked for, checked as far as that needs no model.
struct Arguments {
  std::string command;                           ///< as a shell would take it
  std::string who = "optimize";                  ///< who speaks on stderr
  std::function<void(const Report&)> done = {};  ///< called when everything is written
  std::vector<std::filesystem::path> models;     ///< as given: `input` is the first of them, or the one that is at work
  std::filesystem::path input, output, report_file, inputs, calibration;
  bool merge = false;                            ///< `models` become one
  std::string audio_front_end, image_front_end;  ///< features in front of the model, or alone; one at most
  std::vector<std::string> maps, bind;           ///< edges between models, inputs that become constants: as given
  std::filesystem::path triton, triton_root;  ///< a repository to write, and where the server finds it (empty: there)
  WriteOptions write;
  Options options;
  bool explain = false, json = false, quiet = false, list = false, inline_only = false;
};

/// Whether there are several models, or a folder of them.
bool are_many(const Arguments& arguments);

/// Parses argv; on --help, --version or a usage error prints and returns the exit code instead.
std::optional<int> parse_arguments(int argc, char** argv, Arguments& arguments);

}  // namespace modelflow::tools
