// The command `optimize model.onnx -o fast.onnx`: arguments in, library calls, report out.
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "freed_memory.h"
#include "many.h"
#include "merging.h"
#include "modelflow/compose.h"
#include "modelflow/data.h"
#include "modelflow/modelflow.h"
#include "optimize_options.h"
#include "src/core/data_files.h"
#include "src/core/new_file.h"
#include "src/core/once.h"
#include "src/core/printable.h"
#include "stop_signals.h"
#include "supervised.h"
#include "terminal.h"
#include "triton.h"

namespace {

using namespace modelflow;
using namespace modelflow::tools;

struct Interrupted {};

void stop_if_interrupted() {
  if (stop_asked()) throw Interrupted{};
}

std::string list_of(const Options& options) {
  std::string text;
  for (const Stage& stage : stages(options)) {
    text += fmt::format("{}{}\n", stage.name, stage.repeat ? " (repeated until nothing changes)" : "");
    for (const Pass& pass : stage.passes) {
      text += fmt::format("  {:<28} {}\n", pass.name, pass.doc);
      for (const Rule& rule : pass.rules) text += fmt::format("    {:<26} {}\n", rule.name, rule.doc);
    }
  }
  return text;
}

std::string json_list_of(const Options& options) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Stage& stage : stages(options)) {
    nlohmann::ordered_json passes = nlohmann::ordered_json::array();
    for (const Pass& pass : stage.passes) {
      nlohmann::ordered_json rules = nlohmann::ordered_json::array();
      for (const Rule& rule : pass.rules) rules.push_back({{"name", rule.name}, {"doc", rule.doc}});
      passes.push_back({{"name", pass.name}, {"doc", pass.doc}, {"rules", rules}});
    }
    list.push_back({{"name", stage.name}, {"repeat", stage.repeat}, {"passes", passes}});
  }
  return list.dump(2) + "\n";
}

std::string written(const Arguments& arguments) {
  return arguments.output.empty() ? "" : printable_line("written: " + arguments.output.string());
}

std::string result_text(const Arguments& arguments, const Report& report) {
  if (arguments.json) return report.json() + "\n";
  if (arguments.quiet) return "";
  return report.text() + (arguments.explain ? "\n" + report.explain() : "") + written(arguments);
}

void save_model(const Arguments& arguments, const Model& model, Step& at) {
  if (arguments.output.empty()) return;
  stop_if_interrupted();
  if (!arguments.triton.empty()) make_folder(arguments.output.parent_path());
  at.set(kSaving);
  model.save(arguments.output, arguments.write);
  at.set(kWritten);
}

/// What comes behind the model; where it fails, the line must not sound as if the old model were there.
void behind_the_model(const Arguments& arguments, const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    if (arguments.output.empty()) throw;
    throw error.within(fmt::format("the model is written to '{}', but", arguments.output.string()));
  }
}

bool is_page(const std::filesystem::path& file) { return file.extension() == ".html" || file.extension() == ".htm"; }

/// The report first: when there is no room for it, the old model stays as well.
void save(const Arguments& arguments, const Result& result, Step& at) {
  std::optional<NewFile> report;
  if (!arguments.report_file.empty()) {
    const std::string text = is_page(arguments.report_file) ? result.report.html() : result.report.json();
    report.emplace(end_of_links(arguments.report_file));
    report->write(text.data(), text.size(), 0);
  }
  save_model(arguments, result.model, at);
  if (report) behind_the_model(arguments, [&] { report->replace(); });
  if (!arguments.triton.empty()) behind_the_model(arguments, [&] { complete_repository(arguments, at); });
}

/// A model that nothing was compared with is not written in silence. O0 changes nothing, and --no-verify asks for it.
void warn_if_unverified(const Arguments& arguments, const Report& report) {
  const Options& options = arguments.options;
  if (report.verified || arguments.output.empty() || !options.verify || options.level == Level::O0) return;
  std::string why = "not verified";
  for (const std::string& note : report.notes)
    if (note.starts_with(why + ": ")) why = note;
  fmt::print(stderr, "{}: warning: {}\n", arguments.who, printable(why));
}

