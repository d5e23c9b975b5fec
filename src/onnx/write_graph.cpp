// Graphs written, with types where a runtime needs them.
#include <algorithm>
#include <unordered_map>

#include "src/onnx/derived.h"
#include "src/onnx/keep.h"
#include "src/onnx/tensors.h"
#include "src/onnx/types.h"
#include "src/onnx/write.h"

namespace modelflow::proto {
namespace {

void write_value(const Value& value, ValueInfoProto& proto) {
  proto.set_name(value.name());
  if (value.type.kind != Type::Kind::unknown) write_type(value.type, *proto.mutable_type());
  if (!value.doc.empty()) proto.set_doc_string(value.doc);
  write_metadata(value.metadata, *proto.mutable_metadata_props());
}

bool standard(const std::string& domain) { return domain.empty() || domain == "ai.onnx.ml"; }

// Which inner values get their type written: those that had one in the file, and those around nodes whose types a
// runtime cannot infer. Everything else a runtime finds out by itself.
class TypedValues {
 public:
  TypedValues(const Graph& graph, const GraphProto& extras, GraphProto& proto) : graph_(graph), proto_(proto) {
    for (const ValueInfoProto& info : extras.value_info()) {
      if (info.has_type()) {  // of no value when it was read: what is called so now is another one
        if (!graph.find(info.name())) *proto.add_value_info() = info;
      } else if (const Value* value = graph.find(info.name())) {
        add(*value);
      }
    }
  }
  void around(const Node& node) {
    if (standard(node.domain())) return;
    for (const Value* value : node.inputs()) consider(value);
    for (const Value* value : node.outputs()) consider(value);
  }

