// Options of the command that mean nothing beside each other, and files that must not be the same.
#include "contradictions.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "merging.h"
#include "modelflow/runtime.h"
#include "read_files.h"
#include "src/core/new_file.h"

namespace modelflow::tools {
namespace {

namespace fs = std::filesystem;

/// An option that makes another command of this one, and those that still mean something beside it.
struct Mode {
  const char *option, *what;
  std::vector<std::string> beside;
};

const std::vector<Mode>& modes() {
  static const std::vector<Mode> all = {
      {"--inline",
       "only writes functions out",
       {"MODELS", "--output", "--external-data", "--quiet", "--timeout", "--max-memory", "--max-nodes", "--max-depth"}},
      {"--list", "only prints names", {"--level", "--portable", "--target", "--precision", "--calibration", "--json"}},
  };
  return all;
}

/// Endings by which the onnx package knows files of text.
bool is_named_as_text(const fs::path& file) {
  static const std::set<fs::path> endings = {".onnxtxt", ".onnxtext", ".textproto", ".prototxt",
                                             ".pbtxt",   ".json",     ".onnxjson"};
  return endings.contains(file.extension());
}

ReadFiles read_by(const Arguments& arguments) {
  ReadFiles read{.models = files_of(arguments),
                 .data = {arguments.inputs, arguments.calibration, arguments.audio_front_end, arguments.image_front_end,
                          plugin_path()}};
  read.data.insert(read.data.end(), arguments.bind.begin(), arguments.bind.end());
  const auto& libraries = arguments.options.custom_ops;
  read.data.insert(read.data.end(), libraries.begin(), libraries.end());
  return read;
}

}  // namespace

void refuse_contradictions(const CLI::App& app) {
  const auto given = [&](const std::string& name) { return app.get_option(name)->count() > 0; };
  for (const Mode& mode : modes()) {
    if (!given(mode.option)) continue;
    for (const CLI::Option* option : app.get_options()) {
      const std::string name = option->get_name();
      if (option->count() == 0 || name == mode.option) continue;
      if (std::find(mode.beside.begin(), mode.beside.end(), name) == mode.beside.end())
        throw Error(ErrorKind::usage, fmt::format("{} {}: it does not go with {}", mode.option, mode.what, name));
    }
  }
  const std::string level = given("--level") ? app.get_option("--level")->results().back() : "O1";
  if (given("--portable") && level.back() != '1')
    throw Error(ErrorKind::usage, fmt::format("--portable is --level O1: it does not go with --level {}", level));
}

void refuse_shared_files(const Arguments& arguments) {
  const fs::path &report = arguments.report_file, &output = arguments.output;
  const ReadFiles read = read_by(arguments);
  if (!output.empty()) {
    (void)end_of_links(output);
    refuse_to_replace_data(output, "-o", read);
    if (is_named_as_text(output))
      throw Error(ErrorKind::usage,
                  fmt::format("-o '{}' is named as text, and models are written as protobuf: .onnx", output.string()));
  }
  if (report.empty()) return;
  (void)end_of_links(report);
  refuse_to_replace(report, "--report", read, {output});
}

}  // namespace modelflow::tools
