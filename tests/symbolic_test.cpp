// Shape inference over symbols against ONNX Runtime: every operator that computes extents, small parameters of every
// sign, and every extent from 0 to 5 for n and m. What is inferred must be what comes out, or be unknown; a symbol that
// was made up on the way ("modelflow_pos_n_m4") must stand for one function of n and m, wherever it turns up.
#include <gtest/gtest.h>

#include <map>

#include "modelflow/modelflow.h"
#include "src/onnx/derived.h"
#include "src/onnx/floor.h"

namespace modelflow {
namespace {

constexpr std::int64_t kMost = 5;
using Extents = std::pair<std::int64_t, std::int64_t>;

std::string with(std::string text, const std::string& n, const std::string& m) {
  for (const auto& [name, value] : {std::pair{"$n", n}, std::pair{"$m", m}})
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at))
      text.replace(at, 2, value);
  return text;
}

Model parsed(const std::string& text, int opset) {
  return Model::from_text("<ir_version: 8, opset_import: [\"\" : " + std::to_string(opset) + "]>\ntest " + text);
}

/// What symbols that inference made up stand for, as found so far.
class Meanings {
 public:
  Meanings() {
    const Dim n = Dim::symbol("n"), m = Dim::symbol("m");
    for (std::int64_t c = -8; c <= 8; ++c)
      for (const Dim& dim : {n + c, m + c, n + m + c, n - m + c, m - n + c, n * 2 + c}) define(dim);
  }

  /// False: the dim is not `value` here, whatever the symbols stand for.
  bool agrees(const Dim& dim, Extents at, std::int64_t value) {
    std::map<std::string, std::int64_t> symbols = {{"n", at.first}, {"m", at.second}};
    std::string open;
    for (const std::string& symbol : dim.symbols()) {
      if (symbols.contains(symbol)) continue;
      const auto known = known_.find({symbol, at});
      if (known != known_.end())
        symbols[symbol] = known->second;
      else if (open.empty())
        open = symbol;
      else
        return skipped_ = dim.str(), true;  // two new ones at once say nothing
    }
    if (open.empty()) return dim.evaluate(symbols) == value;
    symbols[open] = 0;
    const std::int64_t rest = value - dim.evaluate(symbols).value();
    symbols[open] = 1;
    const std::int64_t each = dim.evaluate(symbols).value() + rest - value;
    if (each == 0) return rest == 0;
    known_[{open, at}] = rest / each;
    return rest % each == 0 && rest / each >= 0;
  }

  const std::string& skipped() const { return skipped_; }

 private:
  void define(const Dim& dim) {
    for (std::int64_t a = 0; a <= kMost; ++a)
      for (std::int64_t b = 0; b <= kMost; ++b) {
        const std::int64_t value = dim.evaluate({{"n", a}, {"m", b}}).value();
        EXPECT_TRUE(agrees(at_least_zero(dim), {a, b}, std::max<std::int64_t>(value, 0))) << dim.str();
        for (const std::int64_t add : {-3, -1, 2}) {
          const Dim twice = at_least_zero(at_least_zero(dim) + add);
          EXPECT_TRUE(agrees(twice, {a, b}, std::max<std::int64_t>(std::max<std::int64_t>(value, 0) + add, 0)))
              << dim.str() << ": " << twice.str();
        }
        for (std::int64_t by = 2; by <= 4; ++by) {
          const Dim floor = floor_div(dim, by);
          const std::int64_t down = (value + 100 * by) / by - 100;
          EXPECT_TRUE(floor.unknown() || agrees(floor, {a, b}, down)) << floor.str();
          const Dim quotient = truncated_div(dim, by), less = at_least_zero(quotient - 1);
          EXPECT_TRUE(quotient.unknown() || agrees(quotient, {a, b}, value / by)) << quotient.str();
          EXPECT_TRUE(quotient.unknown() || agrees(less, {a, b}, std::max<std::int64_t>(value / by - 1, 0)))
              << less.str();
        }
      }
  }

