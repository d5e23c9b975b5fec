// Three projections of one input as one product: the input is read once, and the kernel finds the heads side by side.
#include "passes/fuse/attention_pack.h"

#include <array>
#include <vector>

#include "modelflow/pattern.h"
#include "passes/fuse/projection.h"
#include "passes/graph/imported_weights.h"

namespace modelflow::passes {
namespace {

class Packing {
 public:
  Packing(const Operands& operands, const std::set<const Node*>& gone, Node& before, Context& context)
      : heads_{operands.q, operands.k, operands.v}, gone_(gone), before_(before), context_(context) {}

  Value* run(std::string& why) {
    if (Value* value = as_it_is()) return value;
    if (heads_[0]->form == Heads::Form::bhs) return refuse(why, "the columns are not all of one value"), nullptr;
    if (!read_projections(why)) return nullptr;
    Value* x = rows_in_batches();
    std::vector<Columns> parts;
    for (std::size_t i = 0; i < 3; ++i) parts.push_back({&projections_[i], &heads_[i]->columns});
    const std::string& name = projections_[0].product->name;
    Build build(before_.graph(), before_, context_);
    return &product_of(*x, parts, name.empty() ? "qkv" : name + "_qkv", build);
  }

 private:
  /// All columns of one value in order, which are its rows where these are turned.
  Value* as_it_is() const {
    Value* value = heads_[0]->value;
    std::int64_t next = 0;
    for (const Heads* heads : heads_) {
      if (heads->value != value || heads->form == Heads::Form::sbh) return nullptr;
      for (const std::int64_t column : heads->columns)
        if (column != next++) return nullptr;
    }
    const Heads& all = *heads_[0];
    return all.shape[all.form == Heads::Form::bhs ? 1 : 2].number() == next ? value : nullptr;
  }

  bool read_projections(std::string& why) {
    for (std::size_t i = 0; i < 3; ++i) {
      const std::optional<Projection> read = read_projection(*heads_[i]->value);
      if (!read) return refuse(why, "'" + heads_[i]->value->name() + "' is not computed by a linear layer");
      if (i && read->x != projections_[0].x) return refuse(why, "the projections read different inputs");
      if (heads_[i]->value->is_graph_output()) return refuse(why, "a projection is an output of the model");
      for (const Use& use : heads_[i]->value->uses())
        if (!gone_.contains(use.node)) return refuse(why, "a projection is read elsewhere too");
      if (imported_weights(*read->product->input(1), read->columns_axis()))
        return refuse(why, "the weights of a projection are in 8 bits and stay as they are");
      projections_[i] = *read;
    }
    return true;
  }

  static bool refuse(std::string& why, std::string reason) {
    why = std::move(reason);
    return false;
  }

  /// The input as [batch, sequence, channels].
  Value* rows_in_batches() {
    Value* x = projections_[0].x;
    if (heads_[0]->form == Heads::Form::bsh) return x;
    const Node* node = x->producer();
    if (node && node->is("Transpose") && node->attrs.ints("perm") == Ints{1, 0, 2}) return node->input(0);
    Build build(before_.graph(), before_, context_);
    return &build.op("Transpose", {x}, {{"perm", Ints{1, 0, 2}}});
  }

  std::array<const Heads*, 3> heads_;
  std::array<Projection, 3> projections_;
  const std::set<const Node*>& gone_;
  Node& before_;
  Context& context_;
};

}  // namespace

Value* pack(const Operands& operands, const std::set<const Node*>& gone, Node& before, Context& context,
            std::string& why) {
  for (const Heads* heads : {operands.q, operands.k, operands.v}) {
    if (heads->form != operands.q->form || heads->columns.empty()) {
      why = "the projections are not of one form";
      return nullptr;
    }
    if (!heads->size.known() || !(heads->size == operands.q->size)) {
      why = "keys and values have heads of different sizes";
      return nullptr;
    }
  }
  return Packing(operands, gone, before, context).run(why);
}

}  // namespace modelflow::passes
