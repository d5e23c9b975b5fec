// Edits that passes of several stages make.
#pragma once

#include <string_view>
#include <vector>

#include "modelflow/pass.h"

/// Edits that passes of several stages make.
namespace modelflow::passes {

class Extents;

/// Makes `op` with these inputs and attributes in front of `before`, typed, when some kernel of the target takes it;
/// else leaves the graph as it was, notes the refusal as a miss of `rule` and returns null.
Node* make_fused(Graph& graph, Context& context, std::string_view rule, std::string_view op, std::vector<Value*> inputs,
                 Attrs attrs, Node& before, std::size_t outputs = 1);

/// `fused` stands where `node`, which goes, stood: a hit of `rule`.
void take_place(Node& fused, Node& node, Context& context, std::string_view rule, Extents& extents);

/// Squeeze or Unsqueeze, whose axes are an attribute before opset 13.
Value& with_axes(Build& build, const char* op, Value& x, const Ints& axes);
/// Slice of one axis; before opset 10 its bounds are attributes.
Value& slice(Build& build, Value& x, std::int64_t axis, std::int64_t begin, std::int64_t end);

/// `value`, or a copy of a constant of an enclosing graph: kernels pack weights ahead of time, and ONNX Runtime shows
/// them those of their own graph only.
Value* in_graph(Graph& graph, Value* value);

/// Gives the node a constant of its own with this content.
void set_constant(Node& node, std::size_t input, Tensor tensor);

}  // namespace modelflow::passes
