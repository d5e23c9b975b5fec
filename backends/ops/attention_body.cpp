// The meaning of modelflow.Attention in standard ops. Head counts and sizes are computed from the attributes and from
// shapes, never written as numbers: one body then serves layers of every width, and folds to constants at load.
#include <cmath>
#include <utility>

#include "backends/ops/attention_attrs.h"
#include "backends/ops/attention_steps.h"

namespace modelflow::ops {
namespace {

using Layout = AttentionAttrs::Layout;

/// What the two products multiply.
enum class Products { float32, steps, bfloat16 };

class Body {
 public:
  Body(AttentionAttrs attention, int opset, Products products)
      : attention_(std::move(attention)), opset_(opset), products_(products) {
    if (opset < 13)
      throw Error(ErrorKind::unsupported, "Attention needs opset 13 or later, not " + std::to_string(opset));
  }

  std::string text() {
    counts();
    sizes();
    if (attention_.packed) {
      unpack();
    } else {
      heads("q", attention_.q, "n", head_);
      heads("k", attention_.k, "kv", head_);
      heads("v", attention_.v, "kv", value_);
    }
    if (attention_.kv_heads != attention_.heads && attention_.kv_heads != 1) share();
    line("scale = Constant <value_float: float = @scale> ()");
    scores();
    if (attention_.softcap != 0) cap();
    if (attention_.has_grid) grid();
    if (attention_.causal && attention_.causal_first) causal();
    if (attention_.has_bias && !attention_.bias_last) bias();
    if (attention_.has_mask) mask();
    if (attention_.has_bias && attention_.bias_last) bias();
    if (attention_.causal && !attention_.causal_first) causal();
    const bool last = attention_.y == Layout::bnsh;
    weigh(last ? "y" : "context");
    if (!last) result();
    return "{\n" + text_ + "}";
  }

 private:
  void line(const std::string& text) { text_ += text + "\n"; }
  static std::string ints(const std::string& list, int count) {
    return "Constant <value = int64[" + std::to_string(count) + "] {" + list + "}> ()";
  }

  bool grouped() const { return attention_.packed || attention_.kv_heads != attention_.heads; }

  /// Numbers of heads, as scalars and as vectors of one element.
  void counts() {
    line("one = " + ints("1", 1));
    line("copied = " + ints("0, 0", 2));
    line("n_number = Constant <value_int: int = @num_heads> ()");
    line("n = Reshape (n_number, one)");
    if (grouped()) {
      line("kv_number = Constant <value_int: int = @kv_heads> ()");
      line("kv = Reshape (kv_number, one)");
    } else {
      line("kv = Identity (n)");
    }
  }

  /// Sizes of heads that the call says.
  void sizes() {
    const auto say = [&](std::int64_t size, const std::string& name) {
      if (size == 0) return std::string();
      line(name + "_number = Constant <value_int: int = @" + name + "> ()");
      line(name + " = Reshape (" + name + "_number, one)");
      return name;
    };
    head_ = say(attention_.head_dim, "head_dim");
    value_ = say(attention_.value_dim, "value_dim");
    if (attention_.packed) value_ = head_;
  }

  /// One extent of `x` as a vector of one element.
  void extent(const std::string& name, const std::string& x, int axis) {
    const std::string number = std::to_string(axis);
    if (opset_ >= 15) {
      line(name + " = Shape <start = " + number + ", end = " + std::to_string(axis + 1) + "> (" + x + ")");
      return;
    }
    line(name + "_axis = " + ints(number, 1));
    line(name + "_shape = Shape (" + x + ")");
    line(name + " = Gather <axis = 0> (" + name + "_shape, " + name + "_axis)");
  }

  /// [batch, sequence, heads * size] -> x_heads, [batch, heads, sequence, size]. A size that nobody says is computed:
  /// -1 would not do for an empty batch.
  void heads(const std::string& x, Layout layout, const std::string& count, std::string size) {
    if (layout == Layout::bnsh) {
      line(x + "_heads = Identity (" + x + ")");
      return;
    }
    if (size.empty()) {
      size = x + "_size";
      extent(x + "_width", x, 2);
      line(size + " = Div (" + x + "_width, " + count + ")");
    }
    line(x + "_target = Concat <axis = 0> (copied, " + count + ", " + size + ")");
    line(x + "_split = Reshape (" + x + ", " + x + "_target)");
    line(x + "_heads = Transpose <perm = [0, 2, 1, 3]> (" + x + "_split)");
  }

  void unpack() {
    line("keys_and_values = Add (kv, kv)");
    line("all = Add (n, keys_and_values)");
    heads("qkv", Layout::bsh, "all", head_);
    line("parts = Concat <axis = 0> (n, kv, kv)");
    line("q_heads, k_heads, v_heads = Split <axis = 1> (qkv_heads, parts)");
  }

  /// Several query heads read the same keys and values. Where all do, the products repeat them.
  void share() {
    line("zero_number = Constant <value = int64 {0}> ()");
    line("one_number = Constant <value = int64 {1}> ()");
    line("order = Range (zero_number, n_number, one_number)");
    line("group = Div (n_number, kv_number)");
    line("shared = Div (order, group)");
    line("k_all = Gather <axis = 1> (k_heads, shared)");
    line("v_all = Gather <axis = 1> (v_heads, shared)");
    keys_ = "k_all";
    values_ = "v_all";
  }

  void scores() {
    if (products_ != Products::float32) {
      text_ += products_ == Products::steps ? step_scores_text(opset_, "q_heads", keys_, "scale")
                                            : bf16_scores_text("q_heads", keys_, "scale");
      return;
    }
    line("q_scaled = Mul (q_heads, scale)");
    line("k_turned = Transpose <perm = [0, 1, 3, 2]> (" + keys_ + ")");
    line("scores = MatMul (q_scaled, k_turned)");
  }