 private:
  void consider(const Value* value) {
    if (!value || &value->graph() != &graph_ || value->is_graph_input() || value->is_graph_output()) return;
    if (!value->is_initializer()) add(*value);
  }
  void add(const Value& value) {
    bool empty = value.type.kind == Type::Kind::unknown && value.doc.empty() && value.metadata.empty();
    if (!empty && done_.insert(&value).second) write_value(value, *proto_.add_value_info());
  }
  const Graph& graph_;
  GraphProto& proto_;
  std::unordered_set<const Value*> done_;
};

/// What can have changed what a graph says of a value: of inputs inference finds out no numbers, of those of the main
/// graph no symbols in place of others either.
enum class Declared { output, input, main_input };

// Whether `now` says something new about an input or output that was declared as `kept`: another type or rank, another
// number; on an input also what inference cannot have found out.
bool redeclared(const TypeProto& kept, const TypeProto& now, Declared place) {
  const bool input = place != Declared::output;
  if (kept.value_case() == TypeProto::VALUE_NOT_SET) return input && now.value_case() != TypeProto::VALUE_NOT_SET;
  if (!kept.has_tensor_type() || !now.has_tensor_type()) return bytes_of(kept) != bytes_of(now);
  const auto &before = kept.tensor_type(), &after = now.tensor_type();
  if (before.elem_type() != after.elem_type()) return true;
  if (!before.has_shape()) return input && after.has_shape();
  if (before.shape().dim_size() != after.shape().dim_size()) return true;
  for (int i = 0; i < before.shape().dim_size(); ++i) {
    const auto &a = before.shape().dim(i), &b = after.shape().dim(i);
    bool number = a.has_dim_value() && a.dim_value() >= 0;
    if (b.has_dim_value() && (number ? a.dim_value() != b.dim_value() : input)) return true;
    if (number && b.has_dim_param()) return input;
    const bool symbol = a.has_dim_param() && !read_dim(a).unknown();  // "?" is none
    if (symbol && place == Declared::main_input && a.dim_param() != b.dim_param()) return true;
  }
  return false;
}

template <class Infos>
void restore_declared(const Infos& kept, Infos& infos, Declared place) {
  std::unordered_map<std::string, const TypeProto*> types;
  for (const ValueInfoProto& entry : kept) types.emplace(entry.name(), &entry.type());
  for (ValueInfoProto& info : infos) {
    auto found = types.find(info.name());
    if (found != types.end() && !redeclared(*found->second, info.type(), place)) *info.mutable_type() = *found->second;
  }
}

/// Symbols that inference made for extents without a name say nothing to a reader of the interface.
template <class Infos>
void leave_unnamed(Infos& infos) {
  for (ValueInfoProto& info : infos) {
    if (!info.type().has_tensor_type() || !info.type().tensor_type().has_shape()) continue;
    for (auto& dim : *info.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
      if (dim.dim_param().starts_with(kUnnamed)) dim.clear_dim_param();
  }
}

using ByName = std::unordered_map<std::string, const TensorProto*>;

ByName kept_initializers(const GraphProto& extras) {
  ByName result;
  for (const TensorProto& tensor : extras.initializer()) {
    if (!tensor.has_data_type()) result.emplace(tensor.name(), &tensor);
  }
  return result;
}

}  // namespace

void GraphWriter::write_initializers(const Graph& graph, const GraphProto& extras, GraphProto& proto) {
  ByName kept = kept_initializers(extras);
  for (const Value* value : graph.initializers()) {
    TensorProto& tensor = *proto.add_initializer();
    const Tensor& content = *value->initializer();
    auto found = kept.find(value->name());
    if (place_ && place_(content, tensor)) {
      tensor.set_data_type(static_cast<int>(content.dtype()));
      tensor.mutable_dims()->Add(content.dims().begin(), content.dims().end());
    } else if (found != kept.end() && typed(*found->second)) {
      write_typed(content, tensor);
    } else {
      write_tensor(content, tensor);
    }
    if (found != kept.end()) restore(*found->second, tensor);
    tensor.set_name(value->name());
  }
  for (const TensorProto& tensor : extras.initializer()) {
    if (tensor.has_data_type()) *proto.add_initializer() = tensor;
  }
}

/// In front of all nodes.
void GraphWriter::write_constants(const Graph& graph, GraphProto& proto) {
  for (const Value* value : graph.initializers()) {
    NodeProto& node = *proto.add_node();
    node.set_op_type("Constant");
    node.add_output(value->name());
    write("value", Attr(*value->initializer()), *node.add_attribute());
  }
}

void GraphWriter::write(const Graph& graph, GraphProto& proto) {
  auto extras = parsed<GraphProto>(graph.extras);
  if (!graph.name.empty() || extras.has_name()) proto.set_name(graph.name);
  if (!graph.doc.empty() || extras.has_doc_string()) proto.set_doc_string(graph.doc);
  write_metadata(graph.metadata, *proto.mutable_metadata_props());
  for (const Value* value : graph.inputs()) write_value(*value, *proto.add_input());
  for (const Value* value : graph.outputs()) write_value(*value, *proto.add_output());
  restore_declared(extras.input(), *proto.mutable_input(), graph.parent() ? Declared::input : Declared::main_input);
  restore_declared(extras.output(), *proto.mutable_output(), Declared::output);
  if (!graph.parent()) {
    leave_unnamed(*proto.mutable_input());
    leave_unnamed(*proto.mutable_output());
  }
  // Before IR 4 every initializer is listed as an input, and a branch has none.
  const bool has_initializers = ir_version_ >= 4 || !graph.parent();
  if (!has_initializers) write_constants(graph, proto);
  TypedValues types(graph, extras, proto);
  for (const auto& node : graph.nodes()) {
    write(*node, *proto.add_node());
    types.around(*node);
  }
  if (has_initializers) write_initializers(graph, extras, proto);
  if (ir_version_ < 4 && has_initializers) {
    for (const Value* value : graph.initializers()) {
      if (!value->is_graph_input()) write_value(*value, *proto.add_input());
    }
  }
  *proto.mutable_sparse_initializer() = extras.sparse_initializer();
  *proto.mutable_quantization_annotation() = extras.quantization_annotation();
  keep_unknown(extras, proto);
}

void GraphWriter::write(const Node& node, NodeProto& proto) {
  auto extras = parsed<NodeProto>(node.extras);
  for (const Value* value : node.inputs()) proto.add_input(value ? value->name() : std::string());
  for (const Value* value : node.outputs()) proto.add_output(value ? value->name() : std::string());
  if (!node.name.empty() || extras.has_name()) proto.set_name(node.name);
  proto.set_op_type(node.op());
  if (!node.domain().empty()) proto.set_domain(node.domain());
  if (node.domain().empty() && extras.has_domain()) proto.set_domain(extras.domain());
  if (!node.overload.empty() || extras.has_overload()) proto.set_overload(node.overload);
  if (!node.doc.empty() || extras.has_doc_string()) proto.set_doc_string(node.doc);
  write_metadata(node.metadata, *proto.mutable_metadata_props());
  *proto.mutable_device_configurations() = extras.device_configurations();
  keep_unknown(extras, proto);
  write_attributes(extras.attribute(), node.attrs, *proto.mutable_attribute());
}

void GraphWriter::write_attributes(const Attributes& entries, const Attrs& attrs, Attributes& protos) {
  std::unordered_set<std::string> done;
  for (const AttributeProto& kept : entries) {
    const Attr* attr = attrs.find(kept.name());
    if (!attr || !done.insert(kept.name()).second) continue;
    AttributeProto& attribute = *protos.Add();
    const Tensor* tensor = std::get_if<Tensor>(attr);
    if (tensor && kept.has_t() && typed(kept.t())) {
      attribute.set_name(kept.name());
      attribute.set_type(AttributeProto::TENSOR);
      write_typed(*tensor, *attribute.mutable_t());
    } else {
      write(kept.name(), *attr, attribute);
    }
    if (tensor && kept.has_t()) restore(kept.t(), *attribute.mutable_t());
    if (kept.has_doc_string()) attribute.set_doc_string(kept.doc_string());
    keep_unknown(kept, attribute);
  }
  for (const auto& [name, attr] : attrs) {
    if (!done.count(name)) write(name, attr, *protos.Add());
  }
}

void write_opsets(std::map<std::string, std::int64_t> opsets, const Imports& kept, Imports& protos) {
  for (const auto& entry : kept) {
    const auto found = opsets.find(read_domain(entry.domain()));
    if (found == opsets.end()) continue;
    auto& import = *protos.Add();
    if (entry.has_domain()) import.set_domain(entry.domain());
    import.set_version(found->second);
    opsets.erase(found);
  }
  for (const auto& [domain, version] : opsets) {
    auto& import = *protos.Add();
    import.set_domain(domain);
    import.set_version(version);
  }
}

void GraphWriter::write(const Function& function, const FunctionProto& kept, FunctionProto& proto) {
  proto.set_name(function.name);
  if (kept.has_domain() || !function.domain.empty())
    proto.set_domain(kept.has_domain() ? kept.domain() : function.domain);
  if (!function.overload.empty() || kept.has_overload()) proto.set_overload(function.overload);
  if (!function.doc.empty() || kept.has_doc_string()) proto.set_doc_string(function.doc);
  for (const std::string& name : function.attributes) proto.add_attribute(name);
  write_attributes(kept.attribute_proto(), function.defaults, *proto.mutable_attribute_proto());
  write_opsets(function.opsets, kept.opset_import(), *proto.mutable_opset_import());
  keep_unknown(kept, proto);
  write_metadata(function.metadata, *proto.mutable_metadata_props());
  for (const Value* value : function.body->inputs()) proto.add_input(value->name());
  for (const Value* value : function.body->outputs()) proto.add_output(value->name());
  for (const auto& node : function.body->nodes()) write(*node, *proto.add_node());
  auto extras = parsed<GraphProto>(function.body->extras);
  for (const ValueInfoProto& info : extras.value_info()) {
    const Value* value = function.body->find(info.name());
    if (value && value->type.kind != Type::Kind::unknown) write_value(*value, *proto.add_value_info());
  }
  restore_declared(kept.value_info(), *proto.mutable_value_info(), Declared::output);
}

}  // namespace modelflow::proto
