// Linear and cubic interpolation, axis by axis: a line of the image is brought to its new width once, and every line of
// the result mixes two or four such lines, which wait in the first cache. Channels last the numbers of a pixel lie side
// by side; channels first every channel is an image of its own.
#include <algorithm>
#include <cstring>
#include <limits>

#include "backends/call_attrs.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/loops/vector_code.h"
#include "backends/cpu/pixels/kernels.h"
#include "backends/cpu/pixels/taps.h"

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
  Interpolate(const Call& call, const VectorCode& code)
      : loops_(code.resize),
        scales_(CallAttrs(call).floats("scales")),
        last_(CallAttrs(call).text("layout") == "NHWC") {
    const CallAttrs attrs(call);
    how_ = {attrs.text("mode") == "cubic", *coordinates_of(attrs.text("coordinate_transformation_mode")),
            attrs.number("cubic_coeff_a"), attrs.flag("exclude_outside")};
  }

  void run(Invocation& call) const override {
    const View x = call.input(0);
    const std::size_t rank = x.dims.size();
    if (x.dtype != DType::f32 || rank < 3 || rank > 4) fail("x is not float32 of rank 3 or 4");
    Dims y(x.dims.begin(), x.dims.end());
    const std::size_t axis = last_ ? 1 : 2, other = axis + (rank == 4 ? 1 : 0);
    const ResizedAxis across = resize(call, rank - 1, y[other]);
    const ResizedAxis down = rank == 4 ? resize(call, 2, y[axis]) : ResizedAxis{1, 1, 1};
    const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    const std::size_t channels = size(x.dims[last_ ? rank - 1 : 1]), batch = size(x.dims[0]);
    std::size_t total = batch;
    for (const std::size_t extent : {channels, down.to, across.to})
      if (__builtin_mul_overflow(total, extent, &total)) fail("no tensor has room for the result");
    if (total > std::numeric_limits<std::size_t>::max() / 8) fail("no tensor has room for the result");
    auto* to = static_cast<float*>(call.output(0, y));
    if (total == 0) return;
    if (down.from == 0 || across.from == 0) fail("there is nothing to enlarge");
    // As ONNX Runtime does by any scales that change no extent. No number is multiplied: 0 * inf would be NaN.
    if (down.from == down.to && across.from == across.to) {
      std::memcpy(to, x.data, total * sizeof(float));
      return;
    }
    Problem p{last_ ? batch : batch * channels,
              down.from,
              across.from,
              last_ ? channels : 1,
              down.to,
              across.to,
              rank == 3,
              make_taps(how_, down, call.scratch(bytes_of_taps(how_, down))),
              make_taps(how_, across, call.scratch(bytes_of_taps(how_, across))),
              static_cast<const float*>(x.data),
              to,
              loops_};
    const std::size_t pieces = (p.new_wide + p.piece() - 1) / p.piece(), items = p.images * pieces * p.new_high;
    const std::size_t tasks = std::min(tasks_for(total, call), items), floats = Lines::floats(p);
    auto* memory = reinterpret_cast<float*>(call.scratch(tasks * floats * sizeof(float)));
    share(call, items, tasks,
          [&](std::size_t begin, std::size_t end, std::size_t task) { work(p, begin, end, memory + task * floats); });
  }

 private:
  /// One axis, in the order that sizes and scales have; `extent` becomes what it is in the result.
  ResizedAxis resize(Invocation& call, std::size_t axis, std::int64_t& extent) const {
    const std::int64_t from = extent;
    float scale = 1;
    if (call.inputs() > 1) {
      extent = sizes(call)[axis];
      scale = from > 0 ? static_cast<float>(extent) / static_cast<float>(from) : 1;
      if (extent < 0 || (extent == 0) != (from == 0)) fail("a size is not positive");
    } else {
      if (scales_.size() != call.input(0).dims.size() - 2) fail("scales do not fit the rank");
      scale = scales_[axis - 2];
      const float scaled = scale * static_cast<float>(from);
      if (!(scale > 0) || !(scaled < 0x1p31F)) fail("a scale that no tensor has room for");
      extent = static_cast<std::int64_t>(scaled);
    }
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    if (from > kMost || extent > kMost) fail("an image is too large");
    return {static_cast<std::size_t>(from), static_cast<std::size_t>(extent), scale};
  }

  std::span<const std::int64_t> sizes(Invocation& call) const {
    const View x = call.input(0), list = call.input(1);
    if (list.dtype != DType::i64 || list.dims.size() != 1 || list.dims[0] != std::ssize(x.dims))
      fail("there is not one size for each axis");
    const std::span sizes(static_cast<const std::int64_t*>(list.data), x.dims.size());
    if (sizes[0] != x.dims[0] || sizes[1] != x.dims[last_ ? x.dims.size() - 1 : 1])
      fail("the sizes change the batch or the channels");
    return sizes;
  }

  const ResizeLoops& loops_;
  Floats scales_;
  bool last_;
  Interpolation how_;
};

Verdict accepts(const Call& call, const Target&) {
  const CallAttrs attrs(call);
  const Operand& x = call.in(0);
  if (attrs.text("mode") != "linear" && attrs.text("mode") != "cubic") return no("mode is neither linear nor cubic");
  if (x.dtype != DType::f32) return no("is not float32", x.name);
  if (!x.shape.has_rank() || x.shape.rank() < 3 || x.shape.rank() > 4) return no("is not of one or two axes", x.name);
  const std::string where = attrs.text("coordinate_transformation_mode");
  if (!coordinates_of(where)) return no("coordinates are " + where);
  if (call.has(1) && call.in(1).dtype != DType::i64) return no("is not int64", call.in(1).name);
  return yes();
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
