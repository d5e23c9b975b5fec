// ConvTranspose on a GPU: windows that do not overlap, so a product of pixels by weights, which are laid out for the
// device once, when the session is made.
#include "backends/call_attrs.h"
#include "backends/cuda/epilogue.h"
#include "backends/cuda/filters.h"
#include "backends/cuda/invocation.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"
#include "backends/cuda/work.h"
#include "backends/ops/transposed_windows.h"

namespace modelflow::cuda {
namespace {

constexpr const char* kOp = "ConvTranspose";

[[noreturn]] void fail(const char* why) { throw Error(ErrorKind::invalid_input, std::string(kOp) + ": " + why); }

class ConvTranspose : public Implementation {
 public:
  ConvTranspose(const Call& call, const DeviceLibrary& library, const Target& target)
      : library_(library),
        target_(target),
        has_bias_(CallAttrs(call).flag("has_bias")),
        activation_(activation_of(call)),
        weights_(call.in(1).constant->dims()),
        w_(uploaded(library, turned(*call.in(1).constant, true))) {}

  void run(Invocation& call) const override {
    if (call.inputs() != (has_bias_ ? 3U : 2U)) fail("wrong number of inputs");
    ConvTransposeLaunch c = {};
    c.number = shared_number(kOp, call);
    const Dims y = read(call.input(0).dims, c);
    c.epilogue.scale = 1;
    c.epilogue.activation = activation_;
    if (has_bias_) {
      const View bias = call.input(2);
      if (bias.dims.size() != 1 || bias.dims[0] != weights_[1]) fail("bias does not fit the result");
      c.epilogue.bias = bias.data;
    }
    c.x = call.input(0).data;
    c.w = w_.data();
    c.y = call.output(0, y);
    if (element_count(y) == 0) return;
    c.tensor_cores = c.number != Number::f32 && target_.sm >= kTensorCores;
    c.large = large_tiles(c.pixels, element_count(std::span(weights_).subspan(1)), 1, target_);
    check(kOp, library_.conv_transpose(c, call.stream()));
  }

 private:
  /// Geometry from x; one axis is an image of one row, two are one plane of a volume.
  Dims read(std::span<const std::int64_t> x, ConvTransposeLaunch& c) const {
    if (x.size() != weights_.size()) fail("x is not of the rank of the weights");
    if (x.back() != weights_[0]) fail("x has other channels than the weights");
    Dims y(x.begin(), x.end());
    for (std::size_t i = 2; i < weights_.size(); ++i) y[i - 1] *= weights_[i];
    y.back() = weights_[1];
    const auto small = [](std::int64_t number) { return static_cast<std::int32_t>(number); };
    c.pixels = element_count(x.first(x.size() - 1));
    c.width = x[x.size() - 2];
    c.height = x.size() > 4 ? x[x.size() - 3] : 1;
    c.channels = small(weights_[0]), c.filters = small(weights_[1]);
    const auto kernel = [&](std::size_t from_last) {
      return small(weights_.size() >= 2 + from_last ? weights_[weights_.size() - from_last] : 1);
    };
    c.kernel_d = kernel(3), c.kernel_h = kernel(2), c.kernel_w = kernel(1);
    return y;
  }

  const DeviceLibrary& library_;
  Target target_;
  bool has_bias_;
  ActivationSpec activation_;
  Dims weights_;
  DeviceMemory w_;
};

Verdict accepts(const Call& call, const Target&) {
  if (Verdict verdict = accepts_numbers(call); !verdict) return verdict;
  const Operand& w = call.in(1);
  if (!w.constant) return no("weights are not constant", w.name);
  if (w.constant->rank() < 3 || w.constant->rank() > 5)
    return no("has " + std::to_string(w.constant->rank()) + " axes, not 3 to 5", w.name);
  if (w.constant->elements() == 0) return no("weights are empty", w.name);
  if (!ops::transposed_windows(call).apart()) return no("the windows overlap or are padded", w.name);
  constexpr std::int64_t kMost = 1 << 20;  // tiles of results lie along an axis of the grid that ends there
  const bool many = element_count(std::span(w.constant->dims()).subspan(1)) > kMost || w.constant->dims()[0] > kMost;
  return many ? no("weights are too many", w.name) : yes();
}

}  // namespace

const Kernel conv_transpose = {
    .op = "ConvTranspose",
    .name = "cuda.conv_transpose",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = product_seconds,
    .create = create<ConvTranspose>,
};

}  // namespace modelflow::cuda
