// Softmax along one axis: over rows where it is the last one, else over columns side by side.
#include <algorithm>

#include "backends/broadcast.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/loops/vector_code.h"
#include "backends/cpu/rows/kernels.h"
#include "backends/ops/read_attrs.h"
#include "backends/ops/softmax_attrs.h"

namespace modelflow::cpu {
namespace {

[[noreturn]] void fail(const char* what) { throw Error(ErrorKind::invalid_input, std::string("Softmax: ") + what); }

class Softmax : public Implementation {
 public:
  Softmax(const Call& call, const VectorCode& code) : softmax_(call), loops_(code.softmax) {}

  void run(Invocation& call) const override {
    if (call.inputs() != softmax_.inputs()) fail("wrong number of inputs");
    const View x = call.input(0);
    if (x.dtype != DType::f32) fail("x is not float32");
    if (x.dims.size() < softmax_.from_end) fail("axis lies outside of x");
    const auto* from = static_cast<const float*>(x.data);
    if (softmax_.from_end == 1) return rows(call, x, from);
    columns(call, x, from, static_cast<float*>(call.output(0, x.dims)));
  }

 private:
  void rows(Invocation& call, const View& x, const float* from) const {
    std::vector<std::span<const std::int64_t>> operands = {x.dims};
    if (softmax_.has_mask) operands.push_back(call.input(1).dims);
    const Broadcast shape("Softmax", operands);
    if (!std::ranges::equal(shape.dims(), x.dims)) fail("the mask is larger than x");
    const AttentionMask mask = softmax_.has_mask ? mask_of(call.input(1)) : AttentionMask{};
    auto* to = static_cast<float*>(call.output(0, x.dims));
    if (shape.elements() == 0) return;
    const auto n = static_cast<std::size_t>(x.dims.back());
    const std::size_t count = shape.elements() / n;
    share(call, count, std::min(tasks_for(4 * shape.elements(), call), count),
          [&](std::size_t begin, std::size_t end, std::size_t) {
            for (std::size_t r = begin; r < end; ++r) {
              const std::size_t at = mask ? shape.offset(1, r * n) : 0;
              loops_.row({n, from + r * n, mask.from(at, 0), softmax_.scale, softmax_.log, to + r * n});
            }
          });
  }

  AttentionMask mask_of(const View& view) const {
    if (view.dtype != softmax_.mask_type()) fail("the mask is of another type");
    AttentionMask mask;
    if (softmax_.boolean_mask) {
      mask.flags = static_cast<const std::uint8_t*>(view.data);
    } else {
      mask.numbers = static_cast<const float*>(view.data);
    }
    mask.on = softmax_.mask_true;
    mask.off = softmax_.mask_false;
    mask.on_replaces = softmax_.true_replaces;
    mask.off_replaces = softmax_.false_replaces;
    mask.stride = mask.flag_stride = {1, view.dims.empty() || view.dims.back() == 1 ? 0u : 1u};
    return mask;
  }

  void columns(Invocation& call, const View& x, const float* from, float* to) const {
    const auto product = [](std::span<const std::int64_t> dims) {
      return static_cast<std::size_t>(element_count(dims));
    };
    const std::size_t behind = softmax_.from_end - 1, all = product(x.dims);
    if (all == 0) return;
    const std::size_t inner = product(x.dims.last(behind));
    const auto n = static_cast<std::size_t>(x.dims[x.dims.size() - softmax_.from_end]);
    const std::size_t blocks = (inner + kSoftmaxColumns - 1) / kSoftmaxColumns, units = all / (n * inner) * blocks;
    share(call, units, std::min(tasks_for(4 * all, call), units), [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t u = begin; u < end; ++u) {
        const std::size_t first = u % blocks * kSoftmaxColumns, at = u / blocks * n * inner + first;
        const std::size_t count = std::min(kSoftmaxColumns, inner - first);
        loops_.columns({n, inner, count, from + at, softmax_.scale, softmax_.log, to + at});
      }
    });
  }

  ops::SoftmaxAttrs softmax_;
  const SoftmaxLoops& loops_;
};

Verdict accepts(const Call& call, const Target&) {
  if (call.in(0).dtype != DType::f32) return no("is not float32", call.in(0).name);
  Verdict why;
  const std::optional<ops::SoftmaxAttrs> softmax = ops::read_attrs<ops::SoftmaxAttrs>(call, why);
  if (!softmax) return why;
  if (softmax->has_mask && call.in(1).dtype != softmax->mask_type()) return no("is of another type", call.in(1).name);
  return yes();
}

double cost(const Call& call, const Target& target) {
  const double elements = call.in(0).shape.known_elements();
  const double mask = call.has(1) ? 4 * call.in(1).shape.known_elements() : 0;
  return std::max(target.stream(8 * elements + mask), target.compute(20 * elements, 0.3));
}

}  // namespace

const Kernel softmax = {
    .op = "Softmax",
    .name = "cpu.softmax",
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<Softmax>(call, vector_code(target));
    },
};

}  // namespace modelflow::cpu
