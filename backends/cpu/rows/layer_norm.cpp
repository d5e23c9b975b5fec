// Layer and RMS normalization, row by row: a row is read from memory once and stays in the first cache until written.
#include <algorithm>
#include <utility>

#include "backends/broadcast.h"
#include "backends/call_attrs.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/loops/vector_code.h"
#include "backends/cpu/rows/kernels.h"

namespace modelflow::cpu {
namespace {

class LayerNorm : public Implementation {
 public:
  LayerNorm(const Call& call, const VectorCode& code)
      : loops_(code.norm),
        pointwise_(code.pointwise),
        rms_(CallAttrs(call).flag("rms")),
        residual_(CallAttrs(call).text("residual") != "none"),
        after_(CallAttrs(call).text("residual") == "after"),
        keep_sum_(CallAttrs(call).flag("keep_sum")),
        axes_(-static_cast<std::size_t>(CallAttrs(call).integer("axis"))),
        epsilon_(CallAttrs(call).number("epsilon")) {}

  void run(Invocation& call) const override {
    check(call);
    std::vector<std::span<const std::int64_t>> dims = {call.input(0).dims};
    if (residual_) dims.push_back(call.input(call.inputs() - 1).dims);
    const Broadcast shape("LayerNorm", dims);
    const std::span<const std::int64_t> y = shape.dims();
    if (y.size() < axes_) fail("x has fewer axes than are normalized");
    if (after_ && !std::ranges::equal(dims[0], dims[1])) fail("the residual is not of the shape of x");
    for (std::size_t i = 1; i < (rms_ ? 2U : 3U); ++i) {
      if (!std::ranges::equal(call.input(i).dims, y.last(axes_))) fail("scale or bias does not fit x");
    }
    NormRows first;
    first.n = size(y.last(axes_));
    first.epsilon = epsilon_;
    first.scale = floats(call.input(1));
    if (!rms_) first.bias = floats(call.input(2));
    first.y = static_cast<float*>(call.output(0, y));
    if (keep_sum_) first.sum = static_cast<float*>(call.output(1, y));
    if (shape.elements() > 0) normalize(shape, first, call);
  }

 private:
  static const float* floats(const View& view) { return static_cast<const float*>(view.data); }
  static std::size_t size(std::span<const std::int64_t> dims) { return static_cast<std::size_t>(element_count(dims)); }
  [[noreturn]] static void fail(const char* what) {
    throw Error(ErrorKind::invalid_input, std::string("LayerNorm: ") + what);
  }

  void normalize(const Broadcast& shape, const NormRows& first, Invocation& call) const {
    const std::size_t n = first.n, rows = shape.elements() / n;
    const auto row_loop = rms_ ? loops_.rms_norm : loops_.layer_norm;
    const std::size_t parts = std::min(tasks_for(rows * n, call), rows);
    const float* const operands[] = {floats(call.input(0)),
                                     residual_ ? floats(call.input(call.inputs() - 1)) : nullptr};
    // What repeats is written out, a row at a time, and so is what a residual is added to: that may be x, and y as
    // well.
    const bool whole = shape.whole(0) && (!residual_ || shape.whole(1));
    float* copies = whole && !after_ ? nullptr : reinterpret_cast<float*>(call.scratch(parts * 2 * n * sizeof(float)));
    share(call, rows, parts, [&](std::size_t begin, std::size_t end, std::size_t part) {
      const auto row_of = [&](std::size_t i, std::size_t r) {
        if (shape.whole(i)) return operands[i] + r * n;
        float* copy = copies + (2 * part + i) * n;
        shape.gather(i, operands[i], r * n, n, copy);
        return static_cast<const float*>(copy);
      };
      // Rows that follow each other where all lie in order, else one at a time.
      const std::size_t step = copies ? 1 : end - begin;
      for (std::size_t r = begin; r < end; r += step) {
        NormRows row = first;
        row.rows = step;
        row.x = row_of(0, r);
        if (residual_ && !after_) row.residual = row_of(1, r);
        row.y += r * n;
        if (row.sum) row.sum += r * n;
        if (!after_) {
          row_loop(row);
          continue;
        }
        float* const y = std::exchange(row.y, copies + 2 * part * n);
        row_loop(row);
        pointwise_.step(PointwiseOp::add, row.y, operands[1] + r * n, y, n);
      }
    });
  }

  void check(const Invocation& call) const {
    if (call.inputs() != 2U + (rms_ ? 0 : 1) + (residual_ ? 1 : 0)) fail("wrong number of inputs");
    for (std::size_t i = 0; i < call.inputs(); ++i) {
      if (call.input(i).dtype != DType::f32) fail("an input is not float32");
    }
  }

  const NormLoops& loops_;
  const PointwiseLoops& pointwise_;
  bool rms_, residual_, after_, keep_sum_;
  std::size_t axes_;
  float epsilon_;
};

Verdict accepts(const Call& call, const Target&) {
  for (const Operand& operand : call.inputs) {
    if (operand.dtype != DType::f32) return no("is not float32", operand.name);
  }
  if (CallAttrs(call).integer("axis") >= 0) return no("axis is not negative");
  return yes();
}

double cost(const Call& call, const Target& target) {
  const double bytes = 4 * call.in(0).shape.known_elements();
  const bool residual = CallAttrs(call).text("residual") != "none", sum = CallAttrs(call).flag("keep_sum");
  return target.stream((2 + (residual ? 1 : 0) + (sum ? 1 : 0)) * bytes);
}

}  // namespace

const Kernel layer_norm = {
    .op = "LayerNorm",
    .name = "cpu.layer_norm",
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<LayerNorm>(call, vector_code(target));
    },
};

}  // namespace modelflow::cpu
