// Graphs read and checked: nodes, values, initializers.
#include "src/onnx/read_graph.h"

#include "modelflow/error.h"
#include "modelflow/symbols.h"
#include "src/onnx/keep.h"
#include "src/onnx/types.h"

namespace modelflow::proto {
namespace {

[[noreturn]] void bad(const std::string& what) { throw Error(ErrorKind::invalid_input, what); }

std::string quoted(const std::string& name) { return "'" + name + "'"; }

// Graph::add takes one string for both; without the colon "modelflow.Conv" would name one of our ops.
std::string qualified(const NodeProto& node) { return read_domain(node.domain()) + ":" + node.op_type(); }

void describe(const ValueInfoProto& info, Value& value) {
  if (info.has_type() && !value.is_initializer()) {
    Type type = read_type(info.type());
    if (type.kind != Type::Kind::unknown) value.type = std::move(type);
  }
  if (info.has_doc_string()) value.doc = info.doc_string();
  if (!info.metadata_props_size()) return;
  value.metadata = read_metadata(info.metadata_props());
  // Keys of ours are notes that passes trust (passes/graph/imported_weights.h): files have no say in them.
  std::erase_if(value.metadata, [](const auto& entry) { return entry.first.starts_with("modelflow."); });
}

// The declared interface of a main graph (and elsewhere a type that is there and says nothing), to be written as it was
// whatever inference finds out.
template <class Infos>
void keep_declared(const ValueInfoProto& info, const Graph& graph, Infos& kept) {
  if (!info.has_type()) return;
  if (graph.parent() && info.type().value_case() != TypeProto::VALUE_NOT_SET) return;
  ValueInfoProto& entry = *kept.Add();
  entry.set_name(info.name());
  *entry.mutable_type() = info.type();
}

// Order and side information of the initializers, as far as the graph does not tell.
void keep_initializers(const GraphProto& proto, const Graph& graph, GraphProto& extras) {
  bool needed = false;
  auto ordered = graph.initializers();
  std::size_t position = 0;
  GraphProto names;
  for (const TensorProto& tensor : proto.initializer()) {
    if (!readable(tensor)) continue;
    TensorProto& entry = *names.add_initializer();
    needed |= keep(tensor, false, entry);
    entry.set_name(tensor.name());
    needed |= position >= ordered.size() || ordered[position++]->name() != tensor.name();
  }
  if (needed) extras.mutable_initializer()->MergeFrom(names.initializer());
}

}  // namespace

std::string label(const NodeProto& node) {
  std::string name = node.name();
  if (name.empty() && node.output_size()) name = node.output(0);
  return "node '" + name + "' (" + node.op_type() + ")";
}

void GraphReader::read(GraphProto& proto, Graph& graph) {
  graph.name = proto.name();
  graph.doc = proto.doc_string();
  graph.metadata = read_metadata(proto.metadata_props());
  GraphProto extras;
  if (proto.has_name() && proto.name().empty()) extras.set_name("");
  if (proto.has_doc_string() && proto.doc_string().empty()) extras.set_doc_string("");
  read_inputs(proto, graph, extras);
  read_initializers(proto, graph);
  keep_initializers(proto, graph, extras);
  read_sparse(proto, graph, extras);
  declare(proto.node(), graph);
  read_value_info(*proto.mutable_value_info(), graph, extras);
  for (const ValueInfoProto& output : proto.output()) {
    Value* value = graph.find(output.name());
    if (!value && graph.find_visible(output.name())) {
      bad("subgraph output " + quoted(output.name()) + " is a value of an enclosing graph; an Identity is needed");
    }
    if (!value) bad("graph output " + quoted(output.name()) + " is not defined");
    if (!value->is_graph_input()) describe(output, *value);
    keep_declared(output, graph, *extras.mutable_output());
  }
  read_nodes(*proto.mutable_node(), graph);
  for (const ValueInfoProto& output : proto.output()) graph.add_output(*graph.find(output.name()));
  for (const TensorAnnotation& annotation : proto.quantization_annotation()) {
    graph.pinned.insert(annotation.tensor_name());
    for (const auto& entry : annotation.quant_parameter_tensor_names()) graph.pinned.insert(entry.value());
  }
  *extras.mutable_quantization_annotation() = proto.quantization_annotation();
  keep_unknown(proto, extras);
  graph.extras = bytes_of(extras);
  if (unsorted_.count(&graph)) graph.sort();
}

void GraphReader::read_inputs(GraphProto& proto, Graph& graph, GraphProto& extras) {
  for (const ValueInfoProto& input : proto.input()) {
    if (input.name().empty()) bad("a graph input has no name");
    if (graph.find(input.name())) bad("graph input " + quoted(input.name()) + " is there twice");
    describe(input, graph.add_input(input.name(), {}));
    keep_declared(input, graph, *extras.mutable_input());
  }
}

void GraphReader::read_initializers(GraphProto& proto, Graph& graph) {
  for (TensorProto& tensor : *proto.mutable_initializer()) {
    if (tensor.name().empty()) bad("an initializer has no name");
    if (tensor.data_type() == TensorProto::UNDEFINED) bad("initializer " + quoted(tensor.name()) + " has no type");
    Value* value = graph.find(tensor.name());
    if (value && (!value->is_graph_input() || value->is_initializer())) {
      bad("initializer " + quoted(tensor.name()) + " is there twice");
    }
    check_rank(tensor.dims_size());
    Type type =
        Type::tensor(static_cast<DType>(tensor.data_type()), Shape::of({tensor.dims().begin(), tensor.dims().end()}));
    if (!value) value = &graph.add_value(tensor.name(), type);
    if (!value->type.is_tensor()) value->type = type;
    if (value->dtype() != type.dtype) {
      bad("initializer " + quoted(tensor.name()) + " is " + std::string(name(type.dtype)) +
          ", and its input is declared as " + std::string(name(value->dtype())));
    }
    if (!readable(tensor)) {
      proto::load_external(tensor, files_);
      graph.pinned.insert(tensor.name());
      continue;
    }
    // keep_initializers looks at the proto afterwards: the typed fields stay, raw bytes are moved out.
    graph.set_initializer(*value, read_tensor(tensor, files_));
  }
}

void GraphReader::read_sparse(GraphProto& proto, Graph& graph, GraphProto& extras) {
  for (TensorProto& tensor : *proto.mutable_initializer()) {
    if (!readable(tensor)) *extras.add_initializer() = std::move(tensor);
  }
  for (SparseTensorProto& sparse : *proto.mutable_sparse_initializer()) {
    const std::string& name = sparse.values().name();
    if (name.empty()) bad("a sparse initializer has no name");
    Value* value = graph.find(name);
    if (value && !value->is_graph_input()) bad("initializer " + quoted(name) + " is there twice");
    check_rank(sparse.dims_size());
    Type type = Type::tensor(static_cast<DType>(sparse.values().data_type()),
                             Shape::of({sparse.dims().begin(), sparse.dims().end()}));
    if (!value) graph.add_value(name, std::move(type));
    graph.pinned.insert(name);
    proto::load_external(*sparse.mutable_values(), files_);
    proto::load_external(*sparse.mutable_indices(), files_);
    *extras.add_sparse_initializer() = std::move(sparse);
  }
}

// All outputs first, so that a node may stand before the one it reads from.
void GraphReader::declare(const Nodes& nodes, Graph& graph) {
  for (const NodeProto& node : nodes) {
    for (const std::string& name : node.output()) {
      if (name.empty()) continue;
      if (graph.find(name)) bad(label(node) + ": output " + quoted(name) + " is already defined");
      pending_.insert(&graph.add_value(name));
    }
  }
}

void GraphReader::read_value_info(Values& infos, Graph& graph, GraphProto& extras) {
  for (ValueInfoProto& info : infos) {
    Value* value = graph.find(info.name());
    if (!value) {
      *extras.add_value_info() = std::move(info);  // of no value here: kept, not understood
      continue;
    }
    if (!value->is_graph_input()) describe(info, *value);
    extras.add_value_info()->set_name(info.name());
  }
}

void GraphReader::read_nodes(Nodes& nodes, Graph& graph) {
  for (NodeProto& node : nodes) {
    try {
      read_node(node, graph);
    } catch (const Error& error) {
      throw error.within(label(node));
    }
  }
}

Value* GraphReader::find_input(const std::string& name, Graph& graph) {
  if (name.empty()) return nullptr;
  Value* value = graph.find_visible(name);
  if (!value) bad("input " + quoted(name) + " is not defined");
  if (pending_.count(value)) unsorted_.insert(&value->graph());
  return value;
}

void GraphReader::read_node(NodeProto& proto, Graph& graph) {
  if (proto.op_type().empty()) bad("op_type is missing");
  check_schema(proto, opsets_);
  check_windows(proto);
  check_equation(proto);
  std::vector<Value*> inputs;
  for (const std::string& name : proto.input()) inputs.push_back(find_input(name, graph));
  Node& node = graph.add(qualified(proto), std::move(inputs), {.outputs = 0, .name = proto.name()});
  if (node.op() != proto.op_type() || node.domain() != read_domain(proto.domain()))
    bad("no operator can be called " + quoted(proto.op_type()) + " of domain " + quoted(proto.domain()));
  node.name = proto.name();
  node.overload = proto.overload();
  node.doc = proto.doc_string();
  node.metadata = read_metadata(proto.metadata_props());
  node.extras = kept(proto);
  for (AttributeProto& attribute : *proto.mutable_attribute()) {
    if (node.attrs.has(attribute.name())) bad("attribute '" + attribute.name() + "' is there twice");
    node.attrs.set(attribute.name(), read(attribute, &node));
  }
  for (int i = 0; i < proto.output_size(); ++i) {
    Value* value = proto.output(i).empty() ? nullptr : graph.find(proto.output(i));
    graph.set_output(node, static_cast<std::size_t>(i), value);
    pending_.erase(value);
  }
}

Function GraphReader::read(FunctionProto& proto) {
  Function function;
  function.domain = read_domain(proto.domain());
  function.name = proto.name();
  function.overload = proto.overload();
  function.doc = proto.doc_string();
  function.attributes.assign(proto.attribute().begin(), proto.attribute().end());
  function.metadata = read_metadata(proto.metadata_props());
  for (const auto& import : proto.opset_import()) function.opsets[read_domain(import.domain())] = import.version();
  for (AttributeProto& attribute : *proto.mutable_attribute_proto()) {
    function.defaults.set(attribute.name(), read(attribute, nullptr));
  }
  function.body = std::make_shared<Graph>();
  Graph& body = *function.body;
  for (const std::string& name : proto.input()) {
    if (name.empty() || body.find(name)) bad("formal input " + quoted(name) + " is empty or there twice");
    body.add_input(name, {});
  }
  GraphReader inner(files_, function.opsets);
  GraphProto extras;
  inner.declare(proto.node(), body);
  for (ValueInfoProto& info : *proto.mutable_value_info()) {
    if (Value* value = body.find(info.name())) describe(info, *value);
    extras.add_value_info()->set_name(info.name());
  }
  inner.read_nodes(*proto.mutable_node(), body);
  for (const std::string& name : proto.output()) {
    Value* value = body.find(name);
    if (!value) bad("output " + quoted(name) + " is not defined");
    body.add_output(*value);
  }
  body.extras = bytes_of(extras);
  forget_symbols(body);
  if (inner.unsorted_.count(&body)) body.sort();
  return function;
}

}  // namespace modelflow::proto