  std::map<std::pair<std::string, Extents>, std::int64_t> known_;
  std::string skipped_;
};

bool open(const Dim& dim) {
  if (dim.unknown()) return true;
  for (const std::string& symbol : dim.symbols())
    if (symbol.starts_with(kUnnamed)) return true;
  return false;
}

Feeds feeds_of(const Model& model, Extents at) {
  Feeds feeds;
  for (const Value* input : model.graph().inputs()) {
    Dims dims;
    for (const Dim& dim : input->shape().dims())
      dims.push_back(dim.evaluate({{"n", at.first}, {"m", at.second}}).value());
    feeds[input->name()] = Tensor::make(input->dtype(), dims, [](std::byte*) {});
  }
  return feeds;
}

class Symbolic : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    runtime_ = Runtime::find(&why);
    if (!runtime_) GTEST_SKIP() << why;
  }

  /// Infers the types of the outputs, with symbols and with numbers, and runs the model for all extents.
  void check(const std::string& text, int opset = 18) {
    Model symbolic = parsed(with(text, "n", "m"), opset);
    const std::string bytes = symbolic.to_bytes();
    std::unique_ptr<Session> session;
    try {
      session = runtime_->load_bytes(std::as_bytes(std::span(bytes)), {.threads = 1, .optimize = false});
    } catch (const Error&) {
      return;
    }
    infer_types(symbolic);
    const bool both = text.find("$m") != std::string::npos, any = both || text.find("$n") != std::string::npos;
    for (std::int64_t n = 0; n <= (any ? kMost : 0); ++n)
      for (std::int64_t m = 0; m <= (both ? kMost : 0); ++m) compare(text, symbolic, *session, {n, m}, opset);
  }

  void compare(const std::string& text, const Model& symbolic, Session& session, Extents at, int opset) {
    std::vector<Tensor> results;
    try {
      results = session.run(feeds_of(symbolic, at));
    } catch (const Error&) {
      return;  // refused: whatever was inferred of it is right
    }
    Model numbers = parsed(with(text, std::to_string(at.first), std::to_string(at.second)), opset);
    infer_types(numbers);
    ++runs_;
    for (std::size_t k = 0; k < results.size(); ++k)
      for (const Model* model : {const_cast<const Model*>(&numbers), &symbolic}) {
        const Shape& shape = model->graph().outputs()[k]->shape();
        if (!shape.has_rank()) continue;
        const Dims& dims = results[k].dims();
        ASSERT_EQ(shape.rank(), dims.size()) << text << "\n at n = " << at.first << ", m = " << at.second;
        for (std::size_t i = 0; i < dims.size(); ++i) {
          ++(open(shape[i]) ? open_ : decided_);
          if (open(shape[i])) continue;
          EXPECT_TRUE(meanings_.agrees(shape[i], at, dims[i]))
              << with(text, "n", "m") << "\n at n = " << at.first << ", m = " << at.second << ": " << shape.str()
              << " axis " << i << " is " << dims[i];
        }
      }
  }

  /// So many of a hundred extents must be told, or the test would not see that inference says nothing any more.
  void TearDown() override {
    if (!runtime_) return;
    EXPECT_GT(runs_, 0);
    EXPECT_EQ(meanings_.skipped(), "");
    EXPECT_GE(decided_ * 100, least_decided_ * (decided_ + open_)) << decided_ << " told, " << open_ << " open";
  }

  std::shared_ptr<Runtime> runtime_;
  Meanings meanings_;
  int runs_ = 0, decided_ = 0, open_ = 0, least_decided_ = 100;
};

std::string i64(const std::string& name, const std::vector<std::int64_t>& values) {
  std::string text = "int64[" + std::to_string(values.size()) + "] " + name + " = {";
  for (std::size_t i = 0; i < values.size(); ++i) text += (i ? ", " : "") + std::to_string(values[i]);
  return text + "}";
}

std::string with_ints(const std::string& name, std::int64_t value) { return i64(name, {value}); }

