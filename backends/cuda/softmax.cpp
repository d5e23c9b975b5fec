// Softmax on a GPU, along any axis.
#include <algorithm>

#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"
#include "backends/cuda/work.h"
#include "backends/ops/read_attrs.h"
#include "backends/ops/softmax_attrs.h"

namespace modelflow::cuda {
namespace {

constexpr const char* kOp = "Softmax";
[[noreturn]] void fail(const char* what) { throw Error(ErrorKind::invalid_input, std::string("Softmax: ") + what); }

class Softmax : public Implementation {
 public:
  Softmax(const Call& call, const DeviceLibrary& library) : library_(library), softmax_(call) {}

  void run(Invocation& call) const override {
    if (call.inputs() != softmax_.inputs()) fail("wrong number of inputs");
    const View x = call.input(0);
    const std::optional<Number> number = number_of(x.dtype);
    if (!number) fail("x is of no type that kernels compute with");
    if (x.dims.size() < softmax_.from_end) fail("axis lies outside of x");
    SoftmaxLaunch launch = {};
    launch.number = *number;
    const std::size_t axis = x.dims.size() - softmax_.from_end;
    launch.outer = element_count(x.dims.first(axis));
    launch.n = x.dims[axis];
    launch.inner = element_count(x.dims.subspan(axis + 1));
    launch.x = x.data;
    launch.scale = softmax_.scale;
    launch.log = softmax_.log;
    if (softmax_.has_mask) set_mask(call, launch);
    launch.y = call.output(0, x.dims);
    if (element_count(x.dims) > 0) check(kOp, library_.softmax(launch, call.stream()));
  }

 private:
  void set_mask(const Invocation& call, SoftmaxLaunch& launch) const {
    const View x = call.input(0), mask = call.input(1);
    if (mask.dtype != (softmax_.boolean_mask ? DType::boolean : x.dtype)) fail("the mask is of another type");
    const Broadcast shape(kOp, {x.dims, mask.dims});
    if (!std::ranges::equal(shape.dims(), x.dims)) fail("the mask is larger than x");
    launch.places = places_of(kOp, shape, 2);
    launch.mask_step = mask.dims.empty() || mask.dims.back() == 1 ? 0 : 1;
    launch.on = softmax_.false_replaces ? 0 : softmax_.mask_true;  // where one replaces, the other adds nothing
    launch.off = softmax_.true_replaces ? 0 : softmax_.mask_false;
    launch.on_replaces = softmax_.true_replaces;
    launch.off_replaces = softmax_.false_replaces;
    if (softmax_.boolean_mask)
      launch.mask_flags = static_cast<const std::uint8_t*>(mask.data);
    else
      launch.mask_numbers = mask.data;
  }

  const DeviceLibrary& library_;
  ops::SoftmaxAttrs softmax_;
};

Verdict accepts(const Call& call, const Target&) {
  Verdict why;
  const std::optional<ops::SoftmaxAttrs> softmax = ops::read_attrs<ops::SoftmaxAttrs>(call, why);
  if (!softmax) return why;
  if (Verdict verdict = accepts_axes(call); !verdict) return verdict;
  const Operand& x = call.in(0);
  if (!number_of(x.dtype)) return no("is not float32, float16 or bfloat16", x.name);
  if (softmax->has_mask && call.in(1).dtype != (softmax->boolean_mask ? DType::boolean : x.dtype))
    return no("is of another type", call.in(1).name);
  return yes();
}

}  // namespace

const Kernel softmax = {
    .op = kOp,
    .name = "cuda.softmax",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = moving_seconds,
    .create = create<Softmax>,
};

}  // namespace modelflow::cuda
