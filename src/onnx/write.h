// Fills protobuf from models.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_set>

#include "modelflow/model.h"
#include "src/onnx/keep.h"

namespace modelflow::proto {

/// Takes an initializer out of the file: fills in location, offset and length and says true, or leaves it alone.
using Placement = std::function<bool(const Tensor&, TensorProto&)>;

using Imports = google::protobuf::RepeatedPtrField<OperatorSetIdProto>;

/// In the order and spelling of `kept`, as a file had them, new domains after them.
void write_opsets(std::map<std::string, std::int64_t> opsets, const Imports& kept, Imports& protos);

/// Fills protos from graphs.
class GraphWriter {
 public:
  GraphWriter(std::int64_t ir_version, Placement place = {}) : ir_version_(ir_version), place_(std::move(place)) {}

  void write(const Graph& graph, GraphProto& proto);
  void write(const Node& node, NodeProto& proto);
  /// `kept`: what kept() said of it when it was read; empty for a new one.
  void write(const Function& function, const FunctionProto& kept, FunctionProto& proto);
  void write(const std::string& name, const Attr& attr, AttributeProto& proto);

 private:
  void write_attributes(const Attributes& kept, const Attrs& attrs, Attributes& protos);
  void write_initializers(const Graph& graph, const GraphProto& extras, GraphProto& proto);
  void write_constants(const Graph& graph, GraphProto& proto);

  std::int64_t ir_version_;
  Placement place_;
};

ModelProto write_model(const Model& model, Placement place = {});

}  // namespace modelflow::proto