TEST_F(Symbolic, Slice) {
  least_decided_ = 70;
  const std::vector<std::int64_t> bounds = {INT64_MIN, -7, -3, -2, -1, 0, 1, 2, 4, 7, INT32_MAX, INT64_MAX};
  for (const std::int64_t start : bounds)
    for (const std::int64_t end : bounds)
      for (const std::int64_t step : {-3, -1, 1, 2})
        check("(float[$n] x) => (float[] y) <" + with_ints("s", start) + ", " + with_ints("e", end) + ", " +
              with_ints("t", step) + ", int64[1] a = {0}> { y = Slice(x, s, e, a, t) }");
}

TEST_F(Symbolic, SliceAtComputedBounds) {
  least_decided_ = 60;
  for (const char* start : {"zero", "one", "back", "rows", "length", "less", "minus"})
    for (const char* end : {"all", "one", "back", "rows", "length", "less", "minus"})
      for (const std::int64_t c : {1, 2, 3})
        check(
            "(float[$n] x, float[$m] z) => (float[] y) <int64[1] zero = {0}, int64[1] one = {1}, int64[1] back = {-2}, "
            "int64[1] all = {9223372036854775807}, " +
            with_ints("c", c) +
            "> { length = Shape(x) rows = Shape(z) less = Sub(length, c) minus = Neg(rows) y = Slice(x, " + start +
            ", " + end + ", zero, one) }");
}

TEST_F(Symbolic, PartsOfAnAxisMakeItUp) {
  for (const std::int64_t at : {-6, -2, -1, 0, 1, 3, 6})
    check("(float[$n] x) => (float[] y) <int64[1] zero = {0}, int64[1] all = {9223372036854775807}, " +
          with_ints("c", at) + "> { a = Slice(x, zero, c) b = Slice(x, c, all) y = Concat<axis = 0>(a, b) }");
  Model model = parsed(
      "(float[n] x) => (float[] y) <int64[1] zero = {0}, int64[1] all = {9223372036854775807}, "
      "int64[1] c = {-4}> { a = Slice(x, zero, c) b = Slice(x, c, all) y = Concat<axis = 0>(a, b) }",
      18);
  infer_types(model);
  EXPECT_EQ(model.graph().find("a")->shape().str(), "[modelflow_pos_n_m4]");
  EXPECT_EQ(model.graph().find("b")->shape().str(), "[-modelflow_pos_n_m4 + n]");
  EXPECT_EQ(model.graph().outputs()[0]->shape().str(), "[n]");
}

TEST_F(Symbolic, Split) {
  least_decided_ = 80;
  for (const int count : {1, 2, 3, 4}) {
    std::string outputs, declared;
    for (int i = 0; i < count; ++i) {
      outputs += (i ? ", y" : "y") + std::to_string(i);
      declared += (i ? ", float[] y" : "float[] y") + std::to_string(i);
    }
    const std::string head = "(float[$n] x) => (" + declared + ") ";
    check(head + "{ " + outputs + " = Split<axis = 0, num_outputs = " + std::to_string(count) + ">(x) }");
    check(head + "{ " + outputs + " = Split<axis = 0>(x) }", 13);
    check(head + "{ " + outputs + " = Split<axis = -1>(x) }", 11);
  }
  check("(float[$n] x) => (float[] p, float[] q) <int64[2] s = {1, 3}> { p, q = Split<axis = 0>(x, s) }");
  check(
      "(float[$n] x, float[$m] z) => (float[] p, float[] q) { s = Shape(z) t = Shape(x) u = Sub(t, s) "
      "v = Concat<axis = 0>(s, u) p, q = Split<axis = 0>(x, v) }");
}

