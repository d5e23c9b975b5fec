// Fills protobuf from models.
#pragma once

#include <functional>
#include <unordered_set>

#include "modelflow/model.h"
#include "src/onnx/proto.h"

namespace modelflow::proto {

/// Takes an initializer out of the file: fills in location, offset and length and says true, or leaves it alone.
using Placement = std::function<bool(const Tensor&, TensorProto&)>;

/// Fills protos from graphs.
class GraphWriter {
 public:
  GraphWriter(std::int64_t ir_version, Placement place = {}) : ir_version_(ir_version), place_(std::move(place)) {}

  void write(const Graph& graph, GraphProto& proto);
  void write(const Node& node, NodeProto& proto);
  void write(const Function& function, FunctionProto& proto);
  void write(const std::string& name, const Attr& attr, AttributeProto& proto);

 private:
  void write_initializers(const Graph& graph, const GraphProto& extras, GraphProto& proto);
  void write_constants(const Graph& graph, GraphProto& proto);

  std::int64_t ir_version_;
  Placement place_;
};

ModelProto write_model(const Model& model, Placement place = {});

}  // namespace modelflow::proto
