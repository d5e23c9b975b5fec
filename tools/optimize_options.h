// The command line of `optimize`.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "modelflow/modelflow.h"

namespace modelflow::tools {

/// What the command line asked for, checked as far as that needs no model.
struct Arguments {
  std::string command;  ///< as a shell would take it
  std::filesystem::path input, output, report_file, inputs;
  WriteOptions write;
  Options options;
  bool explain = false, json = false, quiet = false, list = false, inline_only = false;
};

/// Parses argv; on --help, --version or a usage error prints and returns the exit code instead.
std::optional<int> parse_arguments(int argc, char** argv, Arguments& arguments);

}  // namespace modelflow::tools
