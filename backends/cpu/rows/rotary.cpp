// Rotary position embedding: rows of heads in any order, with angles that broadcast.
#include <algorithm>
#include <array>

#include "backends/cpu/frame/share.h"
#include "backends/cpu/frame/typed_input.h"
#include "backends/cpu/loops/vector_code.h"
#include "backends/cpu/rows/kernels.h"
#include "backends/ops/rotary_attrs.h"

namespace modelflow::cpu {

namespace {

[[noreturn]] void fail(const std::string& message) { throw Error(ErrorKind::invalid_input, "Rotary: " + message); }

/// Batch, heads, sequence and what lies in a row of a head.
using Extents = std::array<std::size_t, 4>;

Extents heads_of(const View& x, const ops::RotaryAttrs& attrs) {
  if (x.dims.size() != (attrs.flat ? 3u : 4u)) fail("x is not of its rank");
  const auto at = [&](std::size_t i) { return static_cast<std::size_t>(x.dims[i]); };
  if (!attrs.flat) return {at(0), at(1), at(2), at(3)};
  const auto heads = static_cast<std::size_t>(attrs.heads);
  if (at(2) % heads != 0) fail("the channels of x do not divide into its heads");
  return {at(0), heads, at(1), at(2) / heads};
}

/// Where the angles of a row lie, in floats: steps of batch, heads and sequence, 0 where they are repeated.
struct Angles {
  std::array<std::size_t, 3> step{};
  std::size_t width = 1;

  Angles(const View& view, const Extents& x) {
    const std::size_t rank = view.dims.size();
    if (rank < 1 || rank > 4) fail("the angles are not of rank 1 to 4");
    width = static_cast<std::size_t>(view.dims[rank - 1]);
    std::size_t next = width;
    for (std::size_t axis = 3; axis-- > 0 && axis + rank >= 4;) {
      const auto dim = static_cast<std::size_t>(view.dims[axis + rank - 4]);
      if (dim != 1 && dim != x[axis]) fail("the angles do not fit x");
      if (dim != 1) step[axis] = next;
      next *= dim;
    }
  }
};

class Rotary : public Implementation {
 public:
  Rotary(const Call& call, const VectorCode& code) : attrs_(call) {
    const RotaryLoops& loops = code.rotary;
    if (attrs_.interleaved) {
      turn_ = attrs_.half_width ? loops.neighbours : loops.neighbours_wide;
    } else {
      turn_ = attrs_.half_width ? loops.halves : loops.halves_wide;
    }
  }

  void run(Invocation& call) const override {
    if (call.inputs() != 3) fail("takes three inputs");
    for (std::size_t i = 0; i < 3; ++i)
      if (call.input(i).dtype != DType::f32) fail("an input is not float32");
    const View x = call.input(0), cos = call.input(1), sin = call.input(2);
    const Extents extents = heads_of(x, attrs_);
    const Angles of_cos(cos, extents), of_sin(sin, extents);
    if (of_cos.width != of_sin.width) fail("cos and sin differ in width");
    const std::size_t size = extents[3], covered = of_cos.width * (attrs_.half_width ? 2 : 1);
    if (covered % 2 != 0 || (attrs_.partial ? covered > size : covered != size)) fail("the angles do not fit a head");
    RotaryRow first;
    first.pairs = covered / 2;
    first.x = static_cast<const float*>(x.data);
    first.cos = static_cast<const float*>(cos.data);
    first.sin = static_cast<const float*>(sin.data);
    first.y = static_cast<float*>(call.output(0, x.dims));
    const std::size_t rows = extents[0] * extents[1] * extents[2];
    if (rows * size == 0) return;
    share(call, rows, std::min(tasks_for(rows * size, call), rows),
          [&](std::size_t begin, std::size_t end, std::size_t) {
            for (std::size_t r = begin; r < end; ++r) turn(first, r, extents, of_cos, of_sin);
          });
  }

 private:
  /// Row `r` of x as it lies in memory.
  void turn(const RotaryRow& first, std::size_t r, const Extents& x, const Angles& cos, const Angles& sin) const {
    const std::size_t inner = r % x[attrs_.flat ? 1 : 2], rest = r / x[attrs_.flat ? 1 : 2];
    const std::size_t outer = rest % x[attrs_.flat ? 2 : 1], batch = rest / x[attrs_.flat ? 2 : 1];
    const std::size_t head = attrs_.flat ? inner : outer, row = attrs_.flat ? outer : inner;
    const auto place = [&](const Angles& angles) {
      return batch * angles.step[0] + head * angles.step[1] + row * angles.step[2];
    };
    const std::size_t covered = 2 * first.pairs;
    RotaryRow here = first;
    here.x += r * x[3];
    here.y += r * x[3];
    here.cos += place(cos);
    here.sin += place(sin);
    turn_(here);
    if (here.y != here.x) std::copy(here.x + covered, here.x + x[3], here.y + covered);
  }

  ops::RotaryAttrs attrs_;
  void (*turn_)(const RotaryRow&);
};

double cost(const Call& call, const Target& target) {
  return target.stream(4 * (2 * call.in(0).shape.known_elements() + 2 * call.in(1).shape.known_elements()));
}

}  // namespace

const Kernel rotary = {
    .op = "Rotary",
    .name = "cpu.rotary",
    .accepts = accepts_float32,
    .cost = cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<Rotary>(call, vector_code(target));
    },
};

}  // namespace modelflow::cpu
