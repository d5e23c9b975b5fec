// How large a picture becomes.
#include "src/front_end/resize.h"

namespace modelflow {
namespace {

/// Whole pixels of what is computed in float64, as Python does.
Value* pixels(const Draft& d, Value* length) { return d.cast(length, DType::i64); }
Value* exact(const Draft& d, Value* length) { return d.cast(length, DType::f64); }

/// The ratio that fits a picture into `size`: r = min(size / extent).
Value* inside(const Draft& d, const Ints& size, const Extent& given) {
  return d.op("Min", {d.op("Div", {&d.exactly(static_cast<double>(size[0])), exact(d, given.height)}),
                      d.op("Div", {&d.exactly(static_cast<double>(size[1])), exact(d, given.width)})});
}

Extent letterboxed(const Draft& d, const ImageFeatures& f, const Ints& size, const Extent& given) {
  Value* ratio = inside(d, size, given);
  const auto length = [&](Value* side) {
    Value* scaled = d.op("Mul", {exact(d, side), ratio});
    if (!f.corner) scaled = d.op("Round", {scaled});  // to even, as Python's round; else cut to whole pixels
    return d.op("Max", {pixels(d, scaled), &d.ints({1})});
  };
  return {length(given.height), length(given.width)};
}

/// DetResizeForTest of PaddleOCR: one side is bounded, then both go to the nearest multiple.
Extent bounded(const Draft& d, const ImageFeatures& f, std::int64_t size, const Extent& given) {
  const bool least = f.limit == "min";
  Value* side = d.op(least ? "Min" : "Max", {given.height, given.width});
  Value* ratio = d.op("Div", {&d.exactly(static_cast<double>(size)), exact(d, side)});
  ratio = d.op(least ? "Max" : "Min", {ratio, &d.exactly(1)});
  const auto length = [&](Value* x) {
    Value* whole = exact(d, pixels(d, d.op("Mul", {exact(d, x), ratio})));
    Value* parts = d.op("Round", {d.op("Div", {whole, &d.exactly(f.multiple)})});
    return d.op("Mul", {d.op("Max", {pixels(d, parts), &d.ints({1})}), &d.ints({f.multiple})});
  };
  return {length(given.height), length(given.width)};
}

}  // namespace

Extent resized_extent(const Draft& d, const ImageFeatures& f, const Extent& given) {
  const Ints size = {f.size.front(), f.size.back()};
  if (f.resize == "exact") return {&d.ints({size[0]}), &d.ints({size[1]})};
  if (f.resize == "letterbox") return letterboxed(d, f, size, given);
  if (f.resize == "sides") return bounded(d, f, size[0], given);
  Value* shorter = d.op("Min", {given.height, given.width});
  const auto length = [&](Value* side) { return d.op("Div", {d.op("Mul", {side, &d.ints({size[0]})}), shorter}); };
  return {length(given.height), length(given.width)};
}

}  // namespace modelflow
