// Interpolation of pixels: Pillow's is the Resize of ONNX with antialias, OpenCV's is written out in its whole numbers.
#include "src/front_end/resize.h"

namespace modelflow {
namespace {

/// 0, 1, ... below `length` (int64 [1]), as float64.
Value* places(const Draft& d, Value* length) {
  Value& none = d.graph().add_constant(Tensor::scalar(std::int64_t{0}));
  Value& one = d.graph().add_constant(Tensor::scalar(std::int64_t{1}));
  return d.cast(d.op("Range", {&none, d.op("Squeeze", {length}), &one}), DType::f64);
}

/// How many pixels of `from` go to one of `to`, as cv2.resize computes it. Not 1 / x: ONNX Runtime makes a division by
/// x of a product with that, which rounds otherwise.
Value* step(const Draft& d, Value* from, Value* to) {
  return d.op("Reciprocal", {d.op("Div", {d.cast(to, DType::f64), d.cast(from, DType::f64)})});
}

Value* within(const Draft& d, Value* index, Value* length) {
  Value& none = d.graph().add_constant(Tensor::scalar(std::int64_t{0}));
  Value& one = d.graph().add_constant(Tensor::scalar(std::int64_t{1}));
  return d.op("Clip", {index, &none, d.op("Sub", {d.op("Squeeze", {length}), &one})});
}

Value* gather(const Draft& d, Value* x, Value* index, std::int64_t axis) {
  return d.op("Gather", {x, index}, {{"axis", Attr(axis)}});
}

/// Where the middle of each new pixel lies: Pillow adds the step to the last place, and rounds each time.
Value* walked(const Draft& d, Value* from, Value* to) {
  Value* by = d.op("Div", {d.cast(from, DType::f64), d.cast(to, DType::f64)});
  Value* others = d.op("Expand", {by, d.op("Sub", {to, &d.ints({1})})});
  Value* steps = d.op("Concat", {d.op("Mul", {by, &d.exactly(0.5)}), others}, {{"axis", Attr(std::int64_t{0})}});
  return d.op("CumSum", {steps, &d.graph().add_constant(Tensor::scalar(std::int64_t{0}))});
}

/// The pixel that stands at the middle (Pillow) or at the beginning (OpenCV) of each new one.
Value* nearest(const Draft& d, bool pillow, Value* x, const Extent& from, const Extent& to) {
  const auto index = [&](Value* source, Value* target) {
    Value* place = pillow ? walked(d, source, target) : d.op("Mul", {places(d, target), step(d, source, target)});
    return within(d, d.cast(d.op("Floor", {place}), DType::i64), source);
  };
  return gather(d, gather(d, x, index(from.height, to.height), 1), index(from.width, to.width), 2);
}

/// The two pixels that each new one lies between, and the 2048ths of both.
struct Between {
  Value *first, *second, *of_first, *of_second;
};

Between between(const Draft& d, Value* from, Value* to, bool ends_weigh_one) {
  Value* centers = d.op("Mul", {d.op("Add", {places(d, to), &d.exactly(0.5)}), step(d, from, to)});
  Value* at = d.cast(d.op("Sub", {centers, &d.exactly(0.5)}), DType::f32);
  Value* below = d.op("Floor", {at});
  Value* share = d.op("Sub", {at, below});
  Value* index = d.cast(below, DType::i64);
  Value& one = d.graph().add_constant(Tensor::scalar(std::int64_t{1}));
  Value* first = within(d, index, from);
  Value* second = within(d, d.op("Add", {index, &one}), from);
  if (ends_weigh_one)  // the same pixel twice: OpenCV rounds it twice in columns, and takes it once in rows
    share = d.op("Where", {d.op("Equal", {first, second}), &d.number(0), share});
  const auto parts = [&](Value* x) { return d.op("Round", {d.op("Mul", {x, &d.number(2048)})}); };
  return {first, second, parts(d.op("Sub", {&d.number(1), share})), parts(share)};
}

Value* whole(const Draft& d, Value* x, float over) { return d.op("Floor", {d.op("Mul", {x, &d.number(1 / over)})}); }

Value* shifted(const Draft& d, Value* x, std::int32_t by) {
  return d.op("Div", {x, &d.graph().add_constant(Tensor::scalar(by))});
}

/// INTER_LINEAR of 8 bits (OpenCV, modules/imgproc/src/resize.cpp): columns, then rows, with weights of 11 bits; 4 bits
/// are cut off between them, and 16 of each product of the rows. All numbers here are whole and stay exact.
Value* opencv_bilinear(const Draft& d, Value* x, const Extent& from, const Extent& to) {
  const Between columns = between(d, from.width, to.width, true), rows = between(d, from.height, to.height, false);
  Value* line = d.op("Mul", {to.width, &d.ints({3})});
  Value* lines = d.op("Concat", {&d.ints({0, 0}), line}, {{"axis", Attr(std::int64_t{0})}});
  const auto flat = [&](Value* pixels) { return d.op("Reshape", {pixels, lines}); };
  const auto column = [&](Value* index, Value* weights) {  // [N, height, 3 width] times [3 width]
    Value* weight = d.op("Mul", {d.op("Unsqueeze", {weights, &d.ints({1})}), &d.list<float>({1, 1, 1})});
    weight = d.op("Reshape", {weight, &d.ints({-1})});
    return d.op("Mul", {d.cast(flat(gather(d, x, index, 2)), DType::f32), weight});
  };
  Value* wide = d.op("Add", {column(columns.first, columns.of_first), column(columns.second, columns.of_second)});
  wide = d.cast(whole(d, wide, 16), DType::i32);
  const auto row = [&](Value* index, Value* weights) {
    Value* weight = d.op("Unsqueeze", {d.cast(weights, DType::i32), &d.ints({1})});
    return shifted(d, d.op("Mul", {gather(d, wide, index, 1), weight}), 1 << 16);
  };
  Value* sum = d.op("Add", {row(rows.first, rows.of_first), row(rows.second, rows.of_second)});
  sum = d.op("Add", {sum, &d.graph().add_constant(Tensor::scalar(std::int32_t{2}))});
  Value* shape = d.op("Concat", {&d.ints({0}), to.height, to.width, &d.ints({3})}, {{"axis", Attr(std::int64_t{0})}});
  return d.op("Reshape", {d.cast(shifted(d, sum, 4), DType::u8), shape});
}

Value* pillow(const Draft& d, bool cubic, Value* x, const Extent& to) {
  Value* n = d.op("Shape", {x}, {{"end", Attr(std::int64_t{1})}});
  Value* sizes = d.op("Concat", {n, to.height, to.width, &d.ints({3})}, {{"axis", Attr(std::int64_t{0})}});
  Attrs how = {{"mode", Attr(std::string(cubic ? "cubic" : "linear"))},
               {"antialias", Attr(std::int64_t{1})},
               {"exclude_outside", Attr(std::int64_t{1})}};
  if (cubic) how.set("cubic_coeff_a", -0.5F);
  return d.op("Resize", {x, nullptr, nullptr, sizes}, std::move(how));
}

}  // namespace

Value* resized(const Draft& d, const ImageFeatures& f, Value* x, const Extent& from, const Extent& to) {
  const bool is_pillow = f.library == "pillow";
  if (f.interpolation == "nearest") return nearest(d, is_pillow, x, from, to);
  return is_pillow ? pillow(d, f.interpolation == "bicubic", x, to) : opencv_bilinear(d, x, from, to);
}

}  // namespace modelflow
