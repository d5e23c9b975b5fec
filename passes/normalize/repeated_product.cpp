// A matrix of each head repeated for every batch in front of a product whose other operand has batch and heads in one
// axis (DeBERTa's relative positions): with both axes apart the product repeats it by itself.
#include "passes/graph/facts.h"
#include "passes/normalize/linear.h"

namespace modelflow::passes {

using namespace pattern;

namespace {

/// What others may read as well, and so is no part of the match.
struct Heads {
  Value *x = nullptr, *c = nullptr;  ///< x [batch, heads, sequence, size] and c, a matrix of each head
  const Value* all = nullptr;        ///< c repeated for every batch
  const Node* turn = nullptr;        ///< its matrices are transposed behind that
};

Heads heads_of(const Match& m) {
  Heads found;
  const Node *flat = m.value("flat").producer(), *tile = m.value("all").producer();
  if (tile && tile->is("Transpose")) {
    found.turn = tile;
    tile = tile->input(0)->producer();
  }
  if (!flat || !flat->is("Reshape") || !tile || !tile->is("Tile")) return found;
  found.x = flat->input(0);
  found.c = tile->input(0);
  found.all = tile->output();
  return found;
}

/// c is repeated along its first axis alone, x loses its first two axes to one, and both come to the same number of
/// matrices.
Verdict heads_come_apart(const Match& m) {
  const Heads h = heads_of(m);
  const Value& flat = m.value("flat");
  if (!h.x) return no("nothing is joined and repeated in front of it", flat.name());
  if (rank_of(h.x) != 4 || rank_of(&flat) != 3) return no("batch and heads are not joined", flat.name());
  if (rank_of(h.c) != 3 || rank_of(h.all) != 3) return no("what is repeated has another rank", h.c->name());
  const Shape &from = h.x->shape(), &to = flat.shape(), &one = h.c->shape(), &many = h.all->shape();
  if (!one.known() || !(one[0] == from[1])) return no("it is not one matrix of each head", h.c->name());
  if (!(from[2] == to[1]) || !(from[3] == to[2]) || !(from[0] * from[1] == to[0]))
    return no("more than batch and heads are joined", flat.name());
  if (!(one[1] == many[1]) || !(one[2] == many[2]) || !(many[0] == to[0]))
    return no("it is repeated another way", h.all->name());
  const Value& y = *m.root().output();
  if (rank_of(&y) != 3 || !y.shape()[2].known()) return no("the width of the result is unknown", y.name());
  const Ints swapped = {0, 2, 1};
  return !h.turn || h.turn->attrs.ints("perm") == swapped ? yes() : no("another Transpose", h.turn->output()->name());
}

std::vector<Value*> product_of_heads(const Match& m, Build& build) {
  // An extent of 0 would be one that is copied, before Reshape can say otherwise.
  const bool says_zero = build.opset() >= 14;
  const auto rows_known = m.value("flat").shape()[1].number().value_or(0);
  if (!says_zero && rows_known == 0) return build.refuse(no("the opset is below 14 and the sequence may be empty"));
  Heads h = heads_of(m);
  if (h.turn) h.c = &build.op("Transpose", {h.c}, h.turn->attrs);
  Value& y = build.op("MatMul", {h.x, h.c});
  const auto ints = [&](const Ints& list) { return &build.constant(tensor_of(list), "shape"); };
  Value& rows = build.op("Gather", {&build.op("Shape", {&m.value("flat")}), ints({0, 1})});
  Value& columns = *ints({m.root().output()->shape()[2].value()});
  Attrs attrs;
  if (says_zero) attrs.set("allowzero", 1);
  return {&build.op("Reshape", {&y, &build.op("Concat", {&rows, &columns}, {{"axis", std::int64_t{0}}})}, attrs)};
}

}  // namespace

std::vector<Rule> repeated_product_rules() {
  return {{.name = "repeated-operand",
           .doc = "MatMul(Reshape(x), Tile(c)) of one matrix of each head -> MatMul(x, c), which broadcasts",
           .from = op("MatMul", {any("flat"), any("all")}),
           .when = {heads_come_apart},
           .into = product_of_heads}};
}

}  // namespace modelflow::passes
