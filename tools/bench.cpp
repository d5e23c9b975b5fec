// `modelflow-bench model.onnx`: how fast a model runs in ONNX Runtime with and without the plugin, and against others.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "bench_kernels.h"
#include "bench_page.h"
#include "bench_prediction.h"
#include "bench_report.h"
#include "bench_streams.h"
#include "modelflow/data.h"
#include "modelflow/modelflow.h"
#include "read_files.h"
#include "self_description.h"
#include "src/core/median.h"
#include "src/core/new_file.h"
#include "src/core/stopwatch.h"
#include "src/measure/sides.h"
#include "src/measure/timing.h"
#include "src/runtime/profile.h"
#include "terminal.h"

namespace {

using namespace modelflow;
using namespace modelflow::tools;

struct Settings {
  std::string model, plugin, inputs, page, trace;
  std::vector<std::string> versus, shapes, custom_ops;
  int threads = 0, rounds = 10;
  double block = 0.3, warmup = 0.2;
  std::string op, command, streams, predict, predict_in;
  bool profile = false, json = false, no_plugin = false, kernels = false;
};

bool has_fused_ops(const Model& model) {
  if (model.opsets.contains(std::string(kDomain))) return true;
  for (const Function& function : model.functions)
    if (function.domain == kDomain) return true;
  return false;
}

Options options_of(const Settings& settings) {
  Options options;
  for (const std::string& text : settings.shapes) options.input_shapes.insert(parse_input_shape(text));
  return options;
}

Feeds feeds_of(const Settings& settings, const Options& options, const Model& model, Session& session) {
  if (!settings.inputs.empty()) return read_feeds(settings.inputs).front();
  try {
    return typical_feeds(session, model, options);
  } catch (const Error& error) {
    if (!settings.shapes.empty() || error.kind() == ErrorKind::usage) throw;
    throw Error(error.kind(), fmt::format("{}; no made-up inputs fit: give --inputs or --input-shapes", error.what()));
  }
}

std::filesystem::path plugin_of(const Settings& settings) {
  std::filesystem::path plugin = settings.plugin.empty() ? plugin_path() : std::filesystem::path(settings.plugin);
  if (plugin.empty()) throw Error(ErrorKind::usage, "libmodelflow_ort.so was not found; name it with --plugin");
  return plugin;
}

std::unique_ptr<Session> load(Runtime& runtime, Side& side, const Settings& settings, bool profile) {
  SessionOptions options;
  options.threads = settings.threads;
  options.profile = profile;
  if (side.plugin) options.plugin = plugin_of(settings);
  const Stopwatch watch;
  auto session = runtime.load(side.model, options);
  side.load_seconds = watch.seconds();
  return session;
}

void run_block(Session& session, const Feeds& feeds, double seconds, Side& side) {
  std::vector<double> block;
  const Stopwatch watch;
  while (block.size() < 3 || watch.seconds() < seconds) block.push_back(session.timed_run(feeds));
  side.latencies.insert(side.latencies.end(), block.begin(), block.end());
  side.medians.push_back(median(std::move(block)));
}

// Blocks in the order A B B A so that drift of the machine hits every side alike; a pause lets idle threads park.
void measure(std::vector<Side>& sides, std::vector<std::unique_ptr<Session>>& sessions, const Feeds& feeds,
             const Settings& settings) {
  for (auto& session : sessions)
    for (const Stopwatch watch; watch.seconds() < settings.warmup;) session->timed_run(feeds);
  for (int round = 0; round < settings.rounds; ++round)
    for (std::size_t i = 0; i < sides.size(); ++i) {
      const std::size_t side = round % 2 == 0 ? i : sides.size() - 1 - i;
      std::this_thread::sleep_for(std::chrono::milliseconds(15));
      run_block(*sessions[side], feeds, settings.block, sides[side]);
    }
}

void take_profile(Session& session, Side& side) {
  const std::filesystem::path file = end_profile(session);
  side.nodes = read_profile(file);
  std::ostringstream events;
  events << std::ifstream(file).rdbuf();
  side.events = events.str();
  std::filesystem::remove(file);
}

void take_memory(Runtime& runtime, std::vector<Side>& sides, const Feeds& feeds, const Settings& settings) {
  for (Side& side : sides) {
    const double load_seconds = side.load_seconds;
    side.memory_bytes = growth_of_memory([&] {
      const auto session = load(runtime, side, settings, false);
      for (int i = 0; i < 2; ++i) session->timed_run(feeds);
    });
    side.load_seconds = load_seconds;
  }
}

void write(const std::string& file, const std::string& text) {
  if (file.empty()) return;
  NewFile out(end_of_links(file));
  out.write(text.data(), text.size(), 0);
  out.replace();
}

void profile(Runtime& runtime, std::vector<Side>& sides, const Feeds& feeds, const Settings& settings) {
  for (Side& side : sides) {
    const double load_seconds = side.load_seconds;
    auto session = load(runtime, side, settings, true);
    side.load_seconds = load_seconds;
    for (int i = 0; i < 20; ++i) session->timed_run(feeds);
    take_profile(*session, side);
    const Model model = Model::load(side.model);
    std::map<std::string, const Node*> by_name;
    for (const auto& node : model.graph().nodes()) by_name[node->name] = node.get();
    for (const NodeTime& time : side.nodes) {
      const auto found = by_name.find(time.name);
      side.work.push_back(work_of(time, found == by_name.end() ? nullptr : found->second));
    }
  }
}

std::vector<Side> sides_of(const Settings& settings, const Model& model) {
  std::vector<Side> sides;
  for (const std::string& other : settings.versus) {
    Side side;
    side.name = side.model = other;
    (void)Model::load(other);  // what is no model is said as of the first one
    sides.push_back(side);
  }
  Side plain;
  plain.name = "without plugin";
  plain.model = settings.model;
  sides.push_back(plain);
  if (settings.no_plugin || !has_fused_ops(model)) return sides;
  plain.name = "with plugin";
  plain.plugin = true;
  sides.push_back(plain);
  return sides;
}

int cores() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

int run_kernels(Runtime& runtime, const Settings& settings) {
  KernelSettings kernels{.model = settings.model, .op = settings.op, .shapes = options_of(settings).input_shapes};
  kernels.threads = settings.threads > 0 ? settings.threads : cores();
  kernels.seconds = settings.block;
  const KernelReport report = bench_kernels(runtime, kernels);
  print(settings.json ? json_report(report) + "\n" : text_report(report));
  return 0;
}

int run_streams(Runtime& runtime, const Settings& settings, const Model& model) {
  if (settings.profile || !settings.page.empty() || !settings.trace.empty())
    throw Error(ErrorKind::usage, "--streams measures throughput: it does not go with --profile, --report and --trace");
  const std::vector<Split> splits = splits_for(settings.streams, settings.threads, cores());
  std::vector<Side> sides = sides_of(settings, model);
  const Feeds feeds = feeds_of(settings, options_of(settings), model, *load(runtime, sides.front(), settings, false));
  const std::string plugin = sides.back().plugin ? plugin_of(settings).string() : "";
  const auto measured = bench_streams(runtime, sides, plugin, splits, feeds, settings.block * settings.rounds);
  print(settings.json ? json_report(measured, runtime.version()) + "\n" : text_report(measured));
  return 0;
}

int run_prediction(const Settings& settings) {
  if (settings.model.empty()) throw Error(ErrorKind::usage, "a model is needed with --predict");
  PredictionSettings predicted{
      .models = {settings.model}, .target = settings.predict, .precision = settings.predict_in};
  predicted.models.insert(predicted.models.end(), settings.versus.begin(), settings.versus.end());
  predicted.shapes = options_of(settings).input_shapes;
  predicted.json = settings.json;
  print(bench_prediction(predicted));
  return 0;
}

/// Reports are written when everything is measured: whether they may be is known before.
void refuse_to_replace(const Settings& settings) {
  ReadFiles read{.models = {settings.model}, .data = {settings.inputs, settings.plugin, plugin_path()}};
  read.models.insert(read.models.end(), settings.versus.begin(), settings.versus.end());
  read.data.insert(read.data.end(), settings.custom_ops.begin(), settings.custom_ops.end());
  tools::refuse_to_replace(settings.page, "--report", read, {settings.trace});
  tools::refuse_to_replace(settings.trace, "--trace", read, {settings.page});
  for (const std::string& file : {settings.page, settings.trace})
    if (!file.empty()) refuse_unwritable(file);
}

/// What a mode would ignore in silence.
void refuse_contradictions(const Settings& settings) {
  const bool one_run =
      settings.profile || !settings.page.empty() || !settings.trace.empty() || !settings.inputs.empty();
  const auto refuse = [](bool wrong, const char* what) {
    if (wrong) throw Error(ErrorKind::usage, what);
  };
  refuse(!settings.op.empty() && !settings.kernels, "--op is for --kernels");
  refuse(!settings.predict_in.empty() && settings.predict.empty(), "--predict-in is for --predict");
  refuse(
      settings.kernels && (one_run || !settings.versus.empty() || !settings.streams.empty()),
      "--kernels times kernels alone: it does not go with --vs, --inputs, --profile, --report, --trace and --streams");
  refuse(
      !settings.predict.empty() && (one_run || settings.kernels || !settings.streams.empty() || settings.threads > 0),
      "--predict runs nothing: it does not go with --inputs, --threads, --profile, --report, --trace, --kernels and "
      "--streams");
}

int run(const Settings& settings) {
  refuse_contradictions(settings);
  refuse_to_replace(settings);
  if (!settings.predict.empty()) return run_prediction(settings);
  std::string why;
  auto runtime = Runtime::find(&why, {settings.custom_ops.begin(), settings.custom_ops.end()});
  if (!runtime) throw Error(ErrorKind::unsupported, fmt::format("no ONNX Runtime: {}", why));
  if (settings.kernels) return run_kernels(*runtime, settings);
  if (settings.model.empty()) throw Error(ErrorKind::usage, "a model is needed, or --kernels");
  const Options options = options_of(settings);  // what is wrong with them is said before anything is loaded
  const Model model = Model::load(settings.model);
  if (!settings.streams.empty()) return run_streams(*runtime, settings, model);
  BenchReport report{.sides = sides_of(settings, model),
                     .threads = settings.threads > 0 ? settings.threads : cores(),
                     .runtime = runtime->version(),
                     .peak = {}};
  std::vector<Side>& sides = report.sides;
  std::vector<std::unique_ptr<Session>> sessions;
  sessions.reserve(sides.size());
  for (Side& side : sides) sessions.push_back(load(*runtime, side, settings, false));
  const Feeds feeds = feeds_of(settings, options, model, *sessions.front());
  measure(sides, sessions, feeds, settings);
  sessions.clear();
  if (settings.profile || !settings.page.empty() || !settings.trace.empty()) {
    profile(*runtime, sides, feeds, settings);
    report.peak = measure_peak(report.threads);
  }
  if (!settings.page.empty()) {
    take_memory(*runtime, sides, feeds, settings);
    write(settings.page, page_of(report, feeds, settings.command));
  }
  if (!settings.trace.empty()) write(settings.trace, trace_of(report));
  if (!settings.profile)
    for (Side& side : sides) side.nodes.clear();  // asked for by a file alone
  print((settings.json ? json_report(report) : text_report(report, 15)) + "\n");
  return 0;
}

constexpr const char* kExamples = R"(Examples:
  modelflow-bench fast.onnx                          with and without the plugin
  modelflow-bench fast.onnx --vs model.onnx          against the original in stock ONNX Runtime (the first side is 1.00x)
  modelflow-bench fast.onnx --threads 2 --profile    with the time of every op
  modelflow-bench fast.onnx --input-shapes x:1,3,640,640 --json
  modelflow-bench fast.onnx --vs model.onnx --report bench.html --trace trace.json
  modelflow-bench fast.onnx --vs model.onnx --streams best     throughput, and how to share out the cores
  modelflow-bench fast.onnx --vs model.onnx --predict cuda:sm_90 --input-shapes x:1,3,224,224   what costs say, no GPU needed
  modelflow-bench --kernels --op Conv --threads 1    every kernel of an op beside ONNX Runtime's own ops)";

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Times an ONNX model in ONNX Runtime, sides interleaved.", "modelflow-bench"};
  Settings settings;
  settings.command = command_line(argc, argv);
  app.set_version_flag("--version", std::string(version()));
  app.footer(kExamples);
  app.add_option("MODEL", settings.model, "the model");
  app.add_option("--vs", settings.versus, "another model to compare with, without plugin; repeatable")
      ->allow_extra_args(false);
  app.add_option("--plugin", settings.plugin, "libmodelflow_ort.so (default: beside this program)");
  app.add_flag("--no-plugin", settings.no_plugin, "only without the plugin");
  app.add_option("--custom-ops", settings.custom_ops, "a library of custom operators that the models need; repeatable")
      ->allow_extra_args(false);
  app.add_option("--inputs", settings.inputs, "FILE.npz with real inputs");
  app.add_option("--input-shapes", settings.shapes, "NAME:1,3,224,224 for dynamic inputs; repeatable")
      ->allow_extra_args(false);
  app.add_option("--threads", settings.threads, "threads per session (default: all cores)")->check(CLI::Range(0, 1024));
  app.add_option("--rounds", settings.rounds, "interleaved blocks per side (default: 10)")
      ->check(CLI::Range(1, 100000));
  app.add_option("--block", settings.block, "seconds per block, with --kernels per call (default: 0.3)")
      ->check(CLI::PositiveNumber);
  app.add_option("--warmup", settings.warmup, "seconds of warm-up per side (default: 0.2)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--streams", settings.streams,
                 "throughput: so many sessions at once, or 'best' to try every way to share out the threads");
  app.add_flag("--profile", settings.profile, "time by op and node");
  app.add_flag("--kernels", settings.kernels,
               "every kernel beside the body of its op: of the fused ops of MODEL, else of sample calls");
  app.add_option("--op", settings.op, "with --kernels: of this op only (Conv, QMatMul, ...)");
  app.add_option("--predict", settings.predict,
                 "run nothing: predict by costs what MODEL and those of --vs take on a target such as cuda:sm_90");
  app.add_option("--predict-in", settings.predict_in, "with --predict: float32 counts as fp16 or bf16");
  app.add_flag("--json", settings.json, "JSON on stdout");
  app.add_option("--report", settings.page, "also write FILE, a page for browsers: times, nodes, graphs, memory");
  app.add_option("--trace", settings.trace,
                 "also write FILE, the profiles as a trace for Perfetto and chrome://tracing");
  describes_itself(app);
  try {
    app.parse(argc, argv);
    return run(settings);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fmt::print(stderr, "modelflow-bench: {}; try 'modelflow-bench --help'\n", error.what());
    return static_cast<int>(ErrorKind::usage);
  } catch (const Error& error) {
    fmt::print(stderr, "modelflow-bench: {}\n", error.what());
    return static_cast<int>(error.kind());
  } catch (const std::exception& error) {
    fmt::print(stderr, "modelflow-bench: internal error: {}\n", error.what());
    return static_cast<int>(ErrorKind::internal);
  }
}
