// modelflow.Attention in place of what was found, packed where the operands lie side by side.
#include "passes/fuse/attention_build.h"

#include <algorithm>
#include <cmath>

#include "modelflow/modelflow.h"
#include "passes/fuse/attention_pack.h"
#include "passes/fuse/attention_result.h"
#include "passes/graph/edits.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

using Form = Heads::Form;
using Candidates = std::vector<Heads>;

constexpr int kUseless = 9, kTurned = 4;  // kTurned: behind a Transpose

/// One head that stands in for all of the other operand's. Where batch and heads lie together, a matrix for each of
/// them may be read as one head of so many batches: only a single matrix serves all.
bool serves_all(const Heads& heads) { return heads.heads == 1 && (!heads.together || heads.batch().number() == 1); }

/// How many heads of keys and values the heads of queries share; 0 when they do not fit. A product repeats one head or
/// none, the standard op repeats as many times as it takes.
std::int64_t shared_heads(const Operands& o, bool repeats) {
  const Heads &q = *o.q, &k = *o.k, &v = *o.v;
  if (q.group != 1 || k.heads < 1 || k.heads != v.heads || k.group != v.group) return 0;
  const std::int64_t all = k.heads * k.group;
  const bool one = serves_all(k) && serves_all(v);
  if (all != q.heads && !one && !(repeats && k.group == 1 && q.heads % k.heads == 0)) return 0;
  if (k.group > 1 && all != q.heads) return 0;
  if (q.size.known() && k.size.known() && !(q.size == k.size)) return 0;
  return k.heads;
}

class Builder {
 public:
  Builder(Attention attention, Context& context)
      : found_(std::move(attention)), context_(context), graph_(found_.end->graph()) {
    for (const Candidates* list : {&found_.q, &found_.k, &found_.v})
      for (const Heads& heads : *list)
        for (const Value* value : heads.passed) found_.nodes.insert(value->producer());
  }

  Verdict run() {
    if (context_.model.opset() < 13) return no("the opset is below 13");
    if (Verdict v = choose(); !v) return v;
    const std::int64_t heads = chosen_.q->heads;
    Value& end = *found_.end->output();
    std::optional<Continuation> to = Continuation{&end, Continuation::Form::bsh};
    if (!found_.flat) to = read_continuation(end, heads, found_.turned);
    if (!to) return no("the result is not [batch, heads, sequence, size]", end.name());
    Masking masking;
    if (Verdict v = found_.masking(heads, masking); !v) return v;
    masking.scale *= chosen_.q->factor * chosen_.k->factor;
    if (chosen_.v->factor != 1) return no("the values are scaled", chosen_.v->value->name());
    return build(masking, *to);
  }

 private:
  std::int64_t shared(const Operands& operands) const { return shared_heads(operands, found_.end->is("Attention")); }

  Verdict choose() {
    if (found_.q.empty()) return no("the queries are no heads of a known form");
    if (found_.k.empty()) return no("the keys are no heads of a known form");
    if (found_.v.empty()) return no("the values are no heads of a known form");
    std::string why;
    if (choose_packed(why)) return yes();
    for (const Heads* q : sorted(found_.q))
      for (const Heads* k : sorted(found_.k))
        for (const Heads* v : sorted(found_.v))
          if (shared({q, k, v})) {
            chosen_ = {q, k, v};
            if (!why.empty()) context_.miss("attention-packed", found_.end, why);
            return yes();
          }
    return no("queries, keys and values have heads that do not fit together");
  }

  bool choose_packed(std::string& why) {
    const auto flat = [&](const Heads& heads) {
      const bool is = heads.form == Form::bsh || heads.form == Form::sbh || heads.form == Form::bhs;
      return is && heads.read_only_by(found_.nodes);
    };
    for (const Heads& q : found_.q)
      for (const Heads& k : found_.k)
        for (const Heads& v : found_.v) {
          const Operands operands{&q, &k, &v};
          if (!flat(q) || !flat(k) || !flat(v) || !shared(operands)) continue;
          packed_ = pack(operands, found_.nodes, *found_.end, context_, why);
          if (packed_) return chosen_ = operands, true;
        }
    return false;
  }

