// Reads heads that lie side by side, and gives an attention its operands.
#include "passes/fuse/attention_flat.h"

#include "passes/graph/extents.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

bool alike(const Operands& o) {
  Extents extents;
  const Shape q = extents.of(*o.q->value), k = extents.of(*o.k->value), v = extents.of(*o.v->value);
  return q == k && q == v;
}

}  // namespace

bool is_product_of_heads(const Node& node) {
  return node.is("MatMul") && !node.input(0)->constant() && !node.input(1)->constant() && rank_of(node.input(0)) == 4 &&
         rank_of(node.input(1)) == 4;
}

std::vector<Heads> heads_side_by_side(Value& value, bool transposed) {
  std::vector<Heads> all = read_heads(value, transposed);
  std::erase_if(all, [](const Heads& heads) {
    return heads.form != Heads::Form::bsh || heads.group != 1 || !heads.size.known() || heads.joined();
  });
  return all;
}

std::vector<Value*> flat_operands(const Operands& o, std::set<const Node*> attention, Node& end, Context& context,
                                  std::string& why) {
  for (const Heads* heads : {o.q, o.k, o.v})
    for (const Value* value : heads->passed) attention.insert(value->producer());
  for (const Heads* heads : {o.q, o.k, o.v})
    if (!heads->read_only_by(attention)) return why = "the heads are read elsewhere too", std::vector<Value*>();
  if (Value* packed = pack(o, attention, end, context, why)) return {packed};
  for (const Heads* heads : {o.q, o.k, o.v})
    if (!heads->whole()) return {};
  if (!alike(o)) return why = "queries, keys and values may have unlike batches or tokens", std::vector<Value*>();
  return {o.q->value, o.k->value, o.v->value};
}

}  // namespace modelflow::passes
