// Seen from the middle of the window the real part of a bin is a sum of cosines, which are the same on both sides, and
// the imaginary part one of sines, which are opposite. Power does not change with the place that phases count from.
#include "src/front_end/folded.h"

#include <cmath>
#include <cstdlib>
#include <numbers>

#include "src/front_end/spectrum.h"

namespace modelflow {
namespace {

/// Columns first .. first + count - 1 of all frames, [N, frames, count]: rows of one hop each, side by side.
Value* columns(const Draft& d, Value* samples, Value* frames, std::int64_t first, std::int64_t count,
               std::int64_t hop) {
  const std::int64_t blocks = (count + hop - 1) / hop;
  Value* rows = d.op("Add", {frames, &d.ints({blocks - 1})});
  Value* end = d.op("Add", {d.op("Mul", {rows, &d.ints({hop})}), &d.ints({first})});
  Value* heard = d.op("Slice", {samples, &d.ints({first}), end, &d.ints({1})});
  Value* shape = d.op("Concat", {&d.ints({0}), rows, &d.ints({hop})}, {{"axis", Attr(std::int64_t{0})}});
  Value* all = d.op("Reshape", {heard, shape});
  std::vector<Value*> parts;
  for (std::int64_t block = 0; block < blocks; ++block) {
    Value* part = all;
    const std::int64_t width = std::min(hop, count - block * hop);
    if (blocks > 1 || width < hop) {
      Value* below = d.op("Concat", {d.op("Add", {frames, &d.ints({block})}), &d.ints({width})},
                          {{"axis", Attr(std::int64_t{0})}});
      part = d.op("Slice", {all, &d.ints({block, 0}), below, &d.ints({1, 2})});
    }
    parts.push_back(part);
  }
  return blocks == 1 ? parts.front() : d.op("Concat", std::move(parts), {{"axis", Attr(std::int64_t{2})}});
}

/// [count, bins]: what sums of partners are multiplied by, or differences.
Tensor waves(const AudioFeatures& f, const Fold& fold, bool sums) {
  const std::vector<double> window = frame_window(f);
  std::vector<float> table;
  for (std::int64_t i = 0; i < fold.count; ++i)
    for (std::int64_t bin = 0; bin < bins(f); ++bin) {
      const std::int64_t twice = fold.first - fold.last + 2 * i;  // twice the distance from the middle
      const double angle = std::numbers::pi * static_cast<double>(bin * twice % (std::int64_t{2} * f.n_fft)) / f.n_fft;
      const double weight = f.input_scale * window[static_cast<std::size_t>(fold.first + i)] * (twice == 0 ? 0.5 : 1);
      table.push_back(static_cast<float>(weight * (sums ? std::cos(angle) : std::sin(angle))));
    }
  return Tensor::of<float>({fold.count, bins(f)}, std::span<const float>(table));
}

}  // namespace

std::optional<Fold> fold_of(const AudioFeatures& f) {
  if (f.preemphasis != 0 || f.remove_dc) return std::nullopt;
  const std::vector<double> window = frame_window(f);
  int first = 0, last = static_cast<int>(window.size()) - 1;
  while (first < last && std::abs(window[static_cast<std::size_t>(first)]) < 1e-15) ++first;
  while (first < last && std::abs(window[static_cast<std::size_t>(last)]) < 1e-15) --last;
  for (int i = first; i <= last; ++i) {
    const int partner = first + last - i;
    if (std::abs(window[static_cast<std::size_t>(i)] - window[static_cast<std::size_t>(partner)]) > 1e-12)
      return std::nullopt;
  }
  return Fold{first, last, (last - first) / 2 + 1};
}

Value* folded_power(const Draft& d, const AudioFeatures& f, const Fold& fold, Value* samples) {
  Value* length = d.op("Shape", {samples}, {{"start", Attr(std::int64_t{1})}});
  Value* frames = d.op("Div", {d.op("Sub", {length, &d.ints({frame_length(f)})}), &d.ints({f.hop_length})});
  Value* x = columns(d, samples, frames, fold.first, fold.count, f.hop_length);
  Value* y = columns(d, samples, frames, fold.last - fold.count + 1, fold.count, f.hop_length);
  Value* mirrored = d.op("Slice", {y, &d.ints({-1}), &d.ints({INT64_MIN}), &d.ints({2}), &d.ints({-1})});
  const auto square = [&](const char* together, bool sums) {
    Value* part =
        d.op("MatMul", {d.op(together, {x, mirrored}), &d.graph().add_constant(waves(f, fold, sums), "waves")});
    return d.op("Mul", {part, part});
  };
  return d.op("Add", {square("Add", true), square("Sub", false)});
}

}  // namespace modelflow
