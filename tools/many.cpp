// Many models with one table of what became of them.
#include "many.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "contradictions.h"
#include "src/core/new_file.h"
#include "src/core/printable.h"
#include "src/core/stopwatch.h"
#include "stop_signals.h"
#include "terminal.h"

namespace modelflow::tools {
namespace {

namespace fs = std::filesystem;

/// What the process of one model tells the one that waits for it.
struct Told {
  std::size_t nodes_before = 0, nodes_after = 0;
  double stock_ms = 0, optimized_ms = 0, speedup = 0;
  std::optional<bool> verified;  ///< nobody asked: functions were only written out
};

struct Row {
  std::string model, output;
  int code = 0;
  double seconds = 0;
  Told told;
};

/// A model and its place below the folder of results.
struct Found {
  fs::path model, place;
};

void add_models_below(const fs::path& folder, const fs::path& output, std::vector<Found>& all) {
  const std::size_t before = all.size();
  std::error_code error, ignored;  // the results need not be there yet, and links may lead nowhere
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->is_directory(ignored) && fs::equivalent(at->path(), output, ignored)) at.disable_recursion_pending();
    if (at->path().extension() == ".onnx" && at->is_regular_file(ignored))
      all.push_back({at->path(), at->path().lexically_relative(folder)});
  }
  if (error)
    throw Error(ErrorKind::invalid_input,
                fmt::format("cannot read the folder '{}': {}", folder.string(), error.message()));
  if (all.size() == before)
    throw Error(ErrorKind::usage, fmt::format("there is no .onnx file in the folder '{}'", folder.string()));
  std::ranges::sort(all.begin() + static_cast<std::ptrdiff_t>(before), all.end(), {}, &Found::model);
}

/// In the order in which they were given; a model by itself keeps its name.
std::vector<Found> models_of(const Arguments& arguments) {
  std::vector<Found> all;
  std::error_code error;
  for (const fs::path& given : arguments.models)
    if (fs::is_directory(given, error))
      add_models_below(given, arguments.output, all);
    else
      all.push_back({given, given.filename()});
  return all;
}

void check(const Arguments& arguments) {
  std::error_code error;
  if (arguments.output.empty() && arguments.triton.empty())
    throw Error(ErrorKind::usage, "no output given; add -o FOLDER for the results");
  for (const fs::path& given : arguments.models)
    if (const fs::path folder = fs::is_directory(given, error) ? given : fs::absolute(given, error).parent_path();
        fs::equivalent(folder, arguments.output, error))
      throw Error(ErrorKind::usage, "the results would take the place of the models: give another folder with -o");
  if (arguments.output.extension() == ".onnx" && !fs::is_directory(arguments.output, error))
    throw Error(ErrorKind::usage,
                fmt::format("several models need a folder for the results, and '{}' is named as a model",
                            arguments.output.string()));
  for (const fs::path& folder : {arguments.output, arguments.report_file})
    if (!folder.empty() && fs::exists(folder, error) && !fs::is_directory(folder, error))
      throw Error(ErrorKind::usage,
                  fmt::format("'{}' is no folder, and there is more than one model", folder.string()));
  if (arguments.explain || !arguments.inputs.empty() || !arguments.triton.empty())
    throw Error(ErrorKind::usage, "--explain, --inputs and --triton are for one model, not for several");
}

std::string text_of(const Row& row) {
  const Told& told = row.told;
  const std::string name = row.model.size() <= 44 ? row.model : "..." + row.model.substr(row.model.size() - 41);
  if (row.code != 0) return fmt::format("{:<44} failed, exit code {}\n", printable(name), row.code);
  const std::string nodes = fmt::format("{} -> {}", told.nodes_before, told.nodes_after);
  const std::string times = told.optimized_ms > 0 ? fmt::format("{:>10.3f} {:>10.3f} {:>7.2f}x", told.stock_ms,
                                                                told.optimized_ms, told.speedup)
                                                  : fmt::format("{:>10} {:>10} {:>8}", "-", "-", "-");
  const char* const verified = !told.verified ? "-" : *told.verified ? "yes" : "no";
  return fmt::format("{:<44} {:>15} {} {:>9} {:>6.1f} s\n", printable(name), nodes, times, verified, row.seconds);
}

/// Of all models, those too that an interrupt left out.
std::string summary(const std::vector<Row>& rows, std::size_t all) {
  const auto written = std::ranges::count(rows, 0, &Row::code);
  double logs = 0, timed = 0;
  for (const Row& row : rows)
    if (row.code == 0 && row.told.speedup > 0 && row.told.stock_ms > 0) logs += std::log(row.told.speedup), ++timed;
  const std::string mean =
      timed > 0 ? fmt::format(", {:.2f}x in the geometric mean of {:.0f}", std::exp(logs / timed), timed) : "";
  return fmt::format("\n{} of {} models written{}\n", written, all, mean);
}

