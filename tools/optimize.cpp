// The command `optimize model.onnx -o fast.onnx`: arguments in, library calls, report out.
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <optional>

#include "modelflow/modelflow.h"
#include "optimize_options.h"
#include "report_file.h"
#include "supervised.h"
#include "terminal.h"

namespace {

using namespace modelflow;
using namespace modelflow::tools;

volatile std::sig_atomic_t interrupted = 0;
struct Interrupted {};

// The first Ctrl-C ends the run at the next step, so that temporary files go; the second one kills.
void on_interrupt(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
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

std::string written(const Arguments& arguments) {
  return arguments.output.empty() ? "" : fmt::format("written: {}\n", arguments.output.string());
}

std::string result_text(const Arguments& arguments, const Report& report) {
  if (arguments.json) return report.json() + "\n";
  if (arguments.quiet) return "";
  return report.text() + (arguments.explain ? "\n" + report.explain() : "") + written(arguments);
}

/// The report first: when there is no room for it, the old model stays as well.
void save(const Arguments& arguments, const Result& result) {
  std::optional<ReportFile> report;
  if (!arguments.report_file.empty()) report.emplace(arguments.report_file, result.report.json());
  if (!arguments.output.empty()) result.model.save(arguments.output, arguments.write);
  if (report) report->replace();
}

int run(Arguments& arguments, Step& at) {
  if (arguments.list) {
    print(list_of(arguments.options));
    return 0;
  }
  Progress progress(arguments.quiet || arguments.json);
  Model model = Model::load(arguments.input);
  if (arguments.inline_only) {
    inline_functions(std::move(model)).save(arguments.output, arguments.write);
    if (!arguments.quiet) print(written(arguments));
    return 0;
  }
  arguments.options.progress = [&](std::string_view step, double done) {
    if (interrupted) throw Interrupted{};
    at.set(step);
    progress.show(step, done);
  };
  Result result = optimize(std::move(model), arguments.options);
  progress.clear();
  result.report.input = arguments.input.string();
  save(arguments, result);
  print(result_text(arguments, result.report));
  return 0;
}

/// Every failure as one line and the exit code of its class.
int guarded(Arguments& arguments, Step& at) {
  try {
    return run(arguments, at);
  } catch (const Interrupted&) {
    fmt::print(stderr, "optimize: interrupted; nothing written\n");
    return 130;
  } catch (const Error& error) {
    fmt::print(stderr, "optimize: {}\n", error.what());
    return static_cast<int>(error.kind());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "optimize: out of memory\n");
    return static_cast<int>(ErrorKind::limit);
  } catch (const std::exception& error) {
    fmt::print(stderr, "optimize: internal error: {}\n", error.what());
    return static_cast<int>(ErrorKind::internal);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  try {
    if (auto code = parse_arguments(argc, argv, arguments)) return *code;
  } catch (const Error& error) {
    fmt::print(stderr, "optimize: {}\n", error.what());
    return static_cast<int>(error.kind());
  }
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  return supervised([&](Step& at) { return guarded(arguments, at); });
}
