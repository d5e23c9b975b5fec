// Runs the calls of ops or of a model through their kernels.
#include "bench_kernels.h"

#include <fmt/format.h>

#include "modelflow/modelflow.h"

namespace modelflow::tools {
namespace {

CallTimes times_of(Runtime& runtime, const Call& call, const KernelSettings& settings) {
  CallTimes times{.op = call.op, .text = call_text(call), .work = work_of(call), .bytes = bytes_of(call)};
  try {
    times.times = time_kernels(runtime, call, kernels_for(call), settings.threads, settings.seconds);
  } catch (const Error& error) {  // a body that ONNX Runtime has no kernels for
    times.why_not = error.what();
  }
  return times;
}

/// What the inputs of a model mostly are: as in Options::input_shapes, else made up.
std::map<std::string, Dims> extents_of(const Model& model, const KernelSettings& settings) {
  Options options;
  options.input_shapes = settings.shapes;
  const Feeds feeds = synthetic_feeds(model, options).front();
  std::map<std::string, Dims> extents;
  for (const auto& [input, tensor] : feeds) extents[input] = tensor.dims();
  return extents;
}

}  // namespace

KernelReport bench_kernels(Runtime& runtime, const KernelSettings& settings) {
  KernelReport report{.calls = {}, .threads = settings.threads, .runtime = runtime.version(), .peak = {}};
  const auto add = [&](const std::vector<Call>& calls) {
    for (const Call& call : calls)
      if (settings.op.empty() || call.op == settings.op) report.calls.push_back(times_of(runtime, call, settings));
  };
  if (settings.model.empty()) {
    for (const FusedOp* op : fused_ops())
      if (settings.op.empty() || op->kind == settings.op) add(op->samples());
  } else {
    const Model model = Model::load(settings.model);
    add(fused_calls(model, extents_of(model, settings)).calls);
  }
  if (report.calls.empty())
    throw Error(ErrorKind::usage, fmt::format("no calls of '{}' in {}", settings.op,
                                              settings.model.empty() ? "this build" : "the model"));
  report.peak = measure_peak(settings.threads);
  return report;
}

}  // namespace modelflow::tools
