// Resize with linear or cubic interpolation -> modelflow.Upsample, channels where they are; layout moves them.
#include "modelflow/modelflow.h"
#include "modelflow/shape_values.h"
#include "passes/fuse/fuse.h"
#include "passes/graph/edits.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

bool interpolates(const Node& node) {
  const std::string mode = node.attrs.text("mode", "nearest");
  return mode == "linear" || mode == "cubic";
}

/// An input that says something: before opset 13 those that do not are empty lists.
Value* said(const Node& node, std::size_t index) {
  Value* value = node.input(index);
  const Tensor* constant = value ? value->constant() : nullptr;
  return constant && constant->elements() == 0 ? nullptr : value;
}

/// What the fused op has no words for.
Verdict plain(const Node& node) {
  if (node.input(0)->dtype() != DType::f32) return no("is not float32", node.input(0)->name());
  if (node.attrs.integer("antialias")) return no("it smooths what it makes smaller (antialias)");
  if (node.attrs.has("axes")) return no("it names the axes");
  if (node.attrs.text("keep_aspect_ratio_policy", "stretch") != "stretch") return no("it keeps the ratio of extents");
  return yes();
}

/// Factors in front of both axes of an image that stay.
Verdict read_scales(const Node& node, std::size_t rank, Attrs& attrs) {
  const Value* scales = said(node, 2);
  if (!scales) return no("neither scales nor sizes");
  const Tensor* constant = scales->constant();
  if (!constant || constant->dtype() != DType::f32) return no("are no constant", scales->name());
  const auto all = constant->as<float>();
  if (all.size() != rank || all[0] != 1 || all[1] != 1) return no("batch or channels change", scales->name());
  attrs.set("scales", Floats(all.begin() + 2, all.end()));
  return yes();
}

Verdict keeps_channels(const Value& sizes, const Shape& x, const Context& context) {
  ShapeValues contents(context.model.ir_version);
  const DimList* list = contents.of(&sizes);
  if (!list || list->size() != x.rank()) return no("nobody knows what stays", sizes.name());
  for (const std::size_t axis : {0, 1})
    if (!((*list)[axis] == x[axis])) return no("batch or channels may change", sizes.name());
  return yes();
}

bool fuse(Node& node, Context& context, Extents& extents) {
  const Shape x = extents.of(*node.input(0));
  Attrs attrs{{"layout", std::string("NCHW")}};
  std::vector<Value*> inputs = {node.input(0)};
  Verdict verdict = plain(node);
  if (verdict && (!x.has_rank() || x.rank() < 3)) verdict = no("is no image with channels", node.input(0)->name());
  if (Value* sizes = said(node, 3); verdict && sizes) {
    verdict = keeps_channels(*sizes, x, context);
    inputs.push_back(sizes);
  } else if (verdict) {
    verdict = read_scales(node, x.rank(), attrs);
  }
  if (!verdict) {
    context.miss("resize", &node, verdict.reason);
    return false;
  }
  for (const char* name : {"mode", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside"})
    if (const Attr* attr = node.attrs.find(name)) attrs.set(name, *attr);
  Graph& graph = node.graph();
  Node* fused = make_fused(graph, context, "resize", "modelflow.Upsample", std::move(inputs), std::move(attrs), node);
  if (!fused) return false;
  fused->output()->type = node.output()->type;  // sizes that are computed say more to the inference of Resize
  take_place(*fused, node, context, "resize", extents);
  return true;
}

int run(Graph& graph, Context& context) {
  if (context.model.opset() < 11) return 0;  // coordinates are others
  Extents extents;
  int changes = 0;
  for (Node* node : nodes_of(graph, {"Resize"}))
    if (interpolates(*node)) changes += fuse(*node, context, extents);
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass fuse_resize() {
  return {.name = "fuse-resize",
          .doc = "Resize with linear or cubic interpolation, by factors or to sizes -> modelflow.Upsample",
          .run = run};
}

}  // namespace modelflow::passes
