// Concatenation of channels, side by side or in turn, with upsampling of its inputs: one pass over the result on all
// threads, which reads an input that is to be repeated where it is still small.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/call_attrs.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/pixels/kernels.h"
#include "backends/ops/repeats.h"

namespace modelflow::cpu {
namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// One input, or one group of its channels: where its lines are and how often they count. From one pixel to the next
/// are `pixel` floats.
struct Part {
  const float* data;
  std::size_t height, width, channels, up, across, pixel;
  std::size_t high, wide;  ///< in the result

  /// The first pixel of the line that is read for this line of the result.
  const float* line(std::size_t of_result) const {
    return data + (of_result / high * height + of_result % high / up) * width * pixel;
  }
};

/// Two groups in turn: a vectorizing compiler knows this loop.
void in_turn(const float* a, const float* b, std::size_t channels, float* y) {
  for (std::size_t i = 0; i < channels; ++i) {
    y[2 * i] = a[i];
    y[2 * i + 1] = b[i];
  }
}

class Concat : public Implementation {
 public:
  explicit Concat(const Call& call)
      : factors_(CallAttrs(call).ints("factors")), groups_(size(CallAttrs(call).ints("groups").at(0))) {}

  void run(Invocation& call) const override {
    const std::vector<Part> parts = read(call);
    const View first = call.input(0);
    const std::size_t height = parts[0].high, width = parts[0].wide;
    std::size_t channels = 0;
    for (const Part& part : parts) {
      channels += part.channels;
      if (part.high != height || part.wide != width)
        throw Error(ErrorKind::invalid_input, "Concat: the images differ in size");
    }
    const Dims y = {first.dims[0], static_cast<std::int64_t>(height), static_cast<std::int64_t>(width),
                    static_cast<std::int64_t>(channels)};
    auto* to = static_cast<float*>(call.output(0, y));
    const std::size_t lines = size(y[0]) * height, line = width * channels;
    if (lines * line == 0) return;
    const std::size_t tasks = std::min(tasks_for(lines * line, call) * 2, lines);
    share(call, lines, tasks, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t l = begin; l < end; ++l) {
        if (groups_ > 1) {
          shuffle(parts, l, to + l * line);
          continue;
        }
        float* at = to + l * line;
        for (const Part& part : parts) {
          copy(part, l, at, channels);
          at += part.channels;
        }
      }
    });
  }

 private:
  std::vector<Part> read(Invocation& call) const {
    if (call.inputs() < 1 || factors_.size() != 2 * call.inputs())
      throw Error(ErrorKind::invalid_input, "Concat: factors do not fit the inputs");
    std::vector<Part> parts;
    for (std::size_t i = 0; i < call.inputs(); ++i) {
      const View x = call.input(i);
      if (x.dtype != DType::f32 || x.dims.size() != 4 || x.dims[0] != call.input(0).dims[0])
        throw Error(ErrorKind::invalid_input, "Concat: input " + std::to_string(i) + " is not float32 [n, h, w, c]");
      const std::int64_t up = factors_[2 * i], across = factors_[2 * i + 1];
      parts.push_back({static_cast<const float*>(x.data), size(x.dims[1]), size(x.dims[2]), size(x.dims[3]), size(up),
                       size(across), size(x.dims[3]), size(ops::repeated("Concat", x.dims[1], up)),
                       size(ops::repeated("Concat", x.dims[2], across))});
    }
    return groups_ == 1 ? parts : grouped(std::move(parts));
  }

  /// The groups of one image, or the images as they are, one for each group.
  std::vector<Part> grouped(std::vector<Part> parts) const {
    const Part first = parts[0];
    bool fits = parts.size() == 1 ? first.channels % groups_ == 0 : parts.size() == groups_;
    for (const Part& part : parts) fits = fits && part.channels == first.channels;
    if (!fits) throw Error(ErrorKind::invalid_input, "Concat: the channels do not fit the groups");
    if (parts.size() > 1 || first.channels == 0) return parts;
    parts[0].channels /= groups_;
    for (std::size_t g = 1; g < groups_; ++g) {
      parts.push_back(parts[0]);
      if (first.data) parts[g].data += g * parts[0].channels;  // none where the batch is empty
    }
    return parts;
  }

  /// One line of the result: channel i of every group, then channel i + 1.
  void shuffle(const std::vector<Part>& parts, std::size_t l, float* y) const {
    const auto at = [&](const Part& part, std::size_t w) { return part.line(l) + w / part.across * part.pixel; };
    const std::size_t width = parts[0].wide, channels = parts[0].channels;
    for (std::size_t w = 0; w < width; ++w, y += groups_ * channels) {
      if (groups_ == 2) {
        in_turn(at(parts[0], w), at(parts[1], w), channels, y);
        continue;
      }
      for (std::size_t g = 0; g < groups_; ++g) {
        const float* x = at(parts[g], w);
        for (std::size_t i = 0; i < channels; ++i) y[i * groups_ + g] = x[i];
      }
    }
  }

  static void copy(const Part& part, std::size_t l, float* y, std::size_t stride) {
    const float* x = part.line(l);
    for (std::size_t w = 0; w < part.width; ++w, x += part.channels) {
      for (std::size_t again = 0; again < part.across; ++again, y += stride)
        std::memcpy(y, x, part.channels * sizeof(float));
    }
  }

  Ints factors_;
  std::size_t groups_;
};

Verdict accepts(const Call& call, const Target&) {
  if (call.inputs.empty() || call.inputs.size() > 8) return no("takes 1 to 8 inputs");
  for (const Operand& operand : call.inputs) {
    if (operand.dtype != DType::f32) return no("is not float32", operand.name);
    if (operand.shape.has_rank() && operand.shape.rank() != 4) return no("is not of rank 4", operand.name);
  }
  return yes();
}

double cost(const Call& call, const Target& target) {
  double bytes = 0;
  for (const Operand& operand : call.inputs) bytes += 4 * operand.shape.known_elements();
  return 1e-6 + target.stream(3 * bytes);
}

}  // namespace

const Kernel concat = {
    .op = "Concat",
    .name = "cpu.concat",
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target&) -> std::unique_ptr<Implementation> {
      return std::make_unique<Concat>(call);
    },
};

}  // namespace modelflow::cpu