TEST_F(Symbolic, Range) {
  least_decided_ = 90;
  for (const int start : {-2, 0, 1, 3})
    for (const int add : {-3, 0, 2})
      for (const int step : {-2, -1, 1, 2, 3})
        for (const char* ends : {"s, l", "l, s"})
          check("(float[$n] x) => (int64[] y) <int64 s = {" + std::to_string(start) + "}, int64 t = {" +
                std::to_string(step) + "}, int64 c = {" + std::to_string(add) +
                "}> { n = Shape(x) q = Squeeze(n) l = Add(q, c) y = Range(" + ends + ", t) }");
}

TEST_F(Symbolic, PadAlsoNegative) {
  for (const std::int64_t before : {-3, -1, 0, 2})
    for (const std::int64_t after : {-3, -1, 0, 2}) {
      const std::string pads = i64("p", {before, after});
      check("(float[$n] x) => (float[] y) <" + pads + "> { y = Pad(x, p) }");
      check("(float[2,$n] x) => (float[] y) <" + pads + ", int64[1] a = {1}, float c = {0}> { y = Pad(x, p, c, a) }");
      check("(float[$n] x) => (float[] y) { y = Pad<pads = [" + std::to_string(before) + ", " + std::to_string(after) +
                "]>(x) }",
            10);
    }
}

TEST_F(Symbolic, Reshape) {
  least_decided_ = 75;
  using Target = std::vector<std::int64_t>;
  for (const Target& target : {Target{-1},
                               {0, -1},
                               {-1, 2},
                               {2, -1},
                               {0, 0},
                               {-1, 0},
                               {0, 2},
                               {0, -1, 1},
                               {1, 0, -1},
                               {2, 0, -1},
                               {0, 1, -1},
                               {3, -1, 2}})
    for (const char* x : {"$n,$m", "$n,4", "2,$n,3", "1,$n,$m", "$n"})
      for (const char* zero : {"", "<allowzero = 1>"})
        check(std::string("(float[") + x + "] x) => (float[] y) <" + i64("s", target) + "> { y = Reshape" + zero +
              "(x, s) }");
  // A computed extent of 0 is read as "the one of the input", which a -1 makes fit.
  check(
      "(float[$n,6] x) => (float[] y) <int64[2] c = {2, 3}, int64[1] z = {0}, int64[1] o = {1}> { s = Shape(x) "
      "n = Slice(s, z, o) t = Concat<axis = 0>(n, c) y = Reshape(x, t) }");
  check(
      "(float[$n,6] x, float[$m] z) => (float[] y) <int64[1] c = {-1}> { m = Shape(z) t = Concat<axis = 0>(m, c) "
      "y = Reshape(x, t) }");
}

TEST_F(Symbolic, Broadcasting) {
  least_decided_ = 60;
  for (const char* a : {"$n", "1", "3", "2,$n", "$m,1"})
    for (const char* b : {"$n", "$m", "1", "3", "0", "1,$m", "2,1"})
      for (const char* op : {"Add", "Less", "Max", "Expand", "MatMul", "Where"}) {
        const std::string op_name = op;
        const std::string inputs = std::string("(float[") + a + "] x, float[" + b + "] z) => ";
        if (op_name == "Expand")
          check(inputs + "(float[] y) { s = Shape(z) y = Expand(x, s) }");
        else if (op_name == "Where")
          check(inputs + "(float[] y) { c = IsNaN(x) y = Where(c, x, z) }");
        else if (op_name == "MatMul")
          check(std::string("(float[") + a + ",2,4] x, float[" + b + ",4,3] z) => (float[] y) { y = MatMul(x, z) }");
        else
          check(inputs + (op_name == "Less" ? "(bool[] y)" : "(float[] y)") + " { y = " + op + "(x, z) }");
      }
  for (const char* target : {"1", "0", "3", "2,1", "1,3"}) {
    std::vector<std::int64_t> dims;
    for (const char* c = target; *c; ++c)
      if (*c != ',') dims.push_back(*c - '0');
    check("(float[$n] x) => (float[] y) <" + i64("s", dims) + "> { y = Expand(x, s) }");
  }
}

