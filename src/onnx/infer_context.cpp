// A node of our graph behind the interface of libonnx's schema functions.
#include "src/onnx/infer_context.h"

#include "src/onnx/tensors.h"
#include "src/onnx/types.h"
#include "src/onnx/write.h"

namespace modelflow {
namespace {

constexpr std::int64_t kMostData = 4096;  // elements; shape functions look into small tensors only

// Of large tensors type and dims are enough.
void write_small(const Tensor& tensor, proto::TensorProto& proto) {
  if (tensor.elements() <= kMostData) return proto::write_tensor(tensor, proto);
  proto.set_data_type(static_cast<int>(tensor.dtype()));
  proto.mutable_dims()->Add(tensor.dims().begin(), tensor.dims().end());
}

/// The dims of a Loop's state that the body changes are what they were in the first step only: unknown. A file may say
/// otherwise, and runtimes take no notice; what it calls by a symbol is that where it begins as that as well. True
/// where there was one.
bool forget_changed(Type& state, const Type& next, const Value* first) {
  if (!state.is_tensor() || !next.is_tensor() || !state.shape.has_rank() || !next.shape.has_rank()) return false;
  if (state.shape.rank() != next.shape.rank()) {
    state.shape = {};
    return true;
  }
  std::vector<Dim> dims = state.shape.dims();
  const auto begins_as = [&](std::size_t i) {
    return first && first->shape().has_rank() && i < first->shape().rank() && first->shape()[i] == dims[i];
  };
  bool changed = false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const bool unlike = dims[i].known() && next.shape[i].known() && !(dims[i] == next.shape[i]);
    const bool named = !dims[i].known() && !dims[i].unknown();
    if (!unlike && !(named && !(begins_as(i) && next.shape[i] == dims[i]))) continue;
    dims[i] = {};
    changed = true;
  }
  if (changed) state.shape = std::move(dims);
  return changed;
}

bool is_loop_body(const Graph& body) { return body.parent() && body.parent()->is("Loop"); }

/// The number of a Loop's step and its condition have one element, whatever the file says of their extent.
void settle_step(Graph& body) {
  if (!is_loop_body(body)) return;
  for (std::size_t i = 0; i < 2 && i < body.inputs().size(); ++i) {
    Type& type = body.inputs()[i]->type;
    if (type.is_tensor() && type.shape.has_rank() && type.shape.rank() == 1) type.shape = Shape({1});
  }
}

bool forget_changed_states(Graph& body) {
  if (!is_loop_body(body)) return false;
  bool changed = false;
  for (std::size_t i = 2; i < body.inputs().size() && i - 1 < body.outputs().size(); ++i)
    changed |= forget_changed(body.inputs()[i]->type, body.outputs()[i - 1]->type, body.parent()->input(i));
  return changed;
}

}  // namespace

std::vector<const proto::TypeProto*> SubgraphInference::doInferencing(
    const std::vector<const proto::TypeProto*>& inputs, const std::vector<const proto::TensorProto*>&) {
  for (std::size_t i = 0; i < inputs.size() && i < graph_.inputs().size(); ++i) {
    if (inputs[i]) merge_type(graph_.inputs()[i]->type, proto::read_type(*inputs[i]), true);
  }
  settle_step(graph_);
  inference_.run(graph_);
  if (forget_changed_states(graph_)) inference_.run(graph_);
  inference_.visited_.insert(&graph_);
  outputs_.clear();
  std::vector<const proto::TypeProto*> result;
  for (const Value* value : graph_.outputs()) {
    proto::write_type(value->type, outputs_.emplace_back());
    result.push_back(&outputs_.back());
  }
  return result;
}

NodeContext::NodeContext(Node& node, Inference& inference, const proto::OpSchema& schema)
    : node_(node), inference_(inference), schema_(schema), outputs_(node.outputs().size()) {}

const proto::AttributeProto* NodeContext::getAttribute(const std::string& name) const {
  const Attr* attr = node_.attrs.find(name);
  if (!attr) {
    const auto stated = schema_.attributes().find(name);
    const bool none = stated == schema_.attributes().end() || !stated->second.default_value.has_type();
    return none ? nullptr : &stated->second.default_value;
  }
  if (std::holds_alternative<AttrRef>(*attr)) return nullptr;
  auto [entry, fresh] = attributes_.try_emplace(name);
  if (!fresh) return &entry->second;
  proto::AttributeProto& proto = entry->second;
  if (const auto* tensor = std::get_if<Tensor>(attr)) {
    proto.set_type(proto::AttributeProto::TENSOR);
    write_small(*tensor, *proto.mutable_t());
  } else if (std::holds_alternative<Subgraph>(*attr)) {
    proto.set_type(proto::AttributeProto::GRAPH);
    proto.mutable_g();
  } else {
    proto::GraphWriter(inference_.model().ir_version).write(name, *attr, proto);
  }
  proto.set_name(name);
  return &proto;
}

const proto::TypeProto* NodeContext::getInputType(std::size_t index) const {
  const Value* value = node_.input(index);
  if (!value || value->type.kind == Type::Kind::unknown) return nullptr;
  auto [entry, fresh] = types_.try_emplace(index);
  if (fresh) proto::write_type(value->type, entry->second);
  return &entry->second;
}

const proto::TensorProto* NodeContext::getInputData(std::size_t index) const {
  const Tensor* tensor = inference_.values().constant(node_.input(index));
  if (!tensor || tensor->elements() > kMostData) return nullptr;
  auto [entry, fresh] = data_.try_emplace(index);
  if (fresh) proto::write_tensor(*tensor, entry->second);
  return &entry->second;
}

const proto::TensorShapeProto* NodeContext::getSymbolicInput(std::size_t index) const {
  const Value* value = node_.input(index);
  const DimList* dims = value ? inference_.values().of(value) : nullptr;
  if (!dims) return nullptr;
  auto [entry, fresh] = symbolic_.try_emplace(index);
  if (!fresh) return &entry->second;
  for (const Dim& dim : *dims) {
    auto& made = *entry->second.add_dim();
    if (dim.known()) {
      made.set_dim_value(dim.value());  // also -1
    } else {
      proto::write_dim(dim, made);
    }
  }
  return &entry->second;
}

proto::GraphInferencer* NodeContext::getGraphAttributeInferencer(const std::string& name) {
  const Subgraph* graph = node_.attrs.graph(name);
  if (!graph || !*graph) return nullptr;
  return &subgraphs_.try_emplace(name, **graph, inference_).first->second;
}

}  // namespace modelflow
