// The kernel of Transpose: blocks of two axes are turned in registers, whatever lies between these axes; where the last
// axis stays the last, its rows are copied whole.
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "backends/call_attrs.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/loops/vector_code.h"
#include "backends/cpu/pixels/kernels.h"
#include "backends/ops/moved_axes.h"

namespace modelflow::cpu {
namespace {

using Axis = ops::MovedAxis;

/// A piece of work: from where to where it moves a block.
struct Place {
  const float* x;
  float* y;
};

/// Counts through axes, the last one fastest.
Place place_of(const std::vector<Axis>& axes, std::size_t index, Place at) {
  for (std::size_t i = axes.size(); i-- > 0; index /= axes[i].extent) {
    const std::size_t here = index % axes[i].extent;
    at.x += here * axes[i].x, at.y += here * axes[i].y;
  }
  return at;
}

std::size_t count_of(const std::vector<Axis>& axes) {
  std::size_t count = 1;
  for (const Axis& axis : axes) count *= axis.extent;
  return count;
}

/// Rows and columns of a block: what it reads and writes stays in the first cache, in not too many pages.
constexpr std::size_t kRows = 128, kColumns = 64;

std::size_t blocks(std::size_t extent, std::size_t of) { return (extent + of - 1) / of; }

class Transpose : public Implementation {
 public:
  Transpose(const Call& call, const VectorCode& code)
      : perm_(CallAttrs(call).ints("perm")), turn_(code.channels.transpose) {}

  void run(Invocation& call) const override {
    const View x = call.input(0);
    if (x.dtype != DType::f32) throw Error(ErrorKind::invalid_input, "Transpose: x is not float32");
    if (x.dims.size() != perm_.size()) throw Error(ErrorKind::invalid_input, "Transpose: perm does not fit x");
    Dims y;
    for (const std::int64_t axis : perm_) y.push_back(x.dims[static_cast<std::size_t>(axis)]);
    const Place all{static_cast<const float*>(x.data), static_cast<float*>(call.output(0, y))};
    const auto floats = static_cast<std::size_t>(element_count(y));
    if (floats == 0) return;
    std::vector<Axis> axes = ops::moved_axes(x.dims, perm_);
    if (axes.empty() || axes.back().x == 1) {
      copy(std::move(axes), all, tasks_for(floats, call), call);
    } else {
      turn(std::move(axes), all, tasks_for(floats, call), call);
    }
  }

 private:
  static void copy(std::vector<Axis> axes, const Place& all, std::size_t tasks, Invocation& call) {
    const std::size_t row = axes.empty() ? 1 : axes.back().extent;
    if (!axes.empty()) axes.pop_back();
    const std::size_t rows = count_of(axes);
    share(call, rows, std::min(tasks, rows), [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i) {
        const Place at = place_of(axes, i, all);
        std::memcpy(at.y, at.x, row * sizeof(float));
      }
    });
  }

  /// The last axis of y are rows of blocks, the one whose numbers lie side by side in x their columns.
  void turn(std::vector<Axis> axes, const Place& all, std::size_t tasks, Invocation& call) const {
    const Axis rows = axes.back();
    axes.pop_back();
    const auto side_by_side = std::ranges::find(axes, std::size_t{1}, &Axis::x);
    const Axis columns = *side_by_side;
    axes.erase(side_by_side);
    const std::size_t down = blocks(rows.extent, kRows), across = blocks(columns.extent, kColumns);
    const std::size_t pieces = count_of(axes) * down * across;
    share(call, pieces, std::min(tasks, pieces), [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t row = i % down * kRows, column = i / down % across * kColumns;
        const Place at = place_of(axes, i / down / across, all);
        turn_(at.x + row * rows.x + column, rows.x, at.y + column * columns.y + row, columns.y,
              std::min(kRows, rows.extent - row), std::min(kColumns, columns.extent - column));
      }
    });
  }

  Ints perm_;
  decltype(ChannelLoops::transpose) turn_;
};

}  // namespace

const Kernel transpose = {
    .op = "Transpose",
    .name = "cpu.transpose",
    .accepts =
        [](const Call& call, const Target&) {
          return call.in(0).dtype == DType::f32 ? yes() : no("is not float32", call.in(0).name);
        },
    .cost = [](const Call& call, const Target& target) { return target.stream(8 * call.in(0).shape.known_elements()); },
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<Transpose>(call, vector_code(target));
    },
};

}  // namespace modelflow::cpu
