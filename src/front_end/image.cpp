// What clients do to pictures as a model: resized, cut or put into a frame, normalized, laid out.
#include <fmt/format.h>

#include <cmath>
#include <initializer_list>

#include "modelflow/error.h"
#include "modelflow/front_end.h"
#include "src/front_end/resize.h"

namespace modelflow {
namespace {

void check(const ImageFeatures& f) {
  const auto refuse = [](bool wrong, const char* what) {
    if (wrong) throw Error(ErrorKind::usage, fmt::format("image features: {}", what));
  };
  const auto one_of = [](const std::string& name, std::initializer_list<const char*> names) {
    return std::ranges::find(names, name) != names.end();
  };
  const auto lengths = [](const std::vector<int>& sizes) {
    return sizes.size() <= 2 && std::ranges::all_of(sizes, [](int x) { return x >= 1 && x <= 1 << 16; });
  };
  const auto channels = [](const std::vector<double>& values) {
    return (values.size() <= 1 || values.size() == 3) &&
           std::ranges::all_of(values, [](double x) { return std::isfinite(x); });
  };
  refuse(!one_of(f.resize, {"none", "exact", "shortest", "letterbox", "sides"}),
         "resize must be none, exact, shortest, letterbox or sides");
  refuse(f.size.empty() || !lengths(f.size), "size must be one length, or height and width");
  refuse(f.size.size() == 2 && one_of(f.resize, {"shortest", "sides"}), "size must be one length for a side");
  refuse(!one_of(f.limit, {"min", "max"}), "limit must be min or max");
  refuse(f.multiple < 1 || f.multiple > 1 << 12, "multiple must lie between 1 and 4096");
  refuse(!one_of(f.library, {"pillow", "opencv"}), "library must be pillow or opencv");
  refuse(!one_of(f.interpolation, {"nearest", "bilinear", "bicubic"}),
         "interpolation must be nearest, bilinear or bicubic");
  refuse(f.library == "opencv" && f.interpolation == "bicubic", "bicubic is known here as pillow has it, not opencv");
  refuse(f.pad_value < 0 || f.pad_value > 255, "pad_value must lie between 0 and 255");
  refuse(!lengths(f.crop), "crop must be one length, or height and width");
  refuse(!f.crop.empty() && one_of(f.resize, {"none", "letterbox", "sides"}),
         "crop goes with resize=shortest or exact: else a picture may be smaller");
  refuse(!f.crop.empty() && (f.crop.front() > f.size.front() || f.crop.back() > f.size.back()),
         "crop must not be larger than size");
  refuse(!one_of(f.crop_rounding, {"even", "down"}), "crop_rounding must be even or down");
  refuse(!std::isfinite(f.scale), "scale must be finite");
  refuse(!channels(f.mean) || !channels(f.std), "mean and std must be one number, or one for each channel");
  refuse(std::ranges::find(f.std, 0.0) != f.std.end(), "std must not be 0");
  refuse(!one_of(f.layout, {"nchw", "nhwc"}), "layout must be nchw or nhwc");
  refuse(!one_of(f.dtype, {"float32", "float16"}), "dtype must be float32 or float16");
}

class Builder {
 public:
  explicit Builder(const ImageFeatures& features) : f_(features), draft_(model_.graph()) {
    model_.ir_version = 8;
    model_.opsets[""] = 18;
    draft_.graph().name = "image_front_end";
  }

  Model build() {
    const Dim n = Dim::symbol("N");
    const Shape shape({n, Dim::symbol("height"), Dim::symbol("width"), Dim(3)});
    Value* x = &draft_.graph().add_input("pixels", Type::tensor(DType::u8, shape));
    if (f_.resize != "none") x = fitted(x);
    if (!f_.crop.empty()) x = cut(x);
    if (f_.layout == "nchw") x = op("Transpose", {x}, {{"perm", Attr(Ints{0, 3, 1, 2})}});
    if (f_.swap) x = op("Gather", {x, &draft_.ints({2, 1, 0})}, {{"axis", Attr(std::int64_t{nchw() ? 1 : 3})}});
    x = normalized(draft_.cast(x, DType::f32));
    if (f_.dtype == "float16") x = draft_.cast(x, DType::f16);
    finish(*x);
    return std::move(model_);
  }

 private:
  bool nchw() const { return f_.layout == "nchw"; }
  Value* op(const char* name, std::vector<Value*> inputs, Attrs attrs = {}) {
    return draft_.op(name, std::move(inputs), std::move(attrs));
  }
  Value* concat(std::vector<Value*> parts) { return op("Concat", std::move(parts), {{"axis", Attr(std::int64_t{0})}}); }
  Value* constant(std::uint8_t value) { return &draft_.graph().add_constant(Tensor::scalar(value)); }

