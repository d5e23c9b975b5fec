// Attention of channels to channels (XCiT, EdgeNeXt, DaViT) -> modelflow.ChannelAttention: scores of channels over all
// tokens, whose lengths are taken out or not, with a temperature for each head.
#include <cmath>

#include "modelflow/modelflow.h"
#include "passes/fuse/attention_flat.h"
#include "passes/fuse/attention_result.h"
#include "passes/fuse/fuse.h"
#include "passes/graph/edits.h"
#include "passes/graph/epilogue.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

/// Scores on their way to the softmax, in any order: what they are multiplied by.
struct Factors {
  float scale = 1;
  Value* temperature = nullptr;  ///< a number for each head
};

/// Queries or keys: what is read, and what stands between it and the product.
struct Side {
  Value* heads = nullptr;  ///< [batch, heads, size, tokens], turned [batch, heads, tokens, size]
  bool turned = false;
  std::optional<float> epsilon = {};  ///< divided by its lengths over the tokens, which are at least this
  bool clips = false;                 ///< by a Clip
};

class Finder {
 public:
  Finder(Node& softmax, Context& context) : softmax_(softmax), context_(context) {}

  Verdict run() {
    if (context_.model.opset() < 13) return no("");
    gone_.insert(&softmax_);
    if (Verdict v = read(); !v) return v;
    if (q_.epsilon.has_value() != k_.epsilon.has_value()) return no("only one of queries and keys has unit length");
    if (q_.epsilon && *q_.epsilon != *k_.epsilon) return no("queries and keys have other least lengths");
    if (q_.clips != k_.clips) return no("one least length is a Clip, the other a Max");
    if (temperatures_ > 1) return no("there are two temperatures");
    return build();
  }

 private:
  /// From the softmax back to the product of queries and keys, and on to that with the values.
  Verdict read() {
    const Value* scores = softmax_.input(0);
    const std::optional<std::size_t> rank = rank_of(scores);
    const std::int64_t axis = softmax_.attrs.integer("axis", -1);
    if (rank != 4 || (axis != -1 && axis != 3)) return no("");
    Value* from = softmax_.input(0);
    while (Node* node = factor(*from)) from = &take(*node);
    scores_ = from->producer();
    if (!scores_ || !is_product_of_heads(*scores_) || !only_reader(*from)) return no("");
    gone_.insert(scores_);
    Node* context = only_reader(*softmax_.output());
    if (!context || !is_product_of_heads(*context) || context->input(0) != softmax_.output()) return no("");
    context_node_ = context;
    gone_.insert(context);
    read_side(*scores_->input(0), false, q_);
    read_side(*scores_->input(1), true, k_);
    return yes();
  }

  /// The node that multiplies by a number, or by one for each head; its result has no other reader.
  Node* factor(const Value& value) const {
    Node* node = value.producer();
    if (!node || &node->graph() != &value.graph() || !only_reader(value)) return nullptr;
    Value* x = nullptr;
    return scaled(*node, x) || by_head(*node) ? node : nullptr;
  }

  /// Which operand of Mul is [heads, 1, 1].
  static std::optional<std::size_t> by_head(const Node& node) {
    if (!node.is("Mul") || rank_of(node.output()) != 4) return {};
    for (const std::size_t i : {0, 1}) {
      const Tensor* constant = node.input(i)->constant();
      if (!constant || constant->dtype() != DType::f32) continue;
      Dims dims = constant->dims();
      if (dims.size() == 4 && dims[0] == 1) dims.erase(dims.begin());
      const Dim& heads = node.output()->shape()[1];
      if (dims.size() == 3 && dims[1] == 1 && dims[2] == 1 && heads.number() == dims[0]) return i;
    }
    return {};
  }

  /// What the node multiplies, its factor joined to the others.
  Value& take(Node& node) {
    gone_.insert(&node);
    Value* x = nullptr;
    if (const std::optional<float> number = scaled(node, x)) {
      factors_.scale *= *number;
      return *x;
    }
    const std::size_t i = *by_head(node);
    temperatures_ += 1;
    factors_.temperature = node.input(i);
    return *node.input(1 - i);
  }

  /// Back over factors, a turn of the last two axes and the quotient by lengths, to the heads. `turned`: value is
  /// [batch, heads, tokens, size].
  void read_side(Value& operand, bool turned, Side& side) {
    Value* value = &operand;
    while (true) {
      if (Node* node = factor(*value)) {
        value = &take(*node);
        continue;
      }
      Node* node = value->producer();
      if (!node || &node->graph() != &value->graph()) break;
      if (!side.epsilon && node->is("Div") && only_reader(*value)) {
        if (unit(*node, turned ? 2 : 3, side)) {
          value = node->input(0);
          break;
        }
      }
      if (!node->is("Transpose") || node->attrs.ints("perm") != Ints{0, 1, 3, 2} || !only_reader(*value)) break;
      gone_.insert(node);
      turned = !turned;
      value = node->input(0);
    }
    side.heads = value;
    side.turned = turned;
  }