  /// What an operand costs: others that read the heads as they are keep the nodes that make them.
  int cost(const Heads& heads) const { return cost_of_form(heads) + (heads.joined() ? 1 : 0); }  // a Reshape

  int cost_of_form(const Heads& heads) const {
    const bool alone = heads.read_only_by(found_.nodes);
    if (heads.form == Form::bnsh) return !alone ? 0 : adds_unit_axis(heads) ? kTurned + 1 : 1;
    if (heads.form == Form::bnhs) return 3;
    if (heads.form == Form::bsh) return !heads.whole() ? kUseless : !alone ? 2 : turned_before(heads) ? kTurned : 0;
    if (heads.form == Form::bsnd) return !heads.size.known() ? kUseless : alone ? 0 : 2;
    return heads.whole() ? kTurned : kUseless;
  }

  /// The axis of a single head, which a Reshape added, for this alone, to rows that can be read as they are.
  bool adds_unit_axis(const Heads& heads) const {
    const auto inside = [&](const Use& use) { return found_.nodes.contains(use.node); };
    const Node* node = heads.value->producer();
    if (heads.value->is_graph_output() || !std::ranges::all_of(heads.value->uses(), inside)) return false;
    if (!node || heads.heads != 1 || !(node->is("Reshape") || node->is("Unsqueeze"))) return false;
    const Shape &rows = node->input(0)->shape(), &all = heads.value->shape();
    return rows.has_rank() && rows.rank() == 3 && rows[0] == all[0] && rows[1] == all[2] && rows[2] == all[3];
  }

  /// No better than what the Transpose reads, where a scale may stand in front of it.
  static bool turned_before(const Heads& heads) {
    const Node* node = heads.value->producer();
    return node && node->is("Transpose") && only_reader(*heads.value);
  }

  std::vector<const Heads*> sorted(const Candidates& list) const {
    std::vector<const Heads*> order;
    for (const Heads& heads : list)
      if (cost(heads) < kUseless) order.push_back(&heads);
    std::stable_sort(order.begin(), order.end(), [&](const Heads* a, const Heads* b) { return cost(*a) < cost(*b); });
    return order;
  }

  /// The value with the axes joined that the heads were read as one.
  Value* as_read(Build& build, Value* value, const Heads& heads) {
    if (!heads.joined()) return value;
    // What stands behind the joined axes is known, or they would not be read so; so are pixels.
    const Ints target = heads.pixels() ? Ints{0, 0, heads.shape[2].value()} : *open_target(value->shape(), 2);
    return &build.op("Reshape", {value, &build.constant(tensor_of(target), "shape")});
  }

  /// Three operands in one value: rows, or columns that become rows.
  Value* packed(Build& build) {
    Value* value = as_read(build, packed_, *chosen_.q);
    if (chosen_.q->form == Form::bhs) value = &build.op("Transpose", {value}, {{"perm", Ints{0, 2, 1}}});
    return value;
  }

  /// The operand as the fused op reads it.
  Value* operand(const Heads& heads) {
    Build build(graph_, *found_.end, context_);
    Value* value = as_read(build, heads.value, heads);
    if (heads.form == Form::sbh) return &build.op("Transpose", {value}, {{"perm", Ints{1, 0, 2}}});
    if (heads.form == Form::bhs) return &build.op("Transpose", {value}, {{"perm", Ints{0, 2, 1}}});
    if (heads.form == Form::bnhs) return &build.op("Transpose", {value}, {{"perm", Ints{0, 1, 3, 2}}});
    if (heads.form != Form::bsnd) return value;
    const Ints target = {0, 0, heads.heads * heads.size.value()};
    return &build.op("Reshape", {value, &build.constant(tensor_of(target), "shape")});
  }

