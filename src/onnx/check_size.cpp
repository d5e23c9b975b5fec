// How large and how deep a model is, counted before anything is made of it.
#include "modelflow/error.h"
#include "src/onnx/read_graph.h"

namespace modelflow::proto {
namespace {

class Census {
 public:
  explicit Census(const Limits& limits) : limits_(limits) {}

  /// The recursion is as deep as the parser of the protobuf was.
  template <class Nodes>
  void count(const Nodes& nodes, int depth) {
    nodes_ += static_cast<std::size_t>(nodes.size());
    if (nodes_ > limits_.max_nodes)
      throw Error(ErrorKind::limit, "more than " + std::to_string(limits_.max_nodes) + " nodes (max_nodes)");
    if (depth > limits_.max_depth)
      throw Error(ErrorKind::limit,
                  "graphs are nested more than " + std::to_string(limits_.max_depth) + " deep (max_depth)");
    for (const NodeProto& node : nodes) {
      for (const AttributeProto& attribute : node.attribute()) {
        if (attribute.has_g()) count(attribute.g().node(), depth + 1);
        for (const GraphProto& graph : attribute.graphs()) count(graph.node(), depth + 1);
      }
    }
  }

 private:
  const Limits& limits_;
  std::size_t nodes_ = 0;
};

}  // namespace

void check_size(const ModelProto& model, const Limits& limits) {
  Census census(limits);
  census.count(model.graph().node(), 0);
  for (const FunctionProto& function : model.functions()) census.count(function.node(), 0);
}

}  // namespace modelflow::proto