  void cap() {
    scores_ = "capped";
    line("cap = Constant <value_float: float = @softcap> ()");
    line("share = Div (scores, cap)");
    line("bent = Tanh (share)");
    line("capped = Mul (bent, cap)");
  }

  /// Numbers for the rows and columns of the grid in which the keys lie.
  void grid() {
    line("behind = " + ints("-1", 1));
    line("in_front = " + ints("-2", 1));
    for (int axis = 0; axis < 3; ++axis) extent("of_" + std::to_string(axis), scores_, axis);
    extent("high", "grid_rows", 3);
    extent("wide", "grid_columns", 3);
    line("by_place = Concat <axis = 0> (of_0, of_1, of_2, high, wide)");
    line("by_key = Shape (" + scores_ + ")");
    line("of_places = Reshape (" + scores_ + ", by_place)");
    line("of_rows = Unsqueeze (grid_rows, behind)");
    line("of_columns = Unsqueeze (grid_columns, in_front)");
    line("with_rows = Add (of_places, of_rows)");
    line("with_columns = Add (with_rows, of_columns)");
    line("placed = Reshape (with_columns, by_key)");
    scores_ = "placed";
  }

  void bias() {
    line("biased = Add (" + scores_ + ", bias)");
    scores_ = "biased";
  }

  /// What the mask makes of scores.
  std::string masked(const std::string& scores) const {
    if (attention_.true_replaces) return "Where (mask, on, " + scores + ")";
    if (attention_.false_replaces) return "Where (mask, " + scores + ", off)";
    return "Add (" + scores + ", " + (attention_.boolean_mask ? "mask_numbers" : "mask") + ")";
  }

  void mask() {
    const std::string scores = scores_;
    scores_ = "masked";
    if (attention_.boolean_mask) {
      if (!attention_.false_replaces) line("on = Constant <value_float: float = @mask_true> ()");
      if (!attention_.true_replaces) line("off = Constant <value_float: float = @mask_false> ()");
      if (!attention_.true_replaces && !attention_.false_replaces) line("mask_numbers = Where (mask, on, off)");
    }
    if (!attention_.windows) return line("masked = " + masked(scores));
    extent("windows", "mask", 0);
    for (int axis = 0; axis < 4; ++axis) extent("scores_" + std::to_string(axis), "scores", axis);
    line("images = Div (scores_0, windows)");
    line("by_image = Concat <axis = 0> (images, windows, scores_1, scores_2, scores_3)");
    line("by_batch = Concat <axis = 0> (scores_0, scores_1, scores_2, scores_3)");
    line("of_images = Reshape (" + scores + ", by_image)");
    line("masked_images = " + masked("of_images"));
    line("masked = Reshape (masked_images, by_batch)");
  }

  void causal() {
    line("first = Constant <value = int64 {0}> ()");
    line("step = Constant <value = int64 {1}> ()");
    line(std::isfinite(attention_.causal_number) ? "hidden = Constant <value_float: float = @causal_number> ()"
                                                 : "hidden = Constant <value = float {-inf}> ()");
    extent("queries", "q_heads", 2);  // not of the scores: rules that read this body take those that nothing else reads
    extent("keys", keys_, 2);
    line("query_end = Squeeze (queries)");
    line("key_end = Squeeze (keys)");
    line("rows = Range (first, query_end, step)");
    line("columns = Range (first, key_end, step)");
    line("row = Unsqueeze (rows, one)");
    line("later = Greater (columns, row)");
    if (attention_.causal_adds) {
      line("shown = Constant <value = float {0}> ()");
      line("hiding = Where (later, hidden, shown)");
      line("past = Add (" + scores_ + ", hiding)");
    } else {
      line("past = Where (later, hidden, " + scores_ + ")");
    }
    scores_ = "past";
  }

  /// softmax(scores) values
  void weigh(const std::string& to) {
    if (products_ != Products::float32) {
      const auto weights_text = products_ == Products::steps ? step_weights_text : bf16_weights_text;
      text_ += weights_text(opset_, scores_, values_, attention_.nan_guard, to);
      return;
    }
    line("weights = Softmax <axis = -1> (" + scores_ + ")");
    if (!attention_.nan_guard) return line(to + " = MatMul (weights, " + values_ + ")");
    line("nothing = Constant <value = float {0}> ()");
    line("undefined = IsNaN (weights)");
    line("guarded = Where (undefined, nothing, weights)");
    line(to + " = MatMul (guarded, " + values_ + ")");
  }

  /// [batch, heads, sequence, size] -> [batch, sequence, heads * size]
  void result() {
    line("turned = Transpose <perm = [0, 2, 1, 3]> (context)");
    if (value_.empty()) extent("size", "context", 3);
    line("width = Mul (" + (value_.empty() ? "size" : value_) + ", n)");
    line("target = Concat <axis = 0> (copied, width)");
    line("y = Reshape (turned, target)");
  }

  const AttentionAttrs attention_;
  int opset_;
  Products products_;
  std::string text_, keys_ = "k_heads", values_ = "v_heads", scores_ = "scores";
  std::string head_, value_;  ///< names of sizes that the call says
};

}  // namespace

std::string attention_body(const Call& call, int opset) {
  return Body(AttentionAttrs(call), opset, Products::float32).text();
}

std::string qattention_body(const Call& call, int opset) {
  return Body(AttentionAttrs(call), opset, Products::steps).text();
}

std::string attention_bf16_body(const Call& call, int opset) {
  return Body(AttentionAttrs(call), opset, Products::bfloat16).text();
}

}  // namespace modelflow::ops