TEST_F(Symbolic, TablesAreAsLongAsTheSequence) {
  const std::string text =
      "(float[2,$n,1] x) => (float[] y) <float[3,1] table = {1,2,3}, int64[1] zero = {0}, int64[1] one = {1}> {"
      " s = Shape<start = 1, end = 2>(x) t = Slice(table, zero, s, zero, one) y = Add(x, t) }";
  check(text);
  Model model = parsed(with(text, "seq_len", ""), 18);
  infer_types(model);
  EXPECT_EQ(model.graph().find("t")->shape().str(), "[-modelflow_pos_seq__len_m3 + seq_len,1]");
  EXPECT_EQ(model.graph().outputs()[0]->shape().str(), "[2,seq_len,1]");
}

TEST_F(Symbolic, JoinsAndRepeats) {
  least_decided_ = 95;
  check("(float[$n,2] x, float[$m,2] z) => (float[] y) { y = Concat<axis = 0>(x, z) }");
  check("(float[$n,2] x, float[$n,$m] z) => (float[] y) { y = Concat<axis = -1>(x, z) }");
  check("(float[$n] x, float[3] z) => (float[] y) { y = Concat<axis = 0>(x, z, x) }");
  for (const std::int64_t times : {0, 1, 3})
    check("(float[$n] x) => (float[] y) <" + with_ints("r", times) + "> { y = Tile(x, r) }");
  check("(float[$n] x, float[$m] z) => (float[] y) { r = Shape(z) y = Tile(x, r) }");
  check("(float[$n,4,2,2] x) => (float[] y) { y = DepthToSpace<blocksize = 2>(x) }");
  for (const int block : {1, 2, 3})
    check("(float[1,2,$n,$m] x) => (float[] y) { y = SpaceToDepth<blocksize = " + std::to_string(block) + ">(x) }");
  // MobileBERT joins each token with those beside it: the neighbours are a slice behind a Pad. Not checked at 0, where
  // the slice is longer and ONNX Runtime passes over what is empty; ONNX asks for the same extent.
  const std::string text =
      "(float[$n,2] x) => (float[] y) <int64[1] one = {1}, int64[1] zero = {0}, int64[1] all = {9}, int64[4] pads = "
      "{0,0,1,0}> {"
      " s = Slice(x, one, all, zero) p = Pad(s, pads) y = Concat<axis = 1>(p, x) }";
  Model model = parsed(with(text, "seq_len", ""), 18);
  infer_types(model);
  EXPECT_EQ(model.graph().outputs()[0]->shape().str(), "[seq_len,4]");
}

TEST_F(Symbolic, Windows) {
  least_decided_ = 60;
  for (const int kernel : {1, 2, 3})
    for (const int stride : {1, 2, 3})
      for (const char* pads : {"pads = [0, 0]", "pads = [1, 0]", "pads = [1, 1]", "auto_pad = \"SAME_UPPER\"",
                               "auto_pad = \"SAME_LOWER\"", "auto_pad = \"VALID\""})
        for (const int dilation : {1, 2}) {
          const std::string k = std::to_string(kernel), window = "kernel_shape = [" + k + "], strides = [" +
                                                                 std::to_string(stride) + "], dilations = [" +
                                                                 std::to_string(dilation) + "], " + pads;
          std::string ones = "1";
          for (int i = 1; i < kernel; ++i) ones += ", 1";
          const std::string w = "<float[1,1," + k + "] w = {" + ones + "}> ", x = "(float[1,1,$n] x) => (float[] y) ";
          check(x + w + "{ y = Conv<" + window + ">(x, w) }");
          check(x + w + "{ y = ConvTranspose<" + window + ">(x, w) }");
          check(x + w + "{ y = ConvTranspose<output_padding = [1], " + window + ">(x, w) }");
          for (const char* ceil : {"0", "1"}) {
            check(x + "{ y = MaxPool<ceil_mode = " + ceil + ", " + window + ">(x) }");
            check(x + "{ y = AveragePool<ceil_mode = " + ceil + ", " + window + ">(x) }", 19);
            check(x + "{ y = LpPool<ceil_mode = " + ceil + ", " + window + ">(x) }");
          }
        }
}

