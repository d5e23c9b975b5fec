// Attention whose heads are mixed before the softmax and behind it (talking heads, arXiv 2003.02436; CaiT, 2103.17239)
// -> modelflow.TalkingHeads. What mixes them is a linear layer between Transposes, a product from the left between
// Reshapes, or a convolution of single pixels whose channels are the heads.
#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/fuse/attention_flat.h"
#include "passes/fuse/attention_result.h"
#include "passes/fuse/fuse.h"
#include "passes/graph/edits.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/graph/folded.h"
#include "passes/graph/transposed.h"

namespace modelflow::passes {
namespace {

/// What makes scores of heads from those of all heads, as a match of one of its spellings.
struct Mixing {
  Value* from = nullptr;     ///< [batch, heads, tokens, tokens]
  std::vector<Node*> nodes;  ///< from the last to the first
  const Value* weights = nullptr;
  Tensor matrix;                ///< [heads, heads]: a row makes a head
  const Value* bias = nullptr;  ///< as many numbers as heads; null: none
};

/// The node of this op that makes the value for one reader alone.
Node* made_for_one(const Value& value, std::string_view op) {
  Node* node = value.producer();
  return node && node->is(op) && &node->graph() == &value.graph() && only_reader(value) ? node : nullptr;
}

const Tensor* square(const Value* value, std::size_t rank) {
  const Tensor* tensor = value ? value->constant() : nullptr;
  const bool fits = tensor && tensor->dtype() == DType::f32 && tensor->rank() == rank &&
                    tensor->dims()[0] == tensor->dims()[1] && tensor->dims()[0] > 0 &&
                    tensor->elements() == tensor->dims()[0] * tensor->dims()[1];
  return fits ? tensor : nullptr;
}

/// Steps back over a sum with one number for each head, which `dims` are the extents of; false where it is another sum.
bool take_bias(Value*& value, const Dims& dims, Mixing& mixing) {
  Node* sum = made_for_one(*value, "Add");
  if (!sum) return true;
  const std::size_t place = sum->input(0)->constant() ? 0 : 1;
  const Tensor* bias = sum->input(place)->constant();
  if (!bias || bias->dtype() != DType::f32) return false;
  Dims found = bias->dims();
  while (found.size() > dims.size() && found[0] == 1) found.erase(found.begin());
  if (found != dims || bias->rank() > rank_of(value).value_or(0)) return false;
  mixing.bias = sum->input(place);
  mixing.nodes.push_back(sum);
  value = sum->input(1 - place);
  return true;
}

/// Transpose(Transpose(x) W + b): the heads go to the last axis and back.
bool read_layer(Value& y, Mixing& mixing) {
  Node* last = made_for_one(y, "Transpose");
  if (!last || last->attrs.ints("perm") != Ints{0, 3, 1, 2}) return false;
  mixing.nodes.push_back(last);
  Value* value = last->input(0);
  const Dim& heads = y.shape()[1];
  if (!heads.known() || !take_bias(value, {heads.value()}, mixing)) return false;
  Node* product = made_for_one(*value, "MatMul");
  const Tensor* weights = product ? square(product->input(1), 2) : nullptr;
  Node* first = weights ? made_for_one(*product->input(0), "Transpose") : nullptr;
  if (!first || first->attrs.ints("perm") != Ints{0, 2, 3, 1}) return false;
  mixing.nodes.insert(mixing.nodes.end(), {product, first});
  mixing.from = first->input(0), mixing.weights = product->input(1), mixing.matrix = transposed(*weights, {1, 0});
  return true;
}

/// Reshape(W Reshape(x) + b): all pairs of tokens in one row for each head, W there once or for each image.
bool read_left(Value& y, Mixing& mixing) {
  Node* last = made_for_one(y, "Reshape");
  if (!last || rank_of(last->input(0)) != 3) return false;
  mixing.nodes.push_back(last);
  Value* value = last->input(0);
  const Dim& heads = y.shape()[1];
  if (!heads.known() || !take_bias(value, {heads.value(), 1}, mixing)) return false;
  Node* product = made_for_one(*value, "MatMul");
  Value* matrix = product ? product->input(0) : nullptr;
  Node* expand = matrix ? made_for_one(*matrix, "Expand") : nullptr;  // one for each image
  if (expand) {
    const Shape& wide = matrix->shape();
    if (!wide.has_rank() || wide.rank() != 3 || !(wide[0] == y.shape()[0])) return false;
    matrix = expand->input(0);
  }
  const Tensor* weights = square(matrix, 2);
  Node* first = weights ? made_for_one(*product->input(1), "Reshape") : nullptr;
  if (!first || rank_of(product->input(1)) != 3 || rank_of(first->input(0)) != 4) return false;
  const Shape &x = first->input(0)->shape(), &rows = product->input(1)->shape();
  if (!(x == y.shape()) || !leading_alike(x, rows, 2)) return false;
  mixing.nodes.insert(mixing.nodes.end(), {product, first});
  if (expand) mixing.nodes.push_back(expand);
  mixing.from = first->input(0), mixing.weights = matrix, mixing.matrix = *weights;
  return true;
}

/// Conv(x, W, b) with windows of one.
bool read_conv(Value& y, Mixing& mixing) {
  Node* conv = made_for_one(y, "Conv");
  const Tensor* weights = conv ? square(conv->input(1), 4) : nullptr;
  if (!weights || conv->attrs.integer("group", 1) != 1 || !explicit_pads(*conv)) return false;
  if (!all_are(conv->attrs.ints("strides"), 1) || !all_are(conv->attrs.ints("pads"), 0)) return false;
  mixing.bias = conv->input(2);
  if (mixing.bias && (!mixing.bias->constant() || mixing.bias->constant()->dtype() != DType::f32)) return false;
  mixing.nodes = {conv};
  mixing.from = conv->input(0), mixing.weights = conv->input(1);
  mixing.matrix = weights->reshaped({weights->dims()[0], weights->dims()[1]});
  return true;
}

std::optional<Mixing> read_mixing(Value& y) {
  if (rank_of(&y) != 4) return {};
  for (auto* read : {read_layer, read_left, read_conv}) {
    Mixing mixing;
    if (read(y, mixing) && mixing.matrix.dims()[0] == y.shape()[1].number()) return mixing;
  }
  return {};
}

/// The mixing that reads a value and nobody else does.
std::optional<Mixing> mixing_behind(Value& from, Value*& y) {
  y = &from;
  for (int steps = 0; steps < 5; ++steps) {
    Node* node = only_reader(*y);
    if (!node || !node->output()) return {};
    y = node->output();
    if (std::optional<Mixing> mixing = read_mixing(*y); mixing && mixing->from == &from) return mixing;
  }
  return {};
}

class Finder {
 public:
  Finder(Node& softmax, Context& context) : softmax_(softmax), context_(context) {}

