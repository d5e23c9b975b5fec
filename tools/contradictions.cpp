// Options of the command that mean nothing beside each other, and files that must not be the same.
#include "contradictions.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "merging.h"
#include "src/core/data_files.h"
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

/// The name behind all links; of a file that is not there yet, where it would be.
fs::path real_name(const fs::path& file) { return fs::weakly_canonical(fs::absolute(end_of_links(file))); }

/// Hard links have two names that are both real.
bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) || real_name(a) == real_name(b);
}

/// FILE.data and FILE.data.N, where saving puts the weights of FILE.
bool is_data_of(const fs::path& file, const fs::path& model) {
  const std::string name = real_name(file).string(), stem = real_name(model).string() + ".data";
  if (!name.starts_with(stem)) return false;
  const std::string rest = name.substr(stem.size());
  return rest.empty() || (rest[0] == '.' && rest.find_first_not_of("0123456789", 1) == std::string::npos);
}

/// Endings by which the onnx package knows files of text.
bool is_named_as_text(const fs::path& file) {
  static const std::set<fs::path> endings = {".onnxtxt", ".onnxtext", ".textproto", ".prototxt",
                                             ".pbtxt",   ".json",     ".onnxjson"};
  return endings.contains(file.extension());
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
  const fs::path& report = arguments.report_file;
  std::vector<fs::path> models = files_of(arguments);
  if (!arguments.output.empty()) {
    (void)end_of_links(arguments.output);
    refuse_data_files(arguments.output, "-o", models);
    if (is_named_as_text(arguments.output))
      throw Error(ErrorKind::usage, fmt::format("-o '{}' is named as text, and models are written as protobuf: .onnx",
                                                arguments.output.string()));
  }
  if (report.empty()) return;
  (void)end_of_links(report);
  refuse_data_files(report, "--report", models);
  models.push_back(arguments.output);
  for (const fs::path& model : models) {
    std::error_code error;
    if (model.empty() || (model != arguments.output && !fs::is_regular_file(model, error))) continue;
    if (same_file(report, model))
      throw Error(ErrorKind::usage, fmt::format("--report '{}' is the model '{}'", report.string(), model.string()));
    if (is_data_of(report, model))
      throw Error(ErrorKind::usage,
                  fmt::format("--report '{}' is where weights of '{}' lie", report.string(), model.string()));
  }
}

}  // namespace modelflow::tools