/// Counts of an exporter for what stands behind a convolution: places along it, which ONNX divides towards 0.
const std::string kCounted =
    "(float[1,1,$n] x) => (float[] y) <float[1,1,3] w = {1, 2, 3}, int64 i = {2}, int64 one = {1}, int64 two = {2}, "
    "int64 zero = {0}> { s = Shape(x) n = Gather(s, i) t = Sub(n, one) q = Div(t, two) r = Range(zero, q, one) "
    "p = Cast<to = 1>(r) ";

TEST_F(Symbolic, PlacesBehindAConvolution) {
  const std::string with_one = kCounted + "c = Conv<strides = [2]>(x, w) y = Add(c, p) }";
  check(kCounted + "y = Neg(p) }");
  check(with_one);
  check(kCounted + "z = ConstantOfShape(q) y = Neg(p) }");
  Model alone = parsed(with(kCounted + "y = Neg(p) }", "n", ""), 18), behind = parsed(with(with_one, "n", ""), 18);
  infer_types(alone);
  infer_types(behind);
  EXPECT_EQ(alone.graph().outputs()[0]->shape().str(), "[modelflow_quotient_n_m1_by2]");
  EXPECT_EQ(behind.graph().find("r")->shape().str(), "[modelflow_floor_n_p1_by2 - 1]");
  EXPECT_EQ(behind.graph().outputs()[0]->shape().str(), "[1,1,modelflow_floor_n_p1_by2 - 1]");
}

/// What is too long to be spelled has the name of a hash, which is no number that could be computed with.
TEST(Bounds, OfLongNames) {
  for (int i = 0; i < 12; ++i) {
    const std::string end = "_of_a_rather_long_name_" + std::to_string(i);
    const Dim all = Dim::symbol("decoder" + end), past = Dim::symbol("past" + end), bound = at_least_zero(all - past);
    ASSERT_FALSE(bound.unknown());
    EXPECT_FALSE(bounded_by(bound.str())) << bound.str();
    EXPECT_FALSE(at_least_zero(bound - Dim(3)).known()) << bound.str();
  }
}

/// A computed -1 is read as the rest, which nobody may take for the extent.
TEST_F(Symbolic, QuotientsBelowZeroAsTargets) {
  least_decided_ = 0;
  const std::string head =
      "(float[$n] x) => (float[] y) <int64[1] one = {1}, int64[1] two = {2}> { n = Shape(x) t = Sub(n, one) "
      "u = Div(t, two) d = Sub(u, one) ";
  check(head + "y = Reshape(x, d) }");
  check(head + "y = Expand(x, d) }");
}

/// So is one of any other number below 0, but not where x has such an extent.
TEST_F(Symbolic, DifferencesAsTargets) {
  least_decided_ = 0;
  const std::string head = "(float[$n] x) => (float[] y) <int64[1] one = {1}> { n = Shape(x) d = Sub(n, one) ";
  for (const char* op : {"Reshape", "Expand"}) {
    check(head + "y = " + op + "(x, d) }");
    check(head + "t = Concat<axis = 0>(one, d) y = " + op + "(x, t) }");
    Model same = parsed(
        "(float[m,k] c) => (float[] y) <int64[1] by = {3}> "
        "{ s = Shape<start = 1>(c) d = Sub(s, by) x = ConstantOfShape(d) y = " +
            std::string(op) + "(x, d) }",
        18);
    infer_types(same);
    EXPECT_EQ(same.graph().outputs()[0]->shape().str(), same.graph().find("x")->shape().str());
  }
}

/// No window of two begins behind the last pixel, so that none is dropped.
TEST(Windows, OfWhichNoneIsDroppedAreCountedOverSymbols) {
  Model model = parsed(
      "(float[1,1,n] x) => (float[] y) { y = MaxPool<ceil_mode = 1, kernel_shape = [2], strides = [2]>(x) }", 18);
  infer_types(model);
  EXPECT_EQ(model.graph().outputs()[0]->shape().str(), "[1,1,modelflow_floor_n_p1_by2]");
}

