// The library as programs call it: options in, an optimized model and its report out.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "modelflow/error.h"
#include "modelflow/limits.h"
#include "modelflow/model.h"
#include "modelflow/pass.h"
#include "modelflow/report.h"
#include "modelflow/runtime.h"
#include "modelflow/target.h"

namespace modelflow {

/// O0: read, check, write. O1: clean-ups in standard ops, runs in any runtime. O2: fused ops for the target.
enum class Level { O0 = 0, O1 = 1, O2 = 2 };
/// i8: static, calibrated on data. i8_dynamic: products only, activations quantized row by row at run time; no data.
/// bf16: products and convolutions on CPUs with arithmetic for it; no data. *_weights: what is stored, and read.
/// f16, and bf16 for a GPU: all values between ops that a GPU computes so, inputs and outputs stay float32; no data.
enum class Precision { f32, bf16, bf16_weights, f16, i8, i8_dynamic, i8_weights, i4_weights, automatic };

/// Samples for calibration, one by one so that they need not fit in memory together; nullopt behind the last.
using CalibrationData = std::function<std::optional<Feeds>(std::size_t index)>;
/// automatic: both mse and minmax, and what then loses less on the samples held back.
enum class Observer { automatic, minmax, average, percentile, entropy, mse };
/// What max_drop bounds, in per cent, at the worst output. cosine: 100 (1 - cosine similarity); l2: 100 |a-b| / |a|;
/// top1: rows whose largest entry is another one (outputs without such rows: as cosine).
enum class Metric { cosine, l2, top1 };

struct Options {
  Level level = Level::O2;
  Target target = Target::host();
  Precision precision = Precision::f32;
  CalibrationData calibration = {};  ///< for Precision::i8, and to round Precision::i4_weights by
  Observer observer = Observer::automatic;
  Metric metric = Metric::cosine;
  /// The user's own figure of merit, higher is better: max_drop bounds what of it is lost, in per cent, in place of
  /// `metric`. It gets a model that runtimes load.
  std::function<double(const Model&)> score = {};
  double max_drop = 1;                       ///< per cent of the metric that a lower precision may cost; 100: no bound
  std::vector<Feeds> inputs;                 ///< user data for verification and timing; empty: synthetic
  std::map<std::string, Dims> input_shapes;  ///< by input name, for synthetic data of dynamic models
  Feeds bind;                                ///< inputs that become constants, with their values
  std::vector<std::string> outputs;          ///< only these, values inside of the model among them; empty: all
  std::vector<std::string> drop_outputs;     ///< all but these
  /// Libraries of custom operators that the model needs: sessions that verify and measure register them.
  std::vector<std::filesystem::path> custom_ops;
  /// Names of stages, passes and rules: what is disabled is left out, but for what of it is enabled.
  std::set<std::string> disabled, enabled;
  bool measure = true;  ///< time on this machine; false: the cost model decides
  bool verify = true;
  /// Verification adds made-up inputs until the original has run so long on them, or 2 runs per second, at most 4.
  double verify_seconds = 2;
  bool profile = true;               ///< with `measure`: times of nodes and memory for the report, some seconds more
  int threads = 0;                   ///< of every session; 0: all cores
  double max_fold_bytes = 64 << 20;  ///< most that constant folding may add in total
  double max_seconds = 600;          ///< for measuring; what is not reached stays as it was
  Limits limits;                     ///< time and memory, looked at between steps; beyond them Error(limit)
  /// Verification: the bound of max |a-b| / max |a| per output (of 16-bit outputs at least four of their steps). Where
  /// none is given: 1e-4, or 2^-22 of the range of a Sigmoid, Softmax or the like; and beyond that what rounding
  /// becomes in a model every part of which agrees by itself.
  std::optional<double> tolerance = {};
  std::filesystem::path reproducer;  ///< folder for the smallest model and feeds that show a fault; empty: none kept
  std::function<void(std::string_view step, double done)> progress;  ///< done: 0..1 within the step
};

struct Result {
  Model model;
  Report report;
};

/// Makes the model faster on options.target without changing what it computes (up to float reassociation at O2).
/// Pure to its caller: the argument is copied. Throws only Error.
Result optimize(Model model, const Options& options = {});

/// Writes the bodies of fused ops (and of every other local function) in place of their calls.
Model inline_functions(Model model);

/// "x:1,3,224,224" -> ("x", {1, 3, 224, 224}); input names may hold colons themselves. Throws Error(usage).
std::pair<std::string, Dims> parse_input_shape(std::string_view text);

/// "int8-dynamic" and the like, as the command line and reports write them.
std::string_view name(Precision precision);
std::string_view name(Observer observer);
std::string_view name(Metric metric);
/// The other way round ("fp32", "float16", "bfloat16" and "bfloat16-weights" are known as well); throws Error(usage)
/// with the names there are.
Precision parse_precision(std::string_view text);
Observer parse_observer(std::string_view text);
Metric parse_metric(std::string_view text);

/// Inputs made up for a model: sensible ranges per dtype, input name and use (token ids, masks, images), the same for
/// the same model. The first set is the most likely one; the others have other sizes where dims are dynamic
/// (Options::input_shapes fixes them), padding, empty batches and whatever else data has. A model may refuse some.
std::vector<Feeds> synthetic_feeds(const Model& model, const Options& options);

/// The most likely inputs that the session of a model runs: of dynamic dims other extents are tried where it refuses.
/// Throws what the first attempt threw where it refuses all.
Feeds typical_feeds(Session& session, const Model& model, const Options& options);

/// Every stage with its passes and rules in running order: `optimize --list`.
std::vector<Stage> stages(const Options& options = {});

std::string_view version();

}  // namespace modelflow
