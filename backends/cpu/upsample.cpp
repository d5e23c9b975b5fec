// Nearest neighbours with whole factors: a line is widened once and copied.
#include <algorithm>
#include <cstring>

#include "backends/cpu/channel_mean.h"
#include "backends/cpu/share.h"
#include "backends/kernels.h"

namespace modelflow::cpu {
namespace {

class Upsample : public Implementation {
 public:
  explicit Upsample(const Call& call) : factors_(call.attrs.ints("factors")) {}

  void run(Invocation& call) const override {
    const View x = call.input(0);
    if (x.dtype != DType::f32 || x.dims.size() != factors_.size() + 2)
      throw Error(ErrorKind::invalid_input,
                  "Upsample: x is not float32 of rank " + std::to_string(factors_.size() + 2));
    const bool flat = factors_.size() == 1;
    const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    const std::size_t up = flat ? 1 : size(factors_[0]), across = size(factors_.back());
    const std::size_t lines = size(x.dims[0]) * (flat ? 1 : size(x.dims[1]));
    const std::size_t width = size(x.dims[x.dims.size() - 2]), channels = size(x.dims.back());
    Dims y(x.dims.begin(), x.dims.end());
    for (std::size_t i = 0; i < factors_.size(); ++i) y[i + 1] *= factors_[i];
    auto* to = static_cast<float*>(call.output(0, y));
    const std::size_t wide = width * across * channels, total = lines * up * wide;
    if (total == 0) return;
    const auto* from = static_cast<const float*>(x.data);
    const std::size_t parts = std::min(tasks_for(total, call), lines);
    share(call, lines, parts, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t line = begin; line < end; ++line) {
        float* first = to + line * up * wide;
        widen(from + line * width * channels, width, channels, across, first);
        for (std::size_t copy = 1; copy < up; ++copy) std::memcpy(first + copy * wide, first, wide * sizeof(float));
      }
    });
  }

 private:
  static void widen(const float* x, std::size_t width, std::size_t channels, std::size_t across, float* y) {
    for (std::size_t i = 0; i < width; ++i, x += channels) {
      for (std::size_t copy = 0; copy < across; ++copy, y += channels) std::memcpy(y, x, channels * sizeof(float));
    }
  }

  Ints factors_;
};

Verdict accepts(const Call& call) {
  if (call.inputs.size() != 1) return no("takes one input");
  if (call.in(0).dtype != DType::f32) return no("is not float32", call.in(0).name);
  const Ints factors = call.attrs.ints("factors");
  if (factors.empty() || factors.size() > 2) return no("takes 1 or 2 factors");
  return yes();
}

double cost(const Call& call, const Target& target) {
  const Shape& shape = call.outputs.empty() ? call.in(0).shape : call.outputs[0].shape;
  return 1e-6 + target.stream(6 * shape.known_elements());
}

}  // namespace

const Kernel upsample = {
    .op = "Upsample",
    .name = "cpu.upsample",
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target&) -> std::unique_ptr<Implementation> {
      return std::make_unique<Upsample>(call);
    },
};

}  // namespace modelflow::cpu
