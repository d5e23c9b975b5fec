// Reads graphs from protobuf.
#pragma once

#include <unordered_set>

#include "modelflow/model.h"
#include "src/onnx/tensors.h"

namespace modelflow::proto {

/// Fills graphs from protos and checks them: names, scopes, single assignment, order, node schemas. Tensor bytes are
/// moved out of the protos.
class GraphReader {
 public:
  using Opsets = std::map<std::string, std::int64_t>;
  GraphReader(ExternalFiles& files, const Opsets& opsets) : files_(files), opsets_(opsets) {}

  void read(GraphProto& proto, Graph& graph);
  Function read(FunctionProto& proto);
  /// `owner` becomes the parent of subgraphs.
  Attr read(AttributeProto& proto, Node* owner);
  /// Loads external data of every tensor in what stays a proto (training info, attributes of other kinds).
  void load_external(GraphProto& proto);
  void load_external(AttributeProto& proto);

 private:
  using Values = google::protobuf::RepeatedPtrField<ValueInfoProto>;
  using Nodes = google::protobuf::RepeatedPtrField<NodeProto>;
  void read_inputs(GraphProto& proto, Graph& graph, GraphProto& extras);
  void read_initializers(GraphProto& proto, Graph& graph);
  void read_sparse(GraphProto& proto, Graph& graph, GraphProto& extras);
  void declare(const Nodes& nodes, Graph& graph);
  void read_value_info(Values& infos, Graph& graph, GraphProto& extras);
  void read_nodes(Nodes& nodes, Graph& graph);
  void read_node(NodeProto& proto, Graph& graph);
  Value* find_input(const std::string& name, Graph& graph);

  ExternalFiles& files_;
  const Opsets& opsets_;
  std::unordered_set<const Value*> pending_;   // outputs whose node has not been read yet
  std::unordered_set<const Graph*> unsorted_;  // graphs in which a node stands before one it reads from
};

/// "node 'name' (Op)", or the first output when the node has no name.
std::string label(const NodeProto& node);
/// Throws Error(invalid_input) when the node breaks the schema of its operator at this version; unknown operators pass.
void check_schema(const NodeProto& node, const GraphReader::Opsets& opsets);
/// Throws Error(invalid_input) when a window or a group has an extent, stride or number that nothing can divide by.
void check_windows(const NodeProto& node);
/// Throws Error(invalid_input) when the equation of an Einsum cannot be read.
void check_equation(const NodeProto& node);
/// Throws Error(limit) on more nodes, or subgraphs nested deeper, than the limits allow.
void check_size(const ModelProto& model, const Limits& limits);
/// Throws Error(invalid_input) on recursion, Error(limit) on too many functions, too deep calls, or calls that written
/// out would be more nodes than the limits allow.
void check_functions(const Model& model, const Limits& limits);
/// Throws Error(invalid_input) where a call leaves out what the function needs. No function may be recursive.
void check_calls(const Model& model);

}  // namespace modelflow::proto