TEST_F(Symbolic, Resize) {
  least_decided_ = 70;
  for (const char* scale : {"0.25", "0.3", "0.5", "1", "1.5", "2", "3"})
    for (const char* mode : {"asymmetric", "half_pixel", "align_corners"})
      check("(float[1,1,$n] x) => (float[] y) <float[3] s = {1, 1, " + std::string(scale) +
            "}> { y = Resize<coordinate_transformation_mode = \"" + mode + "\", mode = \"nearest\">(x, , s) }");
  check(
      "(float[1,1,$n] x) => (float[] y) <float[3] s = {1, 1, 2}, float[6] r = {0, 0, 0, 1, 1, 0.5}> "
      "{ y = Resize<coordinate_transformation_mode = \"tf_crop_and_resize\", mode = \"linear\">(x, r, s) }");
  check("(float[1,1,$n] x) => (float[] y) <int64[3] s = {1, 1, 4}> { y = Resize<mode = \"nearest\">(x, , , s) }");
  check(
      "(float[1,1,$n,$m] x) => (float[] y) <int64[2] s = {4, 6}> { y = Resize<mode = \"nearest\", axes = [2, 3], "
      "keep_aspect_ratio_policy = \"not_larger\">(x, , , s) }");
  check("(float[1,1,$n] x, float[1,1,$m] z) => (float[] y) { s = Shape(z) y = Resize<mode = \"nearest\">(x, , , s) }");
}

TEST_F(Symbolic, Pickers) {
  least_decided_ = 60;
  check("(float[$n,3] x, int64[$m] i) => (float[] y) { y = Gather(x, i) }");
  check("(float[$n,3] x, int64[$m,2] i) => (float[] y) { y = Gather<axis = 1>(x, i) }");
  check("(float[$n,3] x, int64[$m,3] i) => (float[] y) { y = GatherElements(x, i) }");
  check("(float[$n,3] x, int64[$m,1] i) => (float[] y) { y = GatherND(x, i) }");
  for (const std::int64_t k : {0, 1, 3})
    check("(float[2,$n] x) => (float[] y, int64[] i) <" + with_ints("k", k) + "> { y, i = TopK(x, k) }");
  check("(float[$n] x, float[$m] z) => (float[] y, int64[] i) { k = Shape(z) y, i = TopK(x, k) }");
  check("(int64[$n,$m] x) => (float[] y) <int64 d = {4}, float[2] v = {0, 1}> { y = OneHot(x, d, v) }");
  check("(int64[$n,$m] x) => (float[] y) <int64[1] d = {4}, float[2] v = {0, 1}> { y = OneHot<axis = 0>(x, d, v) }");
  check("(float[$n,$m] x) => (int64[] y) { y = NonZero(x) }");
  check("(float[$n] x, bool[$m] c) => (float[] y) { y = Compress<axis = 0>(x, c) }");
  check("(float[$n,$m] x) => (int64[] y) { y = ArgMax<axis = 1, keepdims = 0>(x) }");
  check("(float[$n,$m] x) => (float[] y) { y = Trilu(x) }");
  check("(float[$n,$m] x) => (float[] y) { y = EyeLike(x) }");
  check("(float[$n,$m] x, float[$m,3] z) => (float[] y) { y = Einsum<equation = \"ij,jk->ik\">(x, z) }");
  check("(float[$n,$m] x, float[$m,3] z) => (float[] y) { y = Gemm(x, z) }");
  check("(float[$n,1,$m] x) => (float[] y) { y = Squeeze(x) }");
  check("(float[$n,1,$m] x) => (float[] y) <int64[1] a = {1}> { y = Squeeze(x, a) }");
  check("(float[$n,1,$m] x) => (float[] y) { a = Constant <value = int64[0] {}> ()  y = Squeeze(x, a) }");
  check("(float[$n,$m] x) => (float[] y) { y = Flatten<axis = 0>(x) }");
  check("(float[2,$n,$m] x) => (float[] y) { y = Flatten<axis = -1>(x) }");
  check(
      "(float[$n] x, float[$m] z, bool c) => (float[] y) { y = If<then_branch = t () => (float[] p) { p = Relu(x) }, "
      "else_branch = e () => (float[] q) { q = Abs(z) }>(c) }");
}

