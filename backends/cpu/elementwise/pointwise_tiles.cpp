// Gives the values of a pointwise program their buffers, and runs its instructions on a tile.
#include "backends/cpu/elementwise/pointwise_tiles.h"

#include <algorithm>

namespace modelflow::cpu {

// A tile is free again behind its last reader. Buffers start behind those of the inputs.
PointwiseTiles::PointwiseTiles(const std::vector<ops::Instruction>& lines, std::size_t inputs,
                               const PointwiseLoops& loops, const std::vector<std::size_t>& results)
    : inputs_(inputs), buffers_(inputs), loops_(loops) {
  std::vector<std::size_t> last(lines.size()), place(lines.size()), free;
  for (std::size_t i = 0; i < results.size(); ++i) place[results[i]] = kTiles + i;
  if (results.empty() && !lines.empty()) place.back() = kTiles;
  for (std::size_t i = 0; i < lines.size(); ++i)
    for (const auto& from : lines[i].from)
      if (!from.input) last[from.index] = i;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const ops::Instruction& line = lines[i];
    Step step{pointwise_op_named(line.op), {}, line.from[0], line.from.back()};
    if (step.op == PointwiseOp::activation) step.activation.kind = activation_named(line.op);
    for (auto* source : {&step.a, &step.b}) {
      if (source->input) continue;
      const std::size_t index = source->index;
      source->index = place[index];
      if (place[index] < kTiles && last[index] == i && std::find(free.begin(), free.end(), place[index]) == free.end())
        free.push_back(place[index]);  // a line may write where it reads
    }
    if (place[i] < kTiles) {
      if (free.empty()) free.push_back(buffers_++);
      place[i] = free.back();
      free.pop_back();
    }
    step.to = place[i];
    steps_.push_back(step);
  }
}

void PointwiseTiles::prepare(const Broadcast& shape, const Inputs& data, Buffers& buffers) const {
  for (std::size_t i = 0; i < inputs_; ++i)
    if (data[i] && shape.single(i)) loops_.fill(*data[i], buffers[i], kTile);
}

PointwiseTiles::Inputs PointwiseTiles::fetch(const Broadcast& shape, const Inputs& data, std::size_t first,
                                             std::size_t n, Buffers& buffers, Inputs* filled) const {
  Inputs x{};
  for (std::size_t i = 0; i < inputs_; ++i) {
    if (!data[i]) continue;
    x[i] = shape.whole(i) ? data[i] + first : buffers[i];
    if (shape.whole(i) || shape.single(i)) continue;
    if (shape.run(first) < n) {
      shape.gather(i, data[i], first, n, buffers[i]);
      if (filled) (*filled)[i] = nullptr;
    } else if (const float* from = data[i] + shape.offset(i, first); shape.repeats(i)) {
      if (filled && (*filled)[i] == from) continue;
      loops_.fill(*from, buffers[i], filled ? std::min(kTile, shape.run(0)) : n);
      if (filled) (*filled)[i] = from;
    } else {
      x[i] = from;
    }
  }
  return x;
}

void PointwiseTiles::run(const Inputs& x, std::size_t n, Buffers& buffers, std::span<float* const> results) const {
  if (steps_.empty()) std::copy_n(x[inputs_ - 1], n, results[0]);
  const auto at = [&](std::size_t i) { return i < kTiles ? buffers[i] : results[i - kTiles]; };
  for (const Step& step : steps_) {
    const float* a = step.a.input ? x[step.a.index] : at(step.a.index);
    const float* b = step.b.input ? x[step.b.index] : at(step.b.index);
    float* to = at(step.to);
    if (step.op == PointwiseOp::activation) {
      loops_.activate(step.activation, a, to, n);
    } else {
      loops_.step(step.op, a, b, to, n);
    }
  }
}

double pointwise_flops(const std::vector<ops::Instruction>& lines) {
  double flops = 0;
  for (const ops::Instruction& line : lines)
    flops += pointwise_op_named(line.op) == PointwiseOp::activation ? activation_flops(activation_named(line.op)) : 4;
  return flops;
}

}  // namespace modelflow::cpu
