// Upsampling to the nearest neighbour by whole factors: a line is widened once and copied, floats and bytes alike.
#include <algorithm>
#include <cstring>

#include "backends/call_attrs.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/pixels/kernels.h"
#include "backends/ops/repeats.h"

namespace modelflow::cpu {
namespace {

DType dtype_of(const Call& call) { return call.op == "QUpsample" ? DType::u8 : DType::f32; }

class Upsample : public Implementation {
 public:
  explicit Upsample(const Call& call) : dtype_(dtype_of(call)), factors_(CallAttrs(call).ints("factors")) {}

  void run(Invocation& call) const override {
    const View x = call.input(0);
    if (x.dtype != dtype_ || x.dims.size() != factors_.size() + 2)
      throw Error(ErrorKind::invalid_input, "Upsample: x is not " + std::string(name(dtype_)) + " of rank " +
                                                std::to_string(factors_.size() + 2));
    const bool flat = factors_.size() == 1;
    const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    const std::size_t up = flat ? 1 : size(factors_[0]), across = size(factors_.back());
    const std::size_t lines = size(x.dims[0]) * (flat ? 1 : size(x.dims[1]));
    const std::size_t width = size(x.dims[x.dims.size() - 2]), pixel = size(x.dims.back()) * byte_count(dtype_, {});
    Dims y(x.dims.begin(), x.dims.end());
    for (std::size_t i = 0; i < factors_.size(); ++i) y[i + 1] = ops::repeated("Upsample", y[i + 1], factors_[i]);
    auto* to = static_cast<std::byte*>(call.output(0, y));
    const std::size_t wide = width * across * pixel, total = lines * up * wide;
    if (total == 0) return;
    const auto* from = static_cast<const std::byte*>(x.data);
    const std::size_t parts = std::min(tasks_for(total / sizeof(float), call), lines);
    share(call, lines, parts, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t line = begin; line < end; ++line) {
        std::byte* first = to + line * up * wide;
        widen(from + line * width * pixel, width, pixel, across, first);
        for (std::size_t copy = 1; copy < up; ++copy) std::memcpy(first + copy * wide, first, wide);
      }
    });
  }

 private:
  static void widen(const std::byte* x, std::size_t width, std::size_t pixel, std::size_t across, std::byte* y) {
    for (std::size_t i = 0; i < width; ++i, x += pixel) {
      for (std::size_t copy = 0; copy < across; ++copy, y += pixel) std::memcpy(y, x, pixel);
    }
  }

  DType dtype_;
  Ints factors_;
};

Verdict accepts(const Call& call, const Target&) {
  if (call.op == "Upsample" && CallAttrs(call).text("mode") != "nearest") return no("repeats pixels only");
  if (call.inputs.size() != 1) return no("takes one input");
  if (call.in(0).dtype != dtype_of(call)) return no("is not " + std::string(name(dtype_of(call))), call.in(0).name);
  const Ints factors = CallAttrs(call).ints("factors");
  if (factors.empty() || factors.size() > 2) return no("takes 1 or 2 factors");
  return yes();
}

double cost(const Call& call, const Target& target) {
  const Shape& shape = call.outputs.empty() ? call.in(0).shape : call.outputs[0].shape;
  const double bytes = dtype_of(call) == DType::u8 ? 1 : 4;
  return 1e-6 + target.stream(1.5 * bytes * shape.known_elements());
}

std::unique_ptr<Implementation> create(const Call& call, const Target&) { return std::make_unique<Upsample>(call); }

}  // namespace

const Kernel upsample = {
    .op = "Upsample",
    .name = "cpu.upsample",
    .accepts = accepts,
    .cost = cost,
    .create = create,
};

const Kernel qupsample = {
    .op = "QUpsample",
    .name = "cpu.qupsample",
    .accepts = accepts,
    .cost = cost,
    .create = create,
};

}  // namespace modelflow::cpu
