// What the schema functions of libonnx see of a node.
#pragma once

#include <onnx/defs/schema.h>
#include <onnx/defs/shape_inference.h>

#include <deque>
#include <functional>
#include <unordered_map>

#include "src/onnx/infer_node.h"
#include "src/onnx/proto.h"

namespace modelflow {

/// Runs a subgraph for the schema function of If, Loop or Scan.
class SubgraphInference : public proto::GraphInferencer {
 public:
  SubgraphInference(Graph& graph, Inference& inference) : graph_(graph), inference_(inference) {}
  std::vector<const proto::TypeProto*> doInferencing(const std::vector<const proto::TypeProto*>& inputs,
                                                     const std::vector<const proto::TensorProto*>& data) override;

 private:
  Graph& graph_;
  Inference& inference_;
  std::deque<proto::TypeProto> outputs_;
};

/// A node as the schema functions of libonnx see it; no message for the whole model is needed.
class NodeContext : public proto::InferenceContext {
 public:
  NodeContext(Node& node, Inference& inference, const proto::OpSchema& schema);
  /// An absent attribute is the default that the schema states: not every schema function knows it (onesided of STFT).
  const proto::AttributeProto* getAttribute(const std::string& name) const override;
  std::size_t getNumInputs() const override { return node_.inputs().size(); }
  const proto::TypeProto* getInputType(std::size_t index) const override;
  bool hasInput(std::size_t index) const override { return node_.input(index) != nullptr; }
  const proto::TensorProto* getInputData(std::size_t index) const override;
  std::size_t getNumOutputs() const override { return outputs_.size(); }
  proto::TypeProto* getOutputType(std::size_t index) override { return &outputs_.at(index); }
  bool hasOutput(std::size_t index) override { return node_.output(index) != nullptr; }
  proto::GraphInferencer* getGraphAttributeInferencer(const std::string& name) override;
  const proto::SparseTensorProto* getInputSparseData(std::size_t) const override { return nullptr; }
  const proto::TensorShapeProto* getSymbolicInput(std::size_t index) const override;

 private:
  Node& node_;
  Inference& inference_;
  const proto::OpSchema& schema_;
  std::vector<proto::TypeProto> outputs_;
  mutable std::unordered_map<std::string, proto::AttributeProto> attributes_;
  mutable std::unordered_map<std::size_t, proto::TypeProto> types_;
  mutable std::unordered_map<std::size_t, proto::TensorProto> data_;
  mutable std::unordered_map<std::size_t, proto::TensorShapeProto> symbolic_;
  std::unordered_map<std::string, SubgraphInference> subgraphs_;
};

}  // namespace modelflow
