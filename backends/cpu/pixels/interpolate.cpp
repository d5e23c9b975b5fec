// Linear and cubic interpolation, axis by axis: a line of the image is brought to its new width once, and every line of
// the result mixes two or four such lines, which wait in the first cache. Channels last the numbers of a pixel lie side
// by side; channels first every channel is an image of its own.
#include <algorithm>
#include <cstring>

#include "backends/cpu/frame/share.h"
#include "backends/cpu/loops/vector_code.h"
#include "backends/cpu/pixels/kernels.h"
#include "backends/cpu/pixels/taps.h"
#include "backends/ops/resized.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kPiece = 2048;  // floats of a line that are done at once, so that lines wait in the first cache

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorKind::invalid_input, "Upsample: " + what); }

/// One run: what all tasks read.
struct Problem {
  std::size_t images, high, wide, channels, new_high, new_wide;  ///< of an image of one axis, both heights are 1
  bool flat;
  Taps down, across;
  const float* x;
  float* y;
  const ResizeLoops& loops;

  std::size_t piece() const {  // pixels
    const std::size_t most = std::max<std::size_t>(kPiece / channels, 1);
    const std::size_t pieces = (new_wide + most - 1) / most;
    return (new_wide + pieces - 1) / pieces;
  }
};

/// Lines of one piece of one image, those that were brought to their new width last.
class Lines {
 public:
  Lines(const Problem& p, float* memory) : p_(p), memory_(memory), room_(p.piece() * p.channels) {}

  static std::size_t floats(const Problem& p) { return p.down.count * p.piece() * p.channels; }

  void begin(const float* image, std::size_t first, std::size_t end) {
    image_ = image, first_ = first, end_ = end;
    std::fill_n(held_, kMost, kNone);
  }

  /// Lines that one of the result needs are neighbours, and there is room for as many.
  const float* get(std::int32_t line) {
    const std::size_t at = static_cast<std::size_t>(line) % p_.down.count;
    float* to = memory_ + at * room_;
    if (held_[at] != line) {
      p_.loops.across(image_ + static_cast<std::size_t>(line) * p_.wide * p_.channels, p_.across, first_, end_,
                      p_.channels, to);
      held_[at] = line;
    }
    return to;
  }

 private:
  static constexpr std::size_t kMost = 4;
  static constexpr std::int32_t kNone = -1;

  const Problem& p_;
  float* memory_;
  std::size_t room_;
  const float* image_ = nullptr;
  std::size_t first_ = 0, end_ = 0;
  std::int32_t held_[kMost] = {};
};

/// The lines [line, end) of one piece, the pixels [first, last), of the result.
void work(const Problem& p, Lines& lines, std::size_t line, std::size_t end, std::size_t first, std::size_t last,
          float* y) {
  const float* from[4];
  float weight[4];
  for (; line < end; ++line, y += p.new_wide * p.channels) {
    for (std::size_t t = 0; t < p.down.count; ++t) {
      from[t] = lines.get(p.down.index[t * p.down.stride + line]);
      weight[t] = p.down.weight[t * p.down.stride + line];
    }
    p.loops.between(from, weight, p.down.count, (last - first) * p.channels, y);
  }
}

/// The lines [begin, end) of the result, counted over the images and their pieces.
void work(const Problem& p, std::size_t begin, std::size_t end, float* memory) {
  const std::size_t piece = p.piece(), pieces = (p.new_wide + piece - 1) / piece;
  Lines lines(p, memory);
  while (begin < end) {
    const std::size_t unit = begin / p.new_high, line = begin % p.new_high, image = unit / pieces;
    const std::size_t lasting = std::min(end - begin, p.new_high - line);
    const std::size_t first = unit % pieces * piece, last = std::min(first + piece, p.new_wide);
    const float* x = p.x + image * p.high * p.wide * p.channels;
    float* y = p.y + ((image * p.new_high + line) * p.new_wide + first) * p.channels;
    begin += lasting;
    if (p.flat) {
      p.loops.across(x, p.across, first, last, p.channels, y);
      continue;
    }
    lines.begin(x, first, last);
    work(p, lines, line, line + lasting, first, last, y);
  }
}

class Interpolate : public Implementation {
 public:
  Interpolate(const Call& call, const VectorCode& code) : loops_(code.resize), resizing_(call) {}

  void run(Invocation& call) const override {
    const View x = call.input(0);
    if (x.dtype != DType::f32) fail("x is not float32");
    const ops::Resized made = resizing_.of(x.dims, sizes(call));
    auto* to = static_cast<float*>(call.output(0, made.dims));
    if (made.numbers == 0) return;
    if (made.same()) {
      std::memcpy(to, x.data, made.numbers * sizeof(float));
      return;
    }
    const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    const Interpolation& how = resizing_.how();
    Problem p{size(made.images),
              size(made.high.from),
              size(made.wide.from),
              size(made.channels),
              size(made.high.to),
              size(made.wide.to),
              made.flat,
              make_taps(how, made.high, call.scratch(bytes_of_taps(how, made.high))),
              make_taps(how, made.wide, call.scratch(bytes_of_taps(how, made.wide))),
              static_cast<const float*>(x.data),
              to,
              loops_};
    const std::size_t pieces = (p.new_wide + p.piece() - 1) / p.piece(), items = p.images * pieces * p.new_high;
    const std::size_t tasks = std::min(tasks_for(made.numbers, call), items), floats = Lines::floats(p);
    auto* memory = reinterpret_cast<float*>(call.scratch(tasks * floats * sizeof(float)));
    share(call, items, tasks,
          [&](std::size_t begin, std::size_t end, std::size_t task) { work(p, begin, end, memory + task * floats); });
  }

 private:
  static std::span<const std::int64_t> sizes(Invocation& call) {
    if (call.inputs() < 2) return {};
    const View list = call.input(1);
    if (list.dtype != DType::i64 || list.dims.size() != 1 || list.dims[0] != std::ssize(call.input(0).dims))
      fail("there is not one size for each axis");
    return {static_cast<const std::int64_t*>(list.data), static_cast<std::size_t>(list.dims[0])};
  }

  const ResizeLoops& loops_;
  ops::Resizing resizing_;
};

Verdict accepts(const Call& call, const Target&) {
  if (call.in(0).dtype != DType::f32) return no("is not float32", call.in(0).name);
  return ops::accepts_resizing(call);
}

double cost(const Call& call, const Target& target) {
  const double y = call.outputs.empty() ? 1 : call.outputs[0].shape.known_elements();
  return 1e-6 + target.stream(4 * (call.in(0).shape.known_elements() + 2 * y));
}

}  // namespace

const Kernel interpolate = {
    .op = "Upsample",
    .name = "cpu.interpolate",
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<Interpolate>(call, vector_code(target));
    },
};

}  // namespace modelflow::cpu
