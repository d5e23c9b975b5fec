// The command `optimize model.onnx -o fast.onnx`: arguments in, library calls, report out.
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <fstream>

#include "modelflow/modelflow.h"
#include "optimize_options.h"
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

void print_list(const Options& options) {
  for (const Stage& stage : stages(options)) {
    fmt::print("{}{}\n", stage.name, stage.repeat ? " (repeated until nothing changes)" : "");
    for (const Pass& pass : stage.passes) {
      fmt::print("  {:<28} {}\n", pass.name, pass.doc);
      for (const Rule& rule : pass.rules) fmt::print("    {:<26} {}\n", rule.name, rule.doc);
    }
  }
}

void write_report(const std::filesystem::path& file, const std::string& json) {
  std::ofstream out(file);
  out << json << '\n';
  if (!out.flush()) throw Error(ErrorKind::output, fmt::format("cannot write the report to '{}'", file.string()));
}

void print_result(const Arguments& arguments, const Report& report) {
  if (arguments.json) fmt::print("{}\n", report.json());
  if (arguments.quiet || arguments.json) return;
  fmt::print("{}", report.text());
  if (arguments.explain) fmt::print("\n{}", report.explain());
  if (!arguments.output.empty()) fmt::print("written: {}\n", arguments.output.string());
}

int run(Arguments& arguments) {
  if (arguments.list) {
    print_list(arguments.options);
    return 0;
  }
  Progress progress(arguments.quiet || arguments.json);
  Model model = Model::load(arguments.input);
  if (arguments.inline_only) {
    inline_functions(std::move(model)).save(arguments.output, arguments.write);
    if (!arguments.quiet) fmt::print("written: {}\n", arguments.output.string());
    return 0;
  }
  arguments.options.progress = [&progress](std::string_view step, double done) {
    if (interrupted) throw Interrupted{};
    progress.show(step, done);
  };
  Result result = optimize(std::move(model), arguments.options);
  progress.clear();
  result.report.input = arguments.input.string();
  if (!arguments.output.empty()) result.model.save(arguments.output, arguments.write);
  if (!arguments.report_file.empty()) write_report(arguments.report_file, result.report.json());
  print_result(arguments, result.report);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  try {
    if (auto code = parse_arguments(argc, argv, arguments)) return *code;
    std::signal(SIGINT, on_interrupt);
    std::signal(SIGTERM, on_interrupt);
    return run(arguments);
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
