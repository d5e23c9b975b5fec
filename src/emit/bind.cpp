// References to attributes in a function body, replaced by their values.
#include "src/emit/bind.h"

#include "modelflow/function.h"
#include "src/onnx/operators.h"

namespace modelflow {
namespace {

void bind(Node& node, const Attrs& given, const Attrs& defaults) {
  Attrs bound;
  for (const auto& [name, attr] : node.attrs) {
    const auto* reference = std::get_if<AttrRef>(&attr);
    if (!reference) {
      bound.set(name, attr);
    } else if (const Attr* value = given.find(reference->name)) {
      bound.set(name, *value);
    } else if (const Attr* standard = defaults.find(reference->name)) {
      bound.set(name, *standard);
    }
  }
  node.attrs = std::move(bound);
}

}  // namespace

void bind_attributes(Graph& body, const Attrs& given, const Attrs& defaults) {
  for (const auto& node : body.nodes()) {
    bind(*node, given, defaults);
    for (Graph* inner : node->subgraphs()) bind_attributes(*inner, given, defaults);
  }
}

const Function* find_function(const Model& model, const Node& node) {
  for (const Function& function : model.functions) {
    // Domains first: mostly one is empty and the other is not, which takes no look at the letters.
    if (function.domain != node.domain() || function.name != node.op() || function.overload != node.overload) continue;
    // ONNX leaves it to the runtime which of two operators of one name it runs: ONNX Runtime takes its own.
    const bool is_standard =
        function.domain.empty() && function.overload.empty() && in_opset(node, static_cast<int>(model.opset()));
    return is_standard ? nullptr : &function;
  }
  return nullptr;
}

}  // namespace modelflow