  Extent extent(Value* x) {
    const auto side = [&](std::int64_t axis) {
      return op("Shape", {x}, {{"start", Attr(axis)}, {"end", Attr(axis + 1)}});
    };
    return {side(1), side(2)};
  }

  Value* fitted(Value* x) {
    const Extent from = extent(x), to = resized_extent(draft_, f_, from);
    x = resized(draft_, f_, x, from, to);
    return f_.resize == "letterbox" ? framed(x, to) : x;
  }

  /// The rest of the frame: half of it (less a tenth of a pixel, so that the odd one comes behind) in front.
  Value* framed(Value* x, const Extent& inner) {
    const Ints size = {f_.size.front(), f_.size.back()};
    const auto sides = [&](Value* length, std::int64_t whole) {
      Value* rest = op("Sub", {&draft_.ints({whole}), length});
      if (f_.corner) return std::pair<Value*, Value*>{&draft_.ints({0}), rest};
      Value* half = op("Div", {draft_.cast(rest, DType::f64), &draft_.exactly(2)});
      Value* front = draft_.cast(op("Round", {op("Sub", {half, &draft_.exactly(0.1)})}), DType::i64);
      return std::pair<Value*, Value*>{front, op("Sub", {rest, front})};
    };
    const auto [top, bottom] = sides(inner.height, size[0]);
    const auto [left, right] = sides(inner.width, size[1]);
    Value* none = &draft_.ints({0});
    return op("Pad", {x, concat({none, top, left, none, none, bottom, right, none}),
                      constant(static_cast<std::uint8_t>(f_.pad_value))});
  }

  Value* cut(Value* x) {
    const Extent from = extent(x);
    const auto start = [&](Value* length, int kept) {
      Value* rest = draft_.cast(op("Sub", {length, &draft_.ints({kept})}), DType::f64);
      Value* half = op("Div", {rest, &draft_.exactly(2)});
      return draft_.cast(op(f_.crop_rounding == "even" ? "Round" : "Floor", {half}), DType::i64);
    };
    Value* starts = concat({start(from.height, f_.crop.front()), start(from.width, f_.crop.back())});
    Value* ends = op("Add", {starts, &draft_.ints({f_.crop.front(), f_.crop.back()})});
    return op("Slice", {x, starts, ends, &draft_.ints({1, 2})});
  }

  /// One factor and one summand for each channel.
  Value* normalized(Value* x) {
    const auto of = [](const std::vector<double>& values, std::size_t i, double otherwise) {
      return values.empty() ? otherwise : values[values.size() == 1 ? 0 : i];
    };
    std::vector<float> factors, summands;
    for (std::size_t i = 0; i < 3; ++i) {
      factors.push_back(static_cast<float>(f_.scale / of(f_.std, i, 1)));
      summands.push_back(static_cast<float>(-of(f_.mean, i, 0) / of(f_.std, i, 1)));
    }
    const auto each = [&](const std::vector<float>& values) {
      Tensor tensor = Tensor::of<float>(nchw() ? Dims{3, 1, 1} : Dims{3}, std::span<const float>(values));
      return &draft_.graph().add_constant(std::move(tensor));
    };
    x = op("Mul", {x, each(factors)});
    return f_.mean.empty() ? x : op("Add", {x, each(summands)});
  }

  void finish(Value& image) {
    draft_.graph().rename(image, "image");
    Dim height = Dim::symbol("image_height"), width = Dim::symbol("image_width");
    const std::vector<int>& known = f_.crop.empty() ? f_.size : f_.crop;
    if (!f_.crop.empty() || f_.resize == "exact" || f_.resize == "letterbox")
      height = Dim(known.front()), width = Dim(known.back());
    if (f_.resize == "none") height = Dim::symbol("height"), width = Dim::symbol("width");
    const Dim n = Dim::symbol("N");
    image.type = Type::tensor(f_.dtype == "float16" ? DType::f16 : DType::f32,
                              nchw() ? Shape({n, Dim(3), height, width}) : Shape({n, height, width, Dim(3)}));
    draft_.graph().add_output(image);
  }

  const ImageFeatures& f_;
  Model model_;
  Draft draft_;
};

}  // namespace

Model image_front_end(const ImageFeatures& features) {
  check(features);
  return Builder(features).build();
}

}  // namespace modelflow
