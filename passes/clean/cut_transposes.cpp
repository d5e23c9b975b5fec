// A part of a transposed tensor that is transposed back: that part of the tensor itself.
#include "modelflow/modelflow.h"
#include "passes/clean/clean.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {

using namespace pattern;

namespace {

/// The axes that a Slice of a transposed tensor cuts, where they are in the tensor; nothing where they are not known.
std::optional<Ints> axes_of(const Node& slice, const Ints& perm) {
  const std::optional<Ints> axes = setting(slice, "axes", 3);
  if (!axes || axes->empty()) return {};
  std::optional<Ints> inside = positive(*axes, static_cast<std::int64_t>(perm.size()));
  if (inside)
    for (std::int64_t& axis : *inside) axis = perm[static_cast<std::size_t>(axis)];
  return inside;
}

bool inverse(const Ints& there, const Ints& back) {
  if (there.empty() || there.size() != back.size()) return false;
  for (std::size_t i = 0; i < there.size(); ++i)
    if (there[static_cast<std::size_t>(back[i])] != static_cast<std::int64_t>(i)) return false;
  return true;
}

Verdict is_undone(const Match& m) {
  const Node* there = m.value("turned").producer();
  if (!there || !there->is("Transpose")) return no("nothing is transposed", m.value("turned").name());
  const Ints perm = there->attrs.ints("perm");
  if (!inverse(perm, m.root().attrs.ints("perm"))) return no("it is not transposed back", m.root().label());
  const Value* axes = m.node("slice").inputs().size() > 3 ? m.node("slice").input(3) : nullptr;
  if (axes && axes->dtype() != DType::i64) return no("the axes are not of 64 bits", axes->name());
  return axes_of(m.node("slice"), perm) ? yes() : no("the axes are not constant", m.node("slice").label());
}

std::vector<Value*> cut_alone(const Match& m, Build& build) {
  const Node &slice = m.node("slice"), &there = *m.value("turned").producer();
  const Ints axes = *axes_of(slice, there.attrs.ints("perm"));
  std::vector<Value*> inputs = slice.inputs();
  inputs[0] = there.input(0);
  Attrs attrs = slice.attrs;
  if (attrs.has("axes"))
    attrs.set("axes", Attr(axes));
  else
    inputs[3] = &build.constant(tensor_of(axes), "axes");
  return {&build.op("Slice", inputs, attrs)};
}

}  // namespace

Pass cut_transposes() {
  const Rule rule{
      .name = "transpose-slice-transpose",
      .doc = "Transpose, Slice, Transpose back -> Slice; others may read what was transposed (heads of CoaT)",
      .from = op("Transpose", {open(op("Slice", {any("turned")}, "slice"))}),
      .when = {is_undone},
      .into = cut_alone};
  return rewrite("cut-transposes", "Parts of transposed tensors that are transposed back -> parts of the tensors",
                 {rule});
}

}  // namespace modelflow::passes
