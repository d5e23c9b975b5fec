// The meaning of modelflow.Rotary in standard ops. Sizes are computed from shapes, so that one body serves all widths.
#include "backends/ops/rotary_attrs.h"

namespace modelflow::ops {
namespace {

class Body {
 public:
  Body(const RotaryAttrs& rotary, int opset) : rotary_(rotary), opset_(opset) {
    if (opset < 13) throw Error(ErrorKind::unsupported, "Rotary needs opset 13 or later, not " + std::to_string(opset));
  }

  std::string text() {
    line("two = Constant <value = int64[1] {2}> ()");
    line("last = Constant <value = int64[1] {3}> ()");
    line("copied = Constant <value = int64[2] {0, 0}> ()");
    if (rotary_.flat) split_heads();
    std::string part = rotary_.flat ? "heads" : "x";
    std::string done = rotary_.flat || rotary_.partial ? "turned" : "y";
    if (rotary_.partial) part = covered(part);
    rotary_.interleaved ? neighbours(part, done) : halves(part, done);
    if (rotary_.partial) {
      done = rotary_.flat ? "all" : "y";
      line(done + " = Concat <axis = -1> (turned, kept)");
    }
    if (rotary_.flat) join_heads(done);
    return "{\n" + text_ + "}";
  }

 private:
  void line(const std::string& text) { text_ += text + "\n"; }
  /// Two equal parts of the last axis.
  void split(const std::string& a, const std::string& b, const std::string& x) {
    const std::string parts = opset_ < 18 ? "" : ", num_outputs = 2";
    line(a + ", " + b + " = Split <axis = -1" + parts + "> (" + x + ")");
  }

  void split_heads() {
    line("count_number = Constant <value_int: int = @num_heads> ()");
    line("one = Constant <value = int64[1] {1}> ()");
    line("count = Reshape (count_number, one)");
    // A size that is said is a constant; ONNX Runtime writes -1 for one that is computed, which no empty batch passes.
    if (rotary_.head_dim != 0) {
      line("size_number = Constant <value_int: int = @head_dim> ()");
      line("size = Reshape (size_number, one)");
      line("width = Mul (size, count)");
    } else {
      line("x_shape = Shape (x)");
      line("width = Gather <axis = 0> (x_shape, two)");
      line("size = Div (width, count)");
    }
    line("heads_shape = Concat <axis = 0> (copied, count, size)");
    line("by_row = Reshape (x, heads_shape)");
    line("heads = Transpose <perm = [0, 2, 1, 3]> (by_row)");
  }

  void join_heads(const std::string& from) {
    line("rows = Transpose <perm = [0, 2, 1, 3]> (" + from + ")");
    line("joined_shape = Concat <axis = 0> (copied, width)");
    line("y = Reshape (rows, joined_shape)");
  }

  /// Splits off what stays as it is.
  std::string covered(const std::string& x) {
    line("cos_shape = Shape (cos)");
    line("behind = Constant <value = int64[1] {-1}> ()");
    line("cos_width = Gather <axis = 0> (cos_shape, behind)");
    line("all_shape = Shape (" + x + ")");
    line("all_width = Gather <axis = 0> (all_shape, last)");
    line(rotary_.half_width ? "covered = Mul (cos_width, two)" : "covered = Identity (cos_width)");
    line("rest = Sub (all_width, covered)");
    line("widths = Concat <axis = 0> (covered, rest)");
    line("part, kept = Split <axis = -1> (" + x + ", widths)");
    return "part";
  }

  /// first * cos - second * sin, second * cos + first * sin.
  void turn_pairs() {
    line("first_cos = Mul (first, cos)");
    line("second_sin = Mul (second, sin)");
    line("real = Sub (first_cos, second_sin)");
    line("second_cos = Mul (second, cos)");
    line("first_sin = Mul (first, sin)");
    line("imaginary = Add (second_cos, first_sin)");
  }

  /// x * cos + crossed * sin, where crossed has the other element of each pair.
  void turn_elements(const std::string& x, const std::string& y) {
    line("straight = Mul (" + x + ", cos)");
    line("across = Mul (crossed, sin)");
    line(y + " = Add (straight, across)");
  }

  void halves(const std::string& x, const std::string& y) {
    split("first", "second", x);
    if (rotary_.half_width) {
      turn_pairs();
      return line(y + " = Concat <axis = -1> (real, imaginary)");
    }
    line("opposite = Neg (second)");
    line("crossed = Concat <axis = -1> (opposite, first)");
    turn_elements(x, y);
  }

  void neighbours(const std::string& x, const std::string& y) {
    line("shape = Shape (" + x + ")");
    line("elements = Gather <axis = 0> (shape, last)");
    line("half = Div (elements, two)");
    line("third = Constant <value = int64[1] {0}> ()");
    line("pairs_shape = Concat <axis = 0> (copied, third, half, two)");
    line("pairs = Reshape (" + x + ", pairs_shape)");
    split("first_column", "second_column", "pairs");
    line("pair = Constant <value = int64[1] {-1}> ()");
    if (rotary_.half_width) {
      line("first = Squeeze (first_column, pair)");
      line("second = Squeeze (second_column, pair)");
      turn_pairs();
      line("real_column = Unsqueeze (real, pair)");
      line("imaginary_column = Unsqueeze (imaginary, pair)");
      line("columns = Concat <axis = -1> (real_column, imaginary_column)");
      return line(y + " = Reshape (columns, shape)");
    }
    line("opposite = Neg (second_column)");
    line("crossed_pairs = Concat <axis = -1> (opposite, first_column)");
    line("crossed = Reshape (crossed_pairs, shape)");
    turn_elements(x, y);
  }

  const RotaryAttrs& rotary_;
  int opset_;
  std::string text_;
};

}  // namespace

std::string rotary_body(const Call& call, int opset) {
  const RotaryAttrs rotary(call);
  return Body(rotary, opset).text();
}

}  // namespace modelflow::ops