  Verdict run() {
    if (context_.model.opset() < 13) return no("");
    const std::int64_t axis = softmax_.attrs.integer("axis", -1);
    if (rank_of(softmax_.input(0)) != 4 || (axis != -1 && axis != 3)) return no("");
    gone_.insert(&softmax_);
    if (!read_scores() || !read_weights()) return no("");
    if (before_.bias && !ordinary_or_zero(*before_.bias->constant())) return no("the bias of scores is no number");
    return build();
  }

 private:
  /// From the softmax back over the mixing to the product of queries and keys.
  bool read_scores() {
    Value* value = &unscaled(*softmax_.input(0));
    std::optional<Mixing> mixing = read_mixing(*value);
    if (!mixing) return false;
    take(before_, *std::move(mixing));
    value = &unscaled(*before_.from);
    scores_ = value->producer();
    if (!scores_ || !is_product_of_heads(*scores_) || !only_reader(*value)) return false;
    gone_.insert(scores_);
    return true;
  }

  /// And on over the other mixing to the product with the values.
  bool read_weights() {
    Value* y = nullptr;
    std::optional<Mixing> mixing = mixing_behind(*softmax_.output(), y);
    if (!mixing) return false;
    take(after_, *std::move(mixing));
    context_node_ = only_reader(*y);
    if (!context_node_ || !is_product_of_heads(*context_node_) || context_node_->input(0) != y) return false;
    gone_.insert(context_node_);
    return true;
  }

