// The command line of `optimize`, parsed and checked.
#include "optimize_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <limits>

#include "contradictions.h"
#include "modelflow/data.h"
#include "score.h"
#include "self_description.h"
#include "src/core/new_file.h"
#include "src/core/once.h"
#include "terminal.h"

namespace modelflow::tools {
namespace {

constexpr const char* kExamples = R"(Examples:
  optimize model.onnx -o fast.onnx                          the usual way: float32, for this machine, measured
  optimize model.onnx -o fast.onnx --inputs sample.npz      verify and time with your own data
  optimize model.onnx -o fast.onnx --input-shapes x:1,3,640,640
  optimize model.onnx -o fast.onnx --precision int8 --calibration samples/   8 bits, calibrated on samples/*.npz
  optimize model.onnx -o fast.onnx --precision int8-dynamic                  8 bits without data: transformers
  optimize model.onnx -o fast.onnx --precision bf16                          bfloat16, for CPUs that multiply it (AMX)
  optimize model.onnx -o clean.onnx --portable              standard ops only, for any ONNX runtime
  optimize model.onnx -o fast.onnx --target cpu:avx512_vnni --no-measure     cross-build
  optimize --inline fast.onnx -o plain.onnx                 write fused ops out as standard ops
  optimize --merge encoder.onnx decoder.onnx -o both.onnx --map encoder.hidden=decoder.memory    two models as one
  optimize model.onnx -o fast.onnx --audio-front-end whisper                 samples in, the features are part of the model
  optimize model.onnx -o fast.onnx --image-front-end preprocessor_config.json  pixels in: resized, cut and normalized inside
  optimize model.onnx -o fast.onnx --bind sr=16000 --outputs prob    an input that never changes, one output of many
  optimize models/ more.onnx -o fast/                       every .onnx file of a folder and another, with one table
  optimize model.onnx -o fast.onnx --report report.html     and a page that shows what happened
  optimize model.onnx --triton repository/ --triton-root /models    for tritonserver --model-repository /models
  optimize model.onnx --explain                             why rules did not fire; writes nothing

The output runs in ONNX Runtime with libmodelflow_ort.so registered or without it; other runtimes may want --inline or --portable.
A result is compared with the original on many made-up inputs (or yours) before it is written, and what makes it wrong
is left out, unless ONNX Runtime is missing or cannot run the model: then
it is written all the same, with a warning on stderr and "verified": false in the report.

Exit codes: 0 written, 1 internal error, 2 usage, 3 input unreadable or invalid, 4 unsupported, 5 verification failed
(nothing written), 6 a file or the standard output could not be written (a file that was not is as it was before),
7 limit of memory, time or size reached (see --timeout and what follows it), 130 interrupted.)";

struct Raw {
  std::string output, level = "O2", target = "cpu", precision = "float32", inputs, external = "auto", report,
                      calibration, observer, metric, score, reproducer, triton, triton_root, audio_front_end,
                      image_front_end;
  std::vector<std::string> models, shapes, disable, enable, maps, bind, outputs, drop_outputs, custom_ops;
  bool merge = false, portable = false, fast = false, no_measure = false, no_verify = false;
  int threads = 0;
  std::optional<double> tolerance, verify_seconds;
  double max_seconds = 600, max_drop = -1;
  std::string max_memory;
};

/// The names that the library parses.
Words words() {
  Words all;
  for (int i = 0; i <= static_cast<int>(Precision::automatic); ++i)
    all["--precision"].emplace_back(name(static_cast<Precision>(i)));
  for (int i = 0; i <= static_cast<int>(Observer::mse); ++i)
    all["--observer"].emplace_back(name(static_cast<Observer>(i)));
  for (int i = 0; i <= static_cast<int>(Metric::top1); ++i) all["--metric"].emplace_back(name(static_cast<Metric>(i)));
  all["--level"] = {"O0", "O1", "O2"};
  return all;
}

/// A check of a number from `least` to `most`, which NaN would pass as CLI::Range has it.
CLI::Validator between(double least, double most) {
  const auto wrong = [=](const std::string& text) {
    double value = NAN;
    const bool fits = CLI::detail::lexical_cast(text, value) && value >= least && value <= most;
    return fits ? "" : fmt::format("'{}' is no number from {:g} to {:g}", text, least, most);
  };
  return {wrong, ""};
}

constexpr std::size_t kMostNodes = 1'000'000'000'000;
constexpr double kFastVerification = 0.5;  // seconds
constexpr double kSmallest = std::numeric_limits<double>::min(), kLargest = std::numeric_limits<double>::max();

void add_limits(CLI::App& app, Raw& raw, Limits& limits) {
  app.add_option("--timeout", limits.timeout, "give up after so many seconds (default: 7200; 0: never)")
      ->check(between(0, kLargest));
  app.add_option("--max-memory", raw.max_memory,
                 "give up beyond so much memory, as 500M or 8G (default: nine tenths of what this machine has)");
  app.add_option("--max-nodes", limits.max_nodes,
                 "refuse a model of more nodes, its functions written out (default: 1000000)")
      ->check(CLI::Range(std::size_t{1}, kMostNodes));
  app.add_option("--max-depth", limits.max_depth,
                 "refuse deeper nesting of subgraphs or of function calls (default: 100)")
      ->check(CLI::Range(1, 1000));
}

/// What goes in and what comes out.
void add_places(CLI::App& app, Raw& raw) {
  app.add_option("MODELS", raw.models,
                 "the ONNX model to optimize, and a new file to write it to (or -o, which replaces); with a folder for "
                 "-o (and --report) any number "
                 "of models and folders of them");
  app.add_option("-o,--output", raw.output, "where to write the optimized model");
  app.add_option("--triton", raw.triton,
                 "in place of -o: DIR, a model repository for Triton, with the plugin, config.pbtxt and what is "
                 "measured of sessions, threads and batches");
  app.add_option("--triton-root", raw.triton_root,
                 "where the server finds DIR, as /models (default: where it is here)");
}

/// Several models as one, and what of a model is wanted.
void add_composition(CLI::App& app, Raw& raw) {
  app.add_flag("--merge", raw.merge,
               "make one model of all that are given (as FILE or NAME=FILE): what one gives goes into another");
  app.add_option("--map", raw.maps,
                 "A.OUTPUT=B.INPUT, with --merge: what goes where (default: what has the same name); A.INPUT=B.INPUT "
                 "gives one input to both; repeatable")
      ->allow_extra_args(false);
  auto* sound =
      app.add_option("--audio-front-end", raw.audio_front_end,
                     "samples in, features inside: whisper, kaldi or librosa, with changes as "
                     "kaldi:n_mels=80, or a .json file; without a model the front end alone (--map calls it front)");
  app.add_option("--image-front-end", raw.image_front_end,
                 "pixels in (uint8 [N, height, width, 3]): imagenet, clip, yolo or paddleocr, with changes as "
                 "imagenet:size=232, or a .json file (preprocessor_config.json as well); likewise")
      ->excludes(sound);
  app.add_option("--bind", raw.bind,
                 "INPUT=NUMBER (or NUMBERS,...), or FILE.npz: these inputs become constants; repeatable")
      ->allow_extra_args(false);
  app.add_option("--outputs", raw.outputs, "only these outputs, or values inside of the model: y,z")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--drop-outputs", raw.drop_outputs, "all outputs but these")->delimiter(',')->allow_extra_args(false);
}

/// What is timed and compared.
void add_checks(CLI::App& app, Raw& raw) {
  app.add_flag("--fast", raw.fast,
               "in a few seconds: the cost model decides instead of the clock, and the report has no times");
  app.add_flag("--no-measure", raw.no_measure, "do not time anything; the cost model decides");
  app.add_flag("--no-verify", raw.no_verify, "do not run original and result against each other");
  app.add_option("--threads", raw.threads, "threads for timing (default: all cores)")->check(CLI::Range(0, 1024));
  app.add_option("--tolerance", raw.tolerance,
                 "largest difference allowed, relative to the output's largest value (default: 1e-4, and what rounding "
                 "becomes where every part of the model agrees)")
      ->check(between(kSmallest, kLargest));
  app.add_option("--reproducer", raw.reproducer,
                 "DIR for the smallest model and inputs that show a fault, should verification find one (of many "
                 "models: a folder in it for each)");
  app.add_option("--max-seconds", raw.max_seconds, "stop measuring after so many seconds (default: 600)")
      ->check(between(kSmallest, kLargest));
  app.add_option("--verify-seconds", raw.verify_seconds,
                 "how long the original may run on made-up inputs, or 2 runs for each second, at most 4: more inputs, "
                 "surer results (default: 2; 0.5 with --fast)")
      ->check(between(kSmallest, kLargest));
}

void add_options(CLI::App& app, Raw& raw, Arguments& out) {
  app.add_option("--level", raw.level, "O0 copy, O1 clean-ups in standard ops, O2 fused ops (default)")
      ->check(CLI::IsMember({"O0", "O1", "O2", "0", "1", "2"}));
  app.add_flag("--portable", raw.portable, "same as --level O1: the result needs no plugin to be fast");
  app.add_option(
      "--target", raw.target,
      "machine that will run it: cpu, cpu:avx2, cpu:avx512_vnni,cores=4, cpu:avx2+avx_vnni, cuda:sm_90, ...");
  app.add_option("--precision", raw.precision,
                 "float32 (default); int8 (needs --calibration), int8-dynamic, bf16 (for CPUs that multiply it, and "
                 "GPUs), fp16 (GPUs), bf16-weights, int8-weights, int4-weights, auto");
  app.add_option(
      "--calibration", raw.calibration,
      "DIR of .npz files, one sample each (or FILE.npz): typical inputs to take the ranges of int8 from, and to "
      "round int4-weights by");
  app.add_option("--observer", raw.observer,
                 "how ranges are taken: auto (default: mse or minmax, measured), mse, minmax, average, percentile "
                 "(99.99), entropy");
  app.add_option("--max-drop", raw.max_drop,
                 "per cent of the metric that low precision may cost (default: 1; 100: no bound)")
      ->check(between(0, 100));
  app.add_option("--metric", raw.metric, "what --max-drop bounds: cosine (default), l2 or top1, of the worst output");
  app.add_option("--score", raw.score,
                 "a command that prints a number for the model {}, higher is better; --max-drop then bounds its loss");
  app.add_option("--custom-ops", raw.custom_ops,
                 "a library of custom operators that the model needs, as ONNX Runtime registers it; repeatable")
      ->allow_extra_args(false);
  app.add_option("--inputs", raw.inputs, "FILE.npz (or a directory of them): real inputs for verifying and timing");
  app.add_option("--input-shapes", raw.shapes, "NAME:1,3,224,224 for dynamic inputs; repeatable")
      ->allow_extra_args(false);
  app.add_option("--disable", raw.disable, "switch a stage, pass or rule off (see --list); repeatable")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--enable", raw.enable, "what stays on of a stage or pass that --disable names; repeatable")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_flag("--list", out.list, "print every pass and rule in running order (with --json as JSON)");
  app.add_flag("--explain", out.explain, "print the closest miss of every rule and why");
  app.add_flag("--json", out.json, "print the report as JSON on stdout");
  app.add_option("--report", raw.report,
                 "also write the report to FILE: as a page for browsers where it ends in .html, else as JSON");
  app.add_option("--external-data", raw.external, "auto, always or never: weights in OUT.data beside the model")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_flag("--inline", out.inline_only, "only write local functions (our fused ops) out as standard ops");
  add_checks(app, raw);
  add_limits(app, raw, out.options.limits);
  app.add_flag("-q,--quiet", out.quiet, "print nothing but errors and warnings");
}

void convert_precision(const Raw& raw, bool list, Options& options) {
  options.precision = parse_precision(raw.precision);
  const bool full = options.precision == Precision::f32;
  if (full && (!raw.observer.empty() || !raw.metric.empty() || !raw.score.empty() || raw.max_drop >= 0))
    throw Error(ErrorKind::usage,
                "--observer, --metric, --score and --max-drop are for low precision: add --precision int8 or another");
  if (options.precision == Precision::i8 && raw.calibration.empty() && !list)
    throw Error(
        ErrorKind::usage,
        std::string("--precision int8 needs typical inputs: add --calibration DIR (of .npz files)") +
            (options.target.device == Device::cpu ? ", or use --precision int8-dynamic, which needs none" : ""));
  const bool reads_samples = options.precision == Precision::i8 || options.precision == Precision::i4_weights ||
                             options.precision == Precision::automatic;
  if (!raw.calibration.empty() && !reads_samples)
    throw Error(ErrorKind::usage,
                fmt::format("--calibration is for --precision int8, int4-weights and auto, not for {}", raw.precision));
  if (!raw.calibration.empty()) options.calibration = read_one_by_one(raw.calibration);
  if (!raw.observer.empty()) options.observer = parse_observer(raw.observer);
  if (!raw.metric.empty()) options.metric = parse_metric(raw.metric);
  if (!raw.score.empty()) options.score = score_command(raw.score);
  if (raw.max_drop >= 0) options.max_drop = raw.max_drop;
}

Level parse_level(const Raw& raw) {
  if (raw.portable) return Level::O1;
  return static_cast<Level>(raw.level.back() - '0');
}

/// In and out, as other tools have it; but two models may have been meant, as by *.onnx.
void take_output(Arguments& out) {
  const std::filesystem::path last = out.models.back();
  std::error_code error;
  if (out.explain || std::filesystem::exists(last, error))
    throw Error(ErrorKind::usage,
                fmt::format("'{}' {}: with -o {} it is the result", last.string(),
                            out.explain ? "is a second model for --explain" : "is there already", last.string()));
  out.output = last;
  out.models.pop_back();
}

void check_paths(const Raw& raw, Arguments& out) {
  if (out.list) return;
  out.audio_front_end = raw.audio_front_end;
  out.image_front_end = raw.image_front_end;
  const bool has_front = !raw.audio_front_end.empty() || !raw.image_front_end.empty();
  if (raw.models.empty() && !has_front) throw Error(ErrorKind::usage, "no model given; try 'optimize --help'");
  out.models.assign(raw.models.begin(), raw.models.end());
  out.output = raw.output;
  out.merge = raw.merge;
  out.maps = raw.maps;
  out.bind = raw.bind;
  if (!raw.maps.empty() && !raw.merge && !has_front) throw Error(ErrorKind::usage, "--map is for --merge");
  if (out.output.empty() && out.models.size() == 2 && raw.triton.empty() && !raw.merge) take_output(out);
  if (!out.models.empty()) out.input = out.models.front();
  out.triton = raw.triton;
  out.triton_root = raw.triton_root;
  if (!raw.triton_root.empty() && raw.triton.empty()) throw Error(ErrorKind::usage, "--triton-root is for --triton");
  if (!raw.triton.empty() && !out.output.empty())
    throw Error(ErrorKind::usage, "--triton says where the model is written: it does not go with -o");
  if (out.output.empty() && raw.triton.empty() && !out.explain)
    throw Error(ErrorKind::usage, are_many(out) ? "no output given; add -o FOLDER for the results"
                                                : "no output given; add -o FILE (or --explain to only look)");
  out.report_file = raw.report;
}

/// Of one model: where there are many, their places have to be found first.
void check_files(const Arguments& arguments) {
  if (arguments.list || are_many(arguments)) return;
  refuse_shared_files(arguments);
  for (const std::filesystem::path& file : {arguments.output, arguments.report_file})
    if (!file.empty()) refuse_unwritable(file);
}

void convert(const Raw& raw, Arguments& out) {
  check_paths(raw, out);
  Options& options = out.options;
  options.target = Target::parse(raw.target);
  convert_precision(raw, out.list, options);
  options.level = parse_level(raw);
  options.measure = !raw.no_measure && !raw.fast;
  options.profile = out.json || !out.report_file.empty();  // nothing else tells of nodes
  options.verify = !raw.no_verify;
  if (raw.fast) options.verify_seconds = kFastVerification;
  options.verify_seconds = raw.verify_seconds.value_or(options.verify_seconds);
  options.threads = raw.threads;
  options.tolerance = raw.tolerance;
  options.reproducer = raw.reproducer;
  options.max_seconds = raw.max_seconds;
  options.disabled.insert(raw.disable.begin(), raw.disable.end());
  options.enabled.insert(raw.enable.begin(), raw.enable.end());
  options.outputs = raw.outputs;
  options.drop_outputs = raw.drop_outputs;
  options.custom_ops.assign(raw.custom_ops.begin(), raw.custom_ops.end());
  for (const std::string& text : raw.shapes)
    add_once(options.input_shapes, {parse_input_shape(text)}, "--input-shapes");
  out.inputs = raw.inputs;
  out.calibration = raw.calibration;
  if (!raw.max_memory.empty()) options.limits.max_memory = parse_bytes(raw.max_memory);
  using External = WriteOptions::ExternalData;
  out.write.external_data = raw.external == "always"  ? External::always
                            : raw.external == "never" ? External::never
                                                      : External::automatic;
  check_files(out);
}

}  // namespace

bool are_many(const Arguments& arguments) {
  std::error_code error;
  return !arguments.list && !arguments.merge &&
         (arguments.models.size() > 1 || std::filesystem::is_directory(arguments.input, error));
}

std::optional<int> parse_arguments(int argc, char** argv, Arguments& arguments) {
  CLI::App app{"ModelFlow: makes an ONNX model faster without changing how it is deployed.", "optimize"};
  app.set_version_flag("--version", std::string(version()));
  app.footer(kExamples);
  app.get_formatter()->column_width(34);
  Raw raw;
  describes_itself(app, words());
  arguments.command = command_line(argc, argv);
  add_places(app, raw);
  add_composition(app, raw);
  add_options(app, raw, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == 0;
    if (asked) return app.exit(error);
    fmt::print(stderr, "optimize: {}; try 'optimize --help'\n", error.what());
    return static_cast<int>(ErrorKind::usage);
  }
  refuse_contradictions(app);
  convert(raw, arguments);
  return std::nullopt;
}

}  // namespace modelflow::tools
