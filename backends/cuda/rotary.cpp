// Rotary position embedding on a GPU: rows of heads in either layout, with angles that broadcast.
#include <array>

#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"
#include "backends/cuda/work.h"
#include "backends/ops/rotary_attrs.h"

namespace modelflow::cuda {
namespace {

constexpr const char* kOp = "Rotary";
[[noreturn]] void fail(const char* what) { throw Error(ErrorKind::invalid_input, std::string("Rotary: ") + what); }

/// Of batch, heads and sequence.
using Three = std::array<std::int64_t, 3>;

/// Elements from the angles of one row to those of the next along each of these, 0 where they are repeated.
Three steps_of(const View& angles, const Three& x) {
  const std::size_t rank = angles.dims.size();
  if (rank < 1 || rank > 4) fail("the angles are not of rank 1 to 4");
  Three steps = {};
  std::int64_t next = angles.dims[rank - 1];
  for (std::size_t axis = 3; axis-- > 0 && axis + rank >= 4;) {
    const std::int64_t dim = angles.dims[axis + rank - 4];
    if (dim != 1 && dim != x[axis]) fail("the angles do not fit x");
    if (dim != 1) steps[axis] = next;
    next *= dim;
  }
  return steps;
}

class Rotary : public Implementation {
 public:
  Rotary(const Call& call, const DeviceLibrary& library) : library_(library), attrs_(call) {}

  void run(Invocation& call) const override {
    if (call.inputs() != 3) fail("takes three inputs");
    RotaryLaunch launch = {};
    launch.number = shared_number(kOp, call);
    const View x = call.input(0), cos = call.input(1), sin = call.input(2);
    const Three rows = rows_of(x, launch.size), cos_steps = steps_of(cos, rows), sin_steps = steps_of(sin, rows);
    const std::int64_t width = cos.dims.back(), covered = width * (attrs_.half_width ? 2 : 1);
    if (width != sin.dims.back()) fail("cos and sin differ in width");
    if (covered % 2 != 0 || (attrs_.partial ? covered > launch.size : covered != launch.size))
      fail("the angles do not fit a head");
    launch.pairs = covered / 2;
    for (std::size_t i = 0; i < 3; ++i) {  // as rows lie in memory
      const std::size_t axis = attrs_.flat && i > 0 ? 3 - i : i;
      launch.extents[i] = rows[axis];
      launch.cos_steps[i] = cos_steps[axis];
      launch.sin_steps[i] = sin_steps[axis];
    }
    launch.interleaved = attrs_.interleaved;
    launch.half_width = attrs_.half_width;
    launch.x = x.data;
    launch.cos = cos.data;
    launch.sin = sin.data;
    launch.y = call.output(0, x.dims);
    if (element_count(x.dims) > 0) check(kOp, library_.rotary(launch, call.stream()));
  }

 private:
  Three rows_of(const View& x, std::int64_t& size) const {
    if (x.dims.size() != (attrs_.flat ? 3U : 4U)) fail("x is not of its rank");
    size = x.dims.back();
    if (!attrs_.flat) return {x.dims[0], x.dims[1], x.dims[2]};
    if (size % attrs_.heads != 0) fail("the channels of x do not divide into its heads");
    size /= attrs_.heads;
    return {x.dims[0], attrs_.heads, x.dims[1]};
  }

  const DeviceLibrary& library_;
  ops::RotaryAttrs attrs_;
};

Verdict accepts(const Call& call, const Target&) {
  Call copy = call;
  if (Verdict verdict = find_fused_op(kOp)->infer(copy); !verdict) return verdict;
  return accepts_numbers(call);
}

}  // namespace

const Kernel rotary = {
    .op = kOp,
    .name = "cuda.rotary",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = moving_seconds,
    .create = create<Rotary>,
};

}  // namespace modelflow::cuda