  void take(Mixing& place, Mixing&& mixing) {
    place = std::move(mixing);
    gone_.insert(place.nodes.begin(), place.nodes.end());
  }

  /// Numbers that scores are multiplied by commute with the mixing, its bias apart, which a softmax does not see.
  Value& unscaled(Value& value) {
    Node* node = value.producer();
    Value* x = nullptr;
    const std::optional<float> number =
        node && &node->graph() == &value.graph() && only_reader(value) ? scaled(*node, x) : std::nullopt;
    if (!number) return value;
    scale_ *= *number;
    gone_.insert(node);
    return unscaled(*x);
  }

  static bool ordinary_or_zero(const Tensor& bias) {
    return ordinary(bias) || std::ranges::all_of(bias.as<float>(), [](float number) { return number == 0; });
  }

  std::vector<Heads> flat(Value& value, bool transposed) const {
    std::vector<Heads> all = heads_side_by_side(value, transposed);
    std::erase_if(all, [&](const Heads& heads) { return heads.heads != before_.matrix.dims()[0]; });
    return all;
  }

  Verdict build() {
    const std::vector<Heads> qs = flat(*scores_->input(0), false), ks = flat(*scores_->input(1), true),
                             vs = flat(*context_node_->input(1), false);
    std::string why = "queries, keys and values are no heads of channels that lie side by side";
    for (const Heads& q : qs)
      for (const Heads& k : ks)
        for (const Heads& v : vs)
          if (q.size == k.size && q.size == v.size && v.factor == 1 && put({&q, &k, &v}, why)) return yes();
    return no(why);
  }

  bool put(const Operands& o, std::string& why) {
    Node& end = *context_node_;
    const std::optional<Continuation> to = read_continuation(*end.output(), o.q->heads, false);
    if (!to || to->layout() != "BSH") return why = "the result is not [batch, tokens, channels]", false;
    std::vector<Value*> inputs = flat_operands(o, gone_, end, context_, why);
    if (inputs.empty()) return false;
    Attrs attrs;
    attrs.set("num_heads", o.q->heads).set("packed", inputs.size() == 1 ? 1 : 0).set("has_bias", after_.bias ? 1 : 0);
    attrs.set("scale", Attr(scale_ * o.q->factor * o.k->factor));
    Graph& graph = end.graph();
    for (const Mixing* mixing : {&before_, &after_})
      inputs.push_back(&graph.add_constant(mixing->matrix, mixing->weights->name()));
    if (after_.bias)
      inputs.push_back(&graph.add_constant(after_.bias->constant()->reshaped({o.q->heads}), after_.bias->name()));
    Node* fused = make_fused(graph, context_, "talking-heads", "modelflow.TalkingHeads", std::move(inputs),
                             std::move(attrs), end);
    if (!fused) return why = "", false;
    fused->name = end.name;
    graph.replace(*to->end, continue_to(*to, *fused->output(), o.q->heads, end, context_));
    context_.hit("talking-heads");
    return true;
  }

  Node& softmax_;
  Context& context_;
  Node *scores_ = nullptr, *context_node_ = nullptr;
  Mixing before_, after_;
  float scale_ = 1;
  std::set<const Node*> gone_;
};

int run(Graph& graph, Context& context) {
  const std::uint64_t version = graph.version();
  int changes = 0;
  for (Node* softmax : nodes_of(graph, {"Softmax"})) {
    const Verdict verdict = Finder(*softmax, context).run();
    if (verdict) ++changes;
    if (!verdict && !verdict.reason.empty()) context.miss("talking-heads", softmax, verdict.reason);
  }
  if (graph.version() != version) graph.prune();  // projections that no kernel was found for, too
  return changes;
}

}  // namespace

Pass fuse_talking_heads() {
  return {.name = "fuse-talking-heads",
          .doc = "Attention whose heads are mixed before the softmax and behind it -> modelflow.TalkingHeads",
          .run = run};
}

}  // namespace modelflow::passes
