// Options checked against each other and against the model.
#include "src/request.h"

#include <algorithm>
#include <cmath>

#include "passes/quantize/quantize.h"
#include "src/core/new_file.h"
#include "src/core/peak.h"
#include "src/emit/fused_calls.h"
#include "src/flow/switches.h"
#include "src/input_shape.h"
#include "src/limit_guard.h"
#include "src/measure/bf16_price.h"
#include "src/precision/samples.h"

namespace modelflow {
namespace {

void refuse_wrong_numbers(const Options& options) {
  const auto refuse = [](bool wrong, const char* what) {
    if (wrong) throw Error(ErrorKind::usage, what);
  };
  refuse(options.threads < 0, "the number of threads cannot be negative");
  refuse(options.tolerance && !(*options.tolerance > 0 && std::isfinite(*options.tolerance)),
         "the tolerance must be a positive number");
  refuse(!(options.max_seconds >= 0), "the time for measuring must be a number of seconds");
  refuse(!(options.limits.timeout >= 0 && options.limits.max_memory >= 0), "limits cannot be negative");
  refuse(!(options.max_drop >= 0 && options.max_drop <= 100), "max_drop must lie between 0 and 100 per cent");
}

void refuse_precisions_without_arithmetic(const Options& options) {
  const Precision precision = options.precision;
  if (options.target.device == Device::cuda) {
    const bool half = half_type(options) != DType::undefined;
    if (precision != Precision::f32 && precision != Precision::i8 && !half)
      throw Error(ErrorKind::unsupported, std::string(name(precision)) +
                                              " is for CPUs: a GPU takes fp16, bf16, int8, " +
                                              "int8-weights and int4-weights");
    if (precision == Precision::bf16 && options.target.sm < 80)
      throw Error(ErrorKind::unsupported, options.target.str() + " does not compute in bfloat16: it takes fp16");
    if (precision == Precision::i8 && options.target.sm < 80)
      throw Error(ErrorKind::unsupported, options.target.str() + " has no kernels for int8: it takes fp16");
    return;
  }
  if (precision == Precision::f16)
    throw Error(ErrorKind::unsupported,
                "float16 would not pay: neither ONNX Runtime nor these kernels have arithmetic for it on a CPU, and "
                "every op would stand between two casts; bf16 and int8 are what CPUs are fast in");
  if (precision == Precision::bf16 && !options.target.has(Isa::avx512_bf16))
    throw Error(ErrorKind::unsupported, bf16_price(options));
}

void refuse_what_is_not_there(const Options& options) {
  refuse_precisions_without_arithmetic(options);
  for (const std::filesystem::path& library : options.custom_ops)
    if (std::error_code ignored; !std::filesystem::is_regular_file(library, ignored))
      throw Error(ErrorKind::usage, "there is no library '" + library.string() + "'");
  if (!options.reproducer.empty()) refuse_unwritable_folder(options.reproducer);
  if (options.precision == Precision::i8 && !options.calibration)
    throw Error(ErrorKind::usage, "int8 needs samples to calibrate with (--calibration); int8-dynamic does without");
  if (options.observer != Observer::automatic && !passes::needs_ranges(options))
    throw Error(ErrorKind::usage, std::string("an observer is for int8, and for auto with samples: ") +
                                      std::string(name(options.precision)) + " observes nothing");
  if (options.precision != Precision::f32 && options.level == Level::O0)
    throw Error(ErrorKind::usage, "level O0 changes nothing, so it cannot lower the precision");
}

/// Names of another level do nothing at this one.
std::set<std::string> names_left_out(const Options& options) {
  Options all = options;
  all.level = Level::O2;
  const std::vector<Stage> every = stages(all);
  check_names(options, every);
  return switched_off(options, every);
}

}  // namespace

void watch_limits(Options& options) {
  options.progress = [guard = LimitGuard(options.limits), tell = std::move(options.progress)](std::string_view step,
                                                                                              double done) {
    guard.check(step);
    if (tell) tell(step, done);
  };
}

Options accepted(Options options, const Model& model) {
  watch_limits(options);
  if (options.calibration) options.calibration = checked_samples(model, std::move(options.calibration));
  if (options.level == Level::O1 && options.precision == Precision::f32) options.measure = false;  // nothing to choose
  refuse_wrong_numbers(options);
  refuse_what_is_not_there(options);
  options.disabled = names_left_out(options);
  check_input_shapes(model, options.input_shapes);
  check_fused_calls(model);
  if (options.level == Level::O2) options.target = with_measured_units(std::move(options.target));
  return options;
}

}  // namespace modelflow
