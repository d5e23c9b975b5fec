// Transposes that are left become fused ops where ONNX Runtime moves number by number (more than one axis: 2.2 ns each
// on Zen 5, 10 times what a block takes), or where it would join two around a Reshape to one that does. Last of all,
// because other passes look for Transposes.
#include <algorithm>

#include "passes/finish/finish.h"
#include "passes/graph/edits.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/graph/transposed.h"

namespace modelflow::passes {
namespace {

/// Fewer numbers are moved before a node of the plugin is called (some 0.4 us).
constexpr double kLeast = 256;
/// A row that stays together, or a block of two axes that change places, has so many: each is looked up.
constexpr std::int64_t kLeastPiece = 32;

/// The others keep their order when one of these is taken out.
bool moves_one(const Ints& perm) {
  for (std::size_t i = 0; i < perm.size(); ++i) {
    Ints others = perm;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    if (std::ranges::is_sorted(others)) return true;
  }
  return false;
}

/// What moves together; unknown extents count as enough.
std::int64_t piece_of(const Ints& longer, const Shape& x) {
  const auto extent = [&](std::int64_t axis) {
    return x[static_cast<std::size_t>(axis)].number().value_or(kLeastPiece);
  };
  const std::int64_t last = std::ranges::max(longer);
  return extent(last) * (longer.back() == last ? 1 : extent(longer.back()));
}

/// ONNX Runtime's MatMul takes operands in either order, and gives its Transposes up.
bool is_product(const Node* node) { return node && (node->is("MatMul") || node->is("Gemm")); }

bool is_reshape(const Node* node) { return node && is_view(*node) && !node->is("Transpose"); }

/// Another one is in front or, behind a Reshape, behind (right behind there is none: two are one by then).
bool meets_another(const Node& node) {
  const Node* maker = node.input(0)->producer();
  if (is_reshape(maker)) maker = maker->input(0)->producer();
  if (maker && maker->is("Transpose")) return true;
  return std::ranges::any_of(node.output()->uses(), [](const Use& use) {
    return is_reshape(use.node) && std::ranges::any_of(use.node->output()->uses(), [](const Use& next) {
             return next.node && next.node->is("Transpose");
           });
  });
}

/// Those that kernels of any device move: plans for a GPU are in 16 bits by now.
bool moves_as_number(const Value& x) {
  return x.type.is_tensor() && (x.dtype() == DType::f32 || x.dtype() == DType::f16 || x.dtype() == DType::bf16);
}

bool pays(const Node& node) {
  const Ints perm = node.attrs.ints("perm");
  const Value& x = *node.input(0);
  if (!moves_as_number(x) || !x.shape().has_rank() || perm.size() != x.shape().rank()) return false;
  const Ints longer = longer_axes(perm, x.shape());
  if (std::ranges::is_sorted(longer)) return false;
  const auto feeds_product = [](const Use& use) { return is_product(use.node); };
  if (is_product(x.producer()) || std::ranges::any_of(node.output()->uses(), feeds_product)) return false;
  if (moves_one(longer) && !meets_another(node)) return false;
  return piece_of(longer, x.shape()) >= kLeastPiece && x.shape().known_elements() >= kLeast;
}

int run(Graph& graph, Context& context) {
  int changes = 0;
  Extents extents;
  for (Node* node : nodes_of(graph, {"Transpose"})) {
    if (!pays(*node)) continue;
    Node* made = make_fused(graph, context, "fuse-transpose", "modelflow.Transpose", {node->input(0)},
                            {{"perm", node->attrs.ints("perm")}}, *node);
    if (!made) continue;
    made->name = node->name;
    take_place(*made, *node, context, "fuse-transpose", extents);
    ++changes;
  }
  return changes;
}

}  // namespace

Pass fuse_transposes() {
  return {.name = "fuse-transposes",
          .doc = "Transposes of several axes, or two around a Reshape, that nothing took -> modelflow.Transpose",
          .run = run};
}

}  // namespace modelflow::passes