  /// Whether it is x / max(length of x along `axis`, epsilon).
  bool unit(const Node& quotient, std::int64_t axis, Side& side) {
    const Value& x = *quotient.input(0);
    Node* bound = quotient.input(1)->producer();
    if (!bound || only_reader(*bound->output()) != &quotient) return false;
    const Value* lengths = nullptr;
    std::optional<float> least;
    if (bound->is("Clip") && !bound->input(2)) {
      lengths = bound->input(0);
      least = scalar(bound->input(1));
    } else if (bound->is("Max") && bound->inputs().size() == 2) {
      const std::size_t constant = bound->input(0)->constant() ? 0 : 1;
      lengths = bound->input(1 - constant);
      least = scalar(bound->input(constant));
    }
    Node* norm = lengths ? lengths->producer() : nullptr;
    if (!least || !(*least > 0) || !norm || !norm->is("ReduceL2") || norm->input(0) != &x || !only_reader(*lengths))
      return false;
    const std::optional<Ints> axes = setting(*norm, "axes", 1);
    const std::optional<Ints> list = axes ? positive(*axes, 4) : std::nullopt;
    if (!list || *list != Ints{axis} || norm->attrs.integer("keepdims", 1) == 0) return false;
    for (Node* node : {const_cast<Node*>(&quotient), bound, norm}) gone_.insert(node);
    side.epsilon = least, side.clips = bound->is("Clip");
    return true;
  }

  Verdict build() {
    const std::vector<Heads> qs = heads_side_by_side(*q_.heads, !q_.turned),
                             ks = heads_side_by_side(*k_.heads, !k_.turned),
                             vs = heads_side_by_side(*context_node_->input(1), true);
    std::string why = "queries, keys and values are no heads of channels that lie side by side";
    for (const Heads& q : qs)
      for (const Heads& k : ks)
        for (const Heads& v : vs) {
          if (q.heads != k.heads || q.heads != v.heads || !(q.size == k.size) || !(q.size == v.size)) continue;
          if (v.factor != 1 || (q_.epsilon && (q.factor != 1 || k.factor != 1))) continue;
          if (put({&q, &k, &v}, why)) return yes();
        }
    return qs.empty() || ks.empty() || vs.empty() ? no("") : no(why);
  }

  bool put(const Operands& o, std::string& why) {
    Node& end = *context_node_;
    const std::optional<Continuation> to = read_continuation(*end.output(), o.q->heads, true);
    if (!to || to->layout() != "BSH") return why = "the result is not [batch, tokens, channels]", false;
    std::vector<Value*> inputs = flat_operands(o, gone_, end, context_, why);
    if (inputs.empty()) return false;
    Attrs attrs;
    attrs.set("num_heads", o.q->heads).set("packed", inputs.size() == 1 ? 1 : 0).set("normalize", q_.epsilon ? 1 : 0);
    attrs.set("clips", q_.clips ? 1 : 0).set("epsilon", Attr(q_.epsilon.value_or(0)));
    attrs.set("has_temperature", factors_.temperature ? 1 : 0);
    attrs.set("scale", Attr(factors_.scale * o.q->factor * o.k->factor));
    Graph& graph = end.graph();
    if (factors_.temperature)
      inputs.push_back(
          &graph.add_constant(factors_.temperature->constant()->reshaped({o.q->heads}), factors_.temperature->name()));
    Node* fused = make_fused(graph, context_, "channel-attention", "modelflow.ChannelAttention", std::move(inputs),
                             std::move(attrs), end);
    if (!fused) return why = "", false;
    fused->name = end.name;
    graph.replace(*to->end, continue_to(*to, *fused->output(), o.q->heads, end, context_));
    context_.hit("channel-attention");
    return true;
  }

  Node& softmax_;
  Context& context_;
  Node *scores_ = nullptr, *context_node_ = nullptr;
  Factors factors_;
  int temperatures_ = 0;
  Side q_, k_;
  std::set<const Node*> gone_;
};

int run(Graph& graph, Context& context) {
  int changes = 0;
  for (Node* softmax : nodes_of(graph, {"Softmax"})) {
    const Verdict verdict = Finder(*softmax, context).run();
    if (verdict) ++changes;
    if (!verdict && !verdict.reason.empty()) context.miss("channel-attention", softmax, verdict.reason);
  }
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass fuse_channel_attention() {
  return {.name = "fuse-channel-attention",
          .doc = "Attention of channels to channels, of unit length or not -> modelflow.ChannelAttention",
          .run = run};
}

}  // namespace modelflow::passes