  /// What was known of the value that `to` takes the place of.
  static void keep_extents(const Value& from, Value& to) {
    if (!from.shape().has_rank() || !to.shape().has_rank() || from.shape().rank() != to.shape().rank()) return;
    std::vector<Dim> dims = to.shape().dims();
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (dims[i].unknown()) dims[i] = from.shape()[i];
    to.type = Type::tensor(to.dtype(), Shape(std::move(dims)));
  }

  static void set_causal(const Masking::Causal& causal, Attrs& attrs) {
    attrs.set("causal", causal.on ? 1 : 0);
    if (!causal.on) return;
    if (std::isfinite(causal.number)) attrs.set("causal_number", causal.number);
    if (causal.adds) attrs.set("causal_adds", 1);
    if (causal.first) attrs.set("causal_first", 1);
  }

  static void set_flags(const Masking& masking, Attrs& attrs) {
    attrs.set("boolean_mask", 1).set("mask_true", masking.flag_true).set("mask_false", masking.flag_false);
    if (masking.replaces != Masking::Replaces::none)
      attrs.set("replaces", masking.replaces == Masking::Replaces::by_true ? "true" : "false");
    if (masking.numbers) attrs.set("has_bias", 1);
    if (masking.numbers_last) attrs.set("bias_last", 1);
  }

  Verdict build(const Masking& masking, const Continuation& to) {
    const auto layout = [&](const Heads& heads) {
      const bool second = heads.form == Form::bnsh || heads.form == Form::bnhs;
      return !packed_ && second ? "BNSH" : "BSH";
    };
    Attrs attrs;
    attrs.set("num_heads", chosen_.q->heads).set("kv_heads", shared(chosen_)).set("scale", masking.scale);
    if (masking.softcap != 0) attrs.set("softcap", masking.softcap);
    const bool flags = masking.flags != nullptr, numbers = masking.numbers != nullptr;
    set_causal(masking.causal, attrs);
    attrs.set("has_mask", flags || numbers ? 1 : 0);
    attrs.set("nan_guard", found_.nan_guard ? 1 : 0).set("packed", packed_ ? 1 : 0);
    if (masking.windows) attrs.set("windows", 1);
    if (flags) set_flags(masking, attrs);
    if (masking.grid_rows) attrs.set("has_grid", 1);
    attrs.set("q_layout", layout(*chosen_.q)).set("k_layout", layout(*chosen_.k)).set("v_layout", layout(*chosen_.v));
    attrs.set("y_layout", std::string(to.layout()));
    Build build(graph_, *found_.end, context_);
    std::vector<Value*> inputs = {packed_ ? packed(build) : nullptr};
    if (!packed_) inputs = {operand(*chosen_.q), operand(*chosen_.k), operand(*chosen_.v)};
    for (const Value* input : inputs)
      if (input->dtype() != DType::f32) return no("not float32", input->name());
    if (flags) inputs.push_back(masking.flags);
    if (numbers) inputs.push_back(masking.numbers);
    if (masking.grid_rows) inputs.insert(inputs.end(), {masking.grid_rows, masking.grid_columns});
    Node& end = *found_.end;
    Node* fused =
        make_fused(graph_, context_, "attention", "modelflow.Attention", std::move(inputs), std::move(attrs), end);
    if (!fused) return no("");
    fused->name = end.name;
    Value& result = continue_to(to, *fused->output(), chosen_.q->heads, end, context_);
    keep_extents(*to.end, result);
    graph_.replace(*to.end, result);
    context_.hit(packed_ ? "attention-packed" : "attention");
    return yes();
  }

  Attention found_;
  Context& context_;
  Graph& graph_;
  Operands chosen_{};
  Value* packed_ = nullptr;
};

}  // namespace

Verdict build_attention(Attention attention, Context& context) { return Builder(std::move(attention), context).run(); }

}  // namespace modelflow::passes