TEST_F(Symbolic, Arithmetic) {
  least_decided_ = 70;
  const std::string head =
      "(float[$n] x, float[$m] z) => (float[] y) <int64[1] two = {2}, int64[1] zero = {0}, "
      "int64[1] one = {1}, int64[1] four = {4}, int64[1] less = {-3}> { n = Shape(x) m = Shape(z) ";
  for (const char* made : {"d = Min(n, m)",
                           "d = Max(n, m)",
                           "d = Min(n, four)",
                           "d = Max(four, n)",
                           "t = Sub(n, m) d = Max(t, zero)",
                           "t = Sub(n, four) d = Max(t, one)",
                           "d = Div(n, two)",
                           "t = Mul(n, m) d = Div(t, two)",
                           "t = Sub(n, two) d = Div(t, two)",
                           "t = Mul(n, four) d = Div(t, two)",
                           "d = Mod(n, two)",
                           "d = Mul(n, m)",
                           "t = Sub(n, one) d = Div(t, two)",
                           "t = Add(n, less) u = Div(t, four) d = Add(u, one)",
                           "t = Add(n, less) u = Div(t, four) v = Sub(u, one) d = Max(v, zero)",
                           "t = Cast<to = 6>(n) u = Add(t, t) d = Cast<to = 7>(u)",
                           "t = Cast<to = 9>(n) d = Cast<to = 7>(t)",
                           "t = Cast<to = 9>(four) d = Cast<to = 7>(t)",
                           "t = Cast<to = 1>(n) u = Cast<to = 7>(t) d = Add(u, one)",
                           "t = Equal(n, m) d = Where(t, one, four)",
                           "t = Equal(n, less) d = Where(t, one, n)",
                           "d = ReduceProd(n)",
                           "t = Concat<axis = 0>(n, m) d = ReduceProd<keepdims = 1>(t)",
                           "t = Neg(n) u = Add(t, m) d = Max(u, one)",
                           "t = Sub(n, m) u = Div(t, two) d = Max(u, zero)"})
    check(head + made + " y = ConstantOfShape(d) }");
}

/// The element of an integer constant computed at one step: 7 where it is as expected, else as many as it says.
TEST_F(Symbolic, NumbersWrapAsTheirTypesDo) {
  least_decided_ = 0;
  const std::string head =
      "(float[$n] x) => (float[] y) <int64[1] big = {4294967299}, int64[1] half = {2147483647}, "
      "int64[1] lowest = {-9223372036854775808}, int64[1] minus = {-1}, int64[1] one = {1}, "
      "int64[1] odd = {16777217}, int64[1] five = {5}, int64[1] c = {16777210}> { ";
  for (const char* made :
       {"t = Cast<to = 6>(big) d = Cast<to = 7>(t)",
        "t = Cast<to = 6>(half) u = Cast<to = 6>(five) v = Add(t, u) w = Add(v, t) d = Cast<to = 7>(w)",
        "t = Cast<to = 9>(five) d = Cast<to = 7>(t)", "t = Cast<to = 1>(odd) u = Cast<to = 7>(t) d = Sub(u, c)",
        "t = Sub(lowest, one) u = Add(t, one) v = Sub(u, lowest) d = Add(v, one)",
        "t = Neg(lowest) v = Sub(t, lowest) d = Add(v, one)"})
    check(head + made + " y = ConstantOfShape(d) }");
}

}  // namespace
}  // namespace modelflow
