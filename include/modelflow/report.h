// What a run did and found out, as data, text and JSON.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace modelflow {

/// A rule that almost fired: how far the pattern matched and why it stopped.
struct Miss {
  std::string rule, node, reason;
  int matched = 0;  ///< nodes of the pattern that fitted
};

struct StepReport {
  std::string stage, name;
  double seconds = 0;
  std::size_t nodes_before = 0, nodes_after = 0;
  std::map<std::string, int> hits;  ///< rule (or pass) -> times applied
  std::vector<Miss> misses;         ///< the closest miss of each rule that did not fire everywhere
};

struct FusedReport {
  std::string node, op, kernel;       ///< node name, kind, kernel that will run it
  std::vector<std::string> replaced;  ///< ops (types) that it stands for
  double predicted_seconds = 0;
};

struct OutputDiff {
  std::string output;
  double max_abs = 0,
         max_rel = 0;  ///< max |a-b|, and that over max |a| (of bounded outputs over 0.24 % of their range at least)
  bool equal_type = true, ok = true;
  std::string feed = {};       ///< where it was largest; empty: equal on all feeds
  std::string explained = {};  ///< why a difference beyond the bound is no fault of the result
};

/// One set of inputs that original and result were compared on, or why they were not.
struct FeedReport {
  std::string name, why;                           ///< "left padding", and the idea in words
  std::map<std::string, std::string> shapes = {};  ///< by input: "int64[2,37]"
  bool kinds_only = false;   ///< NaN, infinities, huge or tiny values in it: only the kinds of numbers are compared
  std::string dropped = {};  ///< not empty: the original refuses it, or there was no time for it
};

/// What gave wrong results here and was left out: a kernel, else a rule of a pass, else the pass.
struct Fault {
  std::string pass = {}, rule = {}, kernel = {};
  std::string node = {};       ///< where it showed
  std::string feed = {};       ///< on which inputs
  OutputDiff difference = {};  ///< of one output of the whole model
  std::string what = {};       ///< in one line
};

struct RegionReport {
  std::string name;
  std::size_t nodes = 0;
  double stock_seconds = 0, fused_seconds = 0;
  bool kept = true;
  std::string reason;
};

struct ModelStats {
  std::size_t nodes = 0;
  std::map<std::string, int> ops;  ///< op -> count, subgraphs included
  double parameters = 0, flops = 0, weight_bytes = 0;
  double activation_bytes = 0;  ///< most that values between nodes hold at once, inputs and outputs counted
};

/// A node of a main graph.
struct NodeReport {
  std::string name, op;                      ///< op as in ModelStats::ops
  std::vector<std::string> inputs, outputs;  ///< names of values, constants left out
  std::vector<std::string> types;            ///< of the outputs, on the inputs that ran: "float32[1,64,56,56]"
  std::vector<std::size_t> sources;          ///< of the result: the nodes of the original that it stands for
  double flops = 0, weight_bytes = 0;
  double live_bytes = 0;  ///< of all values that are held while it runs
};

/// A main graph without its Constant nodes, to be drawn: "before" and "after", or a model that was timed.
struct GraphReport {
  std::string name;
  std::vector<std::string> inputs, outputs;
  std::vector<NodeReport> nodes;
};

/// A node in a profile, under the name that the runtime has for it: its own optimizations come first.
struct NodeRun {
  std::string name, op;
  double ms = 0;                        ///< per run
  double operations = 0;                ///< multiplications and additions, 0 where it has none that count
  std::optional<double> share_of_peak;  ///< of what this machine multiplies and adds at most
};

/// One way to run the model. Times are medians of rounds of the fastest run of each, with their 95 % interval.
struct SideReport {
  std::string name;   ///< "stock", "float32", "fallback" (the result without the plugin), "optimized"
  std::string graph;  ///< what it runs: the name of a GraphReport, empty where that is not here
  double ms = 0, low_ms = 0, high_ms = 0;
  double speedup = 1, speedup_low = 1, speedup_high = 1;  ///< over the first side, of rounds side by side
  double memory_bytes = 0;     ///< what this process grew by at most from loading and running it; 0: not measured
  std::vector<NodeRun> nodes;  ///< the slowest first; empty: no profile
};

/// Where the numbers were taken.
struct MachineReport {
  std::string cpu, isas, system;
  int cores = 0, threads = 0;  ///< of the machine; of each session
  double memory_bytes = 0;
  double peak_float32 = 0, peak_bf16 = 0, peak_int8 = 0;  ///< operations per second, measured; 0: not measured
};

/// How far one output of the low-precision model is from float32, over all samples together.
struct OutputError {
  std::string output;
  double relative_l2 = 0;      ///< |a - b| / |a|
  std::optional<double> sqnr;  ///< 20 log10(|a| / |a - b|) in dB; none: equal
  double cosine = 1;
  std::optional<double> top1;  ///< share of rows with the same largest entry; none: no rows of two entries or more
};

/// One op that low precision was asked for: what runs now.
struct QuantizedReport {
  std::string node, op, precision;  ///< precision: "int8", "int8-dynamic", ..., or "float32" when kept
  std::optional<double> sqnr;       ///< of its own output, in dB; none: not known
  std::string reason;               ///< why it was kept in float
};

/// One choice of ops to keep in float: what it costs and what it gains.
struct FrontierPoint {
  std::size_t quantized = 0;                      ///< ops in lower precision
  double drop = 0;                                ///< per cent; NaN: nothing judged it
  double speedup = 0;                             ///< over the float32 form; 0: not measured
  std::map<std::string, std::size_t> precisions;  ///< of these ops
  bool chosen = false;
};

struct QuantizationReport {
  std::string precision, metric;
  double max_drop = 0, drop = 0;  ///< per cent: what was allowed, what it came to (NaN: nothing judged it)
  std::size_t samples = 0;        ///< that calibration saw
  std::vector<OutputError> outputs;
  std::vector<QuantizedReport> ops;
  std::vector<FrontierPoint> frontier;  ///< what was tried on the way to the bound, most ops first
};

/// Larger graphs are not drawn.
inline constexpr std::size_t kMostDrawn = 20000;

/// Everything that happened in one optimize(). Prints as text and as JSON (schema: docs/report.md).
struct Report {
  std::string version, input, target, level, runtime;
  std::string command, created;  ///< what was typed, if anything was; when, as "2026-01-31T12:00:00Z"
  MachineReport machine;
  ModelStats before, after;
  std::vector<StepReport> steps;
  std::vector<FusedReport> fused;
  std::vector<RegionReport> regions;
  std::vector<FeedReport> feeds;          ///< what the model was run on to verify it
  std::vector<Fault> faults;              ///< what was found wrong and left out
  std::vector<OutputDiff> verification;   ///< empty: not verified, `notes` say why
  double stock_ms = 0, optimized_ms = 0;  ///< whole model on this machine; 0: not measured
  double speedup = 0;
  std::vector<SideReport> sides;    ///< ways to run it, stock ONNX Runtime first; empty: not measured
  std::vector<GraphReport> graphs;  ///< before and after; none of more than kMostDrawn nodes
  bool verified = false;
  std::optional<QuantizationReport> quantization;  ///< none: float32 was asked for
  std::vector<std::string> notes;                  ///< "what could not be done and why", one line each

  std::string text() const;
  std::string json() const;
  /// A page for browsers: one file that needs nothing else.
  std::string html() const;
  /// The closest miss of every rule, most promising first: `optimize --explain`.
  std::string explain() const;
};

}  // namespace modelflow