void warn_of_functions(const Arguments& arguments, const Model& model) {
  std::string names;
  for (const Function& function : model.functions)
    names += (names.empty() ? "" : ", ") + function.domain + ":" + function.name;
  if (!names.empty())
    fmt::print(stderr, "{}: warning: functions for another opset than the model's are not written out: {}\n",
               arguments.who, printable(names));
}

/// Those of branches and bodies too.
std::size_t nodes_in(const Graph& graph) {
  std::size_t count = graph.nodes().size();
  for (const auto& node : graph.nodes())
    for (const Graph* inner : node->subgraphs()) count += nodes_in(*inner);
  return count;
}

/// The model, or those that became one.
std::string named(const Arguments& arguments) {
  if (!is_composed(arguments)) return arguments.input.string();
  std::string all = arguments.audio_front_end + arguments.image_front_end;
  for (const std::filesystem::path& model : arguments.models) all += (all.empty() ? "" : " + ") + model.string();
  return all;
}

int run(Arguments& arguments, Step& at) {
  if (arguments.list) {
    print(arguments.json ? json_list_of(arguments.options) : list_of(arguments.options));
    return 0;
  }
  if (!arguments.triton.empty()) arguments.output = place_in_repository(arguments);
  Progress progress(arguments.quiet || arguments.json);
  if (!arguments.inputs.empty()) arguments.options.inputs = read_feeds(arguments.inputs);
  std::vector<std::string> notes;
  const auto held = held_data_files(files_of(arguments));
  Model model = is_composed(arguments) ? load_merged(arguments, progress, notes)
                                       : Model::load(arguments.input, arguments.options.limits);
  keep_freed_memory(model);
  arguments.options.bind.clear();
  for (const std::string& text : arguments.bind) add_once(arguments.options.bind, parse_bind(model, text), "--bind");
  stop_if_interrupted();
  if (arguments.inline_only) {
    Report report;
    report.before.nodes = nodes_in(model.graph());
    model = inline_functions(std::move(model));
    report.after.nodes = nodes_in(model.graph());
    save_model(arguments, model, at);
    warn_of_functions(arguments, model);
    if (arguments.done) arguments.done(report);
    if (!arguments.quiet) behind_the_model(arguments, [&] { print(written(arguments)); });
    return 0;
  }
  arguments.options.progress = [&](std::string_view step, double done) {
    stop_if_interrupted();
    at.set(step);
    progress.show(step, done);
  };
  Result result = optimize(std::move(model), arguments.options);
  progress.clear();
  result.report.input = named(arguments);
  result.report.notes.insert(result.report.notes.begin(), notes.begin(), notes.end());
  result.report.command = arguments.command;
  save(arguments, result, at);
  warn_if_unverified(arguments, result.report);
  if (arguments.done) arguments.done(result.report);
  behind_the_model(arguments, [&] { print(result_text(arguments, result.report)); });
  return 0;
}

/// What `work` gives; every failure as one line and the exit code of its class.
int told(const std::string& who, const std::function<int()>& work) {
  try {
    return work();
  } catch (const Interrupted&) {
    return kInterrupted;
  } catch (const Error& error) {
    if (stop_asked()) return kInterrupted;  // as a --score command that the same Ctrl-C ended
    fmt::print(stderr, "{}: {}\n", who, error.what());
    return static_cast<int>(error.kind());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "{}: out of memory\n", who);
    return static_cast<int>(ErrorKind::limit);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: internal error: {}\n", who, error.what());
    return static_cast<int>(ErrorKind::internal);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return told("optimize", [&] {
    std::signal(SIGCHLD, SIG_DFL);  // where the caller ignores it, nobody could be told how a child ended
    Arguments arguments;
    if (auto code = parse_arguments(argc, argv, arguments)) return *code;
    catch_stop_signals();
    std::signal(SIGXFSZ, SIG_IGN);            // a file beyond the limit of this process is an error like any other
    setenv("ORT_DISABLE_TELEMETRY", "1", 0);  // newer runtimes keep a database of their use, and send it
    const auto one = [](Arguments& model, Step& at) { return told(model.who, [&] { return run(model, at); }); };
    if (are_many(arguments)) return optimize_many(arguments, one);
    return supervised(arguments.options.limits, arguments.who, [&](Step& at) { return one(arguments, at); });
  });
}
