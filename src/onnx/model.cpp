// Models as values: copies, moves, opset.
#include "modelflow/model.h"

namespace modelflow {

Model::Model() : graph_(std::make_unique<Graph>()) {}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

Model::Model(const Model& other)
    : ir_version(other.ir_version),
      opsets(other.opsets),
      producer_name(other.producer_name),
      producer_version(other.producer_version),
      domain(other.domain),
      doc(other.doc),
      model_version(other.model_version),
      metadata(other.metadata),
      functions(other.functions),
      extras(other.extras),
      had_external_data(other.had_external_data),
      settled(other.settled),
      graph_(other.graph_->clone()) {
  for (Function& function : functions) function.body = function.body->clone();
}

Model& Model::operator=(const Model& other) {
  if (this != &other) *this = Model(other);
  return *this;
}

std::int64_t Model::opset() const {
  auto found = opsets.find("");
  return found == opsets.end() ? 0 : found->second;
}

}  // namespace modelflow
