// Instructions of a pointwise program run on tiles: pieces of the tensors in buffers that stay in L1.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "backends/broadcast.h"
#include "backends/cpu/loops/pointwise.h"
#include "backends/ops/pointwise_program.h"

namespace modelflow::cpu {

/// The instructions of a pointwise program on a tile: each reads and writes buffers in L1.
class PointwiseTiles {
 public:
  static constexpr std::size_t kTile = 512, kTiles = 14;  // floats, buffers: 28 KiB of a core's 32
  static constexpr std::size_t kInputs = 8;
  using Inputs = std::array<const float*, kInputs>;
  using Buffers = float[kTiles][kTile];

  /// Without lines the result is the last input. May need more than kTiles buffers(), then it must not run. `results`:
  /// the lines that are read outside; none: the last one.
  PointwiseTiles(const std::vector<ops::Instruction>& lines, std::size_t inputs, const PointwiseLoops& loops,
                 const std::vector<std::size_t>& results = {});

  std::size_t buffers() const { return buffers_; }
  /// Fills buffers, once, for the inputs that have one element for all.
  void prepare(const Broadcast& shape, const Inputs& data, Buffers& buffers) const;
  /// The elements of all inputs that belong to first .. first + n - 1 of the shape, n <= kTile. `filled` (may be null)
  /// keeps which element a buffer is full of from one tile of the same shape to the next.
  Inputs fetch(const Broadcast& shape, const Inputs& data, std::size_t first, std::size_t n, Buffers& buffers,
               Inputs* filled = nullptr) const;
  void run(const Inputs& x, std::size_t n, Buffers& buffers, float* y) const { run(x, n, buffers, {&y, 1}); }
  /// One place for each line that is read outside: no input, and none of `buffers`.
  void run(const Inputs& x, std::size_t n, Buffers& buffers, std::span<float* const> results) const;

 private:
  /// Reads operands and tiles, writes tile `to`. Tiles behind kTiles are the results themselves.
  struct Step {
    PointwiseOp op;
    ActivationSpec activation;
    ops::Instruction::Source a, b;  // of tiles, the index is that of the buffer
    std::size_t to = 0;
  };

  std::size_t inputs_, buffers_;
  std::vector<Step> steps_;
  const PointwiseLoops& loops_;
};

/// Floating point operations per element, for cost estimates.
double pointwise_flops(const std::vector<ops::Instruction>& lines);

}  // namespace modelflow::cpu
