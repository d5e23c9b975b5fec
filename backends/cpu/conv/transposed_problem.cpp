// Reads and checks calls of ConvTranspose, and cuts them for threads.
#include "backends/cpu/conv/transposed_problem.h"

#include <algorithm>
#include <string>

#include "backends/call_attrs.h"
#include "backends/cpu/frame/share.h"

namespace modelflow::cpu {
namespace {

[[noreturn]] void mismatch(const std::string& what) { throw Error(ErrorKind::invalid_input, "ConvTranspose: " + what); }

}  // namespace

ConvTransposeNode::ConvTransposeNode(const Call& call) : activation(activation_of(call)) {
  const Dims& w = call.in(1).constant->dims();
  const ops::TransposedWindows windows = ops::transposed_windows(call);
  axes = windows.axes(), channels = size(w[0]), m = size(w[1]);
  for (std::size_t i = 0; i < axes; ++i) {
    axis[i + 3 - axes] = ops::window_axis(windows, i);
    for (const std::int64_t part : {windows.strides[i], windows.pads[i], windows.more(i)})
      layout += " " + std::to_string(part);
  }
  if (!CallAttrs(call).flag("has_bias")) return;
  const auto from = call.in(2).constant->as<float>();
  bias.assign(from.begin(), from.end());
}

ConvTransposeRun ConvTransposeNode::read(Invocation& call) const {
  const View x = call.input(0);
  if (x.dtype != DType::f32 || x.dims.size() != axes + 2 || size(x.dims.back()) != channels)
    mismatch("x is not float32 [n, " + std::to_string(axes) + " extents, " + std::to_string(channels) + "]");
  ConvTransposeRun run;
  Dims y(x.dims.begin(), x.dims.end());
  y.back() = static_cast<std::int64_t>(m);
  for (std::size_t i = 0; i < axes; ++i) {
    const std::size_t at = i + 3 - axes;
    run.in[at] = size(x.dims[i + 1]);
    y[i + 1] = axis[at].extent(run.in[at]);
    if (y[i + 1] < 0) mismatch("the pads are larger than the result of " + std::to_string(run.in[at]) + " inputs");
    run.out[at] = size(y[i + 1]);
  }
  run.batch = size(x.dims[0]);
  run.rows = places(run.out[2], 0, axis[2].stride);
  run.x = static_cast<const float*>(x.data);
  run.y = static_cast<float*>(call.output(0, y));
  return run;
}

std::size_t ConvTransposeNode::cut(ConvTransposeRun& run, const Invocation& call, std::size_t most,
                                   std::size_t least) const {
  const std::size_t pixels = run.batch * run.in[0] * run.in[1] * run.in[2];
  const std::size_t window = axis[0].kernel * axis[1].kernel * axis[2].kernel;
  const std::size_t work = std::max(pixels * channels * window / 8, run.lines() * run.out[2]) * m;
  // A thread alone reads weights once.
  const std::size_t parts = call.threads() > 1 ? tasks_for(work, call) : 1, lines = run.lines();
  run.cuts = (run.rows + most - 1) / most;
  if (lines * run.cuts < parts) run.cuts = std::max(run.cuts, std::min((parts + lines - 1) / lines, run.rows / least));
  return parts;
}

const float* ConvTransposeNode::line(const ConvTransposeRun& run, std::size_t image, std::int64_t d,
                                     std::int64_t h) const {
  if (!inside(d, run.in[0]) || !inside(h, run.in[1]) || run.in[2] == 0) return nullptr;
  return run.x + ((image * run.in[0] + size(d)) * run.in[1] + size(h)) * run.in[2] * channels;
}

}  // namespace modelflow::cpu