std::string json_of(const std::vector<Row>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Row& row : rows)
    list.push_back({{"model", row.model},
                    {"output", row.output},
                    {"code", row.code},
                    {"seconds", row.seconds},
                    {"nodes_before", row.told.nodes_before},
                    {"nodes_after", row.told.nodes_after},
                    {"stock_ms", row.told.stock_ms},
                    {"optimized_ms", row.told.optimized_ms},
                    {"speedup", row.told.speedup},
                    {"verified", row.told.verified.value_or(false)}});
  return list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

/// Memory that the process of a model shares with this one.
Told& shared() {
  void* memory = mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw Error(ErrorKind::limit, "out of memory");
  return *new (memory) Told;
}

Arguments for_model(const Arguments& all, const Found& found, Told& told) {
  Arguments one = all;
  one.models = {found.model};
  one.input = found.model;
  one.output = all.output / found.place;
  if (!all.options.reproducer.empty()) one.options.reproducer = all.options.reproducer / found.place;
  if (!all.report_file.empty()) (one.report_file = all.report_file / found.place).replace_extension(".html");
  one.quiet = true;
  one.json = false;
  one.who = "optimize: " + printable(found.model.string());
  one.done = [&told, checked = !all.inline_only](const Report& report) {
    told = {report.before.nodes, report.after.nodes, report.stock_ms,
            report.optimized_ms, report.speedup,     checked ? std::optional(report.verified) : std::nullopt};
  };
  return one;
}

/// What tells files apart whatever they are called; none where there is no file.
std::optional<std::pair<dev_t, ino_t>> identity(const fs::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return std::nullopt;
  return std::pair(info.st_dev, info.st_ino);
}

/// Nothing that is written takes the place of a model, or of something else that is written.
void check_places(const std::vector<Arguments>& runs) {
  std::map<std::pair<dev_t, ino_t>, fs::path> models;
  for (const Arguments& run : runs)
    if (const auto model = identity(run.input)) models.emplace(*model, run.input);
  std::map<fs::path, fs::path> written;
  for (const Arguments& run : runs)
    for (const fs::path& file : {run.output, run.report_file}) {
      if (file.empty()) continue;
      if (const auto [at, fresh] = written.emplace(file, run.input); !fresh)
        throw Error(ErrorKind::usage, fmt::format("the results of '{}' and '{}' would have one name, '{}'",
                                                  at->second.string(), run.input.string(), file.string()));
      const auto there = identity(file);
      if (const auto model = there ? models.find(*there) : models.end(); model != models.end())
        throw Error(ErrorKind::usage, fmt::format("the result of '{}' would take the place of the model '{}'",
                                                  run.input.string(), model->second.string()));
    }
  for (const Arguments& run : runs) refuse_shared_files(run);
}

/// What cannot be written is said before anything runs.
void make_places(const std::vector<Arguments>& runs) {
  for (const Arguments& run : runs)
    for (const fs::path& file : {run.output, run.report_file}) {
      if (file.empty()) continue;
      make_folder(file.parent_path());
      refuse_unwritable(file);
    }
}

void print_row(const Row& row, bool first) {
  if (first)
    print(fmt::format("{:<44} {:>15} {:>10} {:>10} {:>8} {:>9} {:>8}\n", "model", "nodes", "stock ms", "now ms",
                      "speedup", "verified", "took"));
  print(text_of(row));
}

}  // namespace

int optimize_many(const Arguments& arguments, const std::function<int(Arguments&, Step&)>& one) {
  check(arguments);
  const pid_t parent = getpid();
  const bool table = !arguments.json && !arguments.quiet;
  std::vector<Row> rows;
  Told& told = shared();
  const std::vector<Found> all = models_of(arguments);
  std::vector<Arguments> runs;
  for (const Found& found : all) runs.push_back(for_model(arguments, found, told));
  check_places(runs);
  make_places(runs);
  for (std::size_t i = 0; i < all.size() && !stop_asked(); ++i) {
    told = {};
    Arguments& here = runs[i];
    const Stopwatch watch;
    Row row{.model = all[i].place.string(), .output = here.output.string(), .told = {}};
    row.code = supervised(arguments.options.limits, here.who, [&](Step& at) { return one(here, at); });
    if (getpid() != parent) return row.code;  // this is the process of the model
    if (row.code == kInterrupted) break;
    row.seconds = watch.seconds();
    row.told = told;
    if (table) print_row(row, rows.empty());
    rows.push_back(std::move(row));
  }
  if (arguments.json) print(json_of(rows));
  if (table) print(summary(rows, all.size()));
  if (rows.size() < all.size()) return kInterrupted;
  const auto failed = std::ranges::find_if(rows, [](const Row& row) { return row.code != 0; });
  return failed == rows.end() ? 0 : failed->code;
}

}  // namespace modelflow::tools
