// Models in ONNX text form, as the parser of libonnx reads it. What that form has no words for is left out: node names,
// doc strings, types of inner values, sparse tensors.
#include "src/text/print.h"

#include <onnx/defs/parser.h>

#include <algorithm>
#include <cctype>

#include "modelflow/error.h"
#include "modelflow/model.h"
#include "modelflow/pass.h"
#include "src/onnx/derived.h"
#include "src/onnx/types.h"
#include "src/text/print_tensor.h"

namespace modelflow {
namespace {

bool is_identifier(const std::string& name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

bool is_keyword(const std::string& name) {
  static constexpr std::string_view kSpecial[] = {"nan", "inf", "infinity"};
  return proto::PrimitiveTypeNameMap::IsTypeName(name) ||
         proto::KeyWordMap::Lookup(name) != proto::KeyWordMap::KeyWord::NONE ||
         std::find(std::begin(kSpecial), std::end(kSpecial), name) != std::end(kSpecial);
}

std::string id(const std::string& name) { return is_identifier(name) && !is_keyword(name) ? name : quoted_text(name); }

// Inference's own symbols for unknown extents say nothing to a reader.
std::string dim_text(const proto::TensorShapeProto::Dimension& dim) {
  if (dim.has_dim_value()) return std::to_string(dim.dim_value());
  const std::string& name = dim.dim_param();
  bool made = name.starts_with(kUnnamed);
  if (name.empty() || made) return "?";
  return is_identifier(name) ? name : quoted_text(name);
}

template <class TensorType>
std::string tensor_type(const TensorType& type) {
  std::string text = proto::PrimitiveTypeNameMap::ToString(type.elem_type());
  if (!type.has_shape()) return text + "[]";
  if (type.shape().dim_size() == 0) return text;
  std::string dims;
  for (const auto& dim : type.shape().dim()) dims += (dims.empty() ? "" : ",") + dim_text(dim);
  return text + "[" + dims + "]";
}

std::string type_text(const proto::TypeProto& type) {
  switch (type.value_case()) {
    case proto::TypeProto::kTensorType:
      return tensor_type(type.tensor_type());
    case proto::TypeProto::kSparseTensorType:
      return "sparse_tensor(" + tensor_type(type.sparse_tensor_type()) + ")";
    case proto::TypeProto::kSequenceType:
      return "seq(" + type_text(type.sequence_type().elem_type()) + ")";
    case proto::TypeProto::kOptionalType:
      return "optional(" + type_text(type.optional_type().elem_type()) + ")";
    case proto::TypeProto::kMapType:
      return "map(" + proto::PrimitiveTypeNameMap::ToString(type.map_type().key_type()) + ", " +
             type_text(type.map_type().value_type()) + ")";
    case proto::TypeProto::kOpaqueType: {
      const auto& opaque = type.opaque_type();
      return "opaque(" + (opaque.domain().empty() ? "" : opaque.domain() + ", ") + opaque.name() + ")";
    }
    default:
      return "";
  }
}

std::string tensor_text(const Tensor& tensor, const std::string& name) {
  proto::TypeProto type;
  proto::write_type(Type::tensor(tensor.dtype(), Shape::of(tensor.dims())), type);
  return type_text(type) + (name.empty() ? " " : " " + id(name) + " = ") + tensor_values(tensor);
}

std::string declaration(const Value& value) {
  proto::TypeProto type;
  proto::write_type(value.type, type);
  std::string text = type_text(type);
  return text.empty() ? id(value.name()) : text + " " + id(value.name());
}

template <class Items, class Print>
std::string joined(const Items& items, Print print) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : ", ") + print(item);
  return text;
}

class Printer {
 public:
  std::string graph(const Graph& graph, const std::string& indent);
  std::string attribute(const std::string& name, const Attr& attr, const std::string& indent);
  std::string node(const Node& node, const std::string& indent);
  std::string nodes(const Graph& graph, const std::string& indent) {
    std::string text = "{\n";
    for (const auto& item : graph.nodes()) text += indent + "  " + node(*item, indent + "  ") + "\n";
    return text + indent + "}";
  }
};

// The values of an attribute that is written as its bytes: types have a text form, sparse tensors have not.
std::string bytes_text(const AttrBytes& bytes) {
  auto attribute = proto::parsed<proto::AttributeProto>(bytes.proto);
  if (attribute.has_tp()) return type_text(attribute.tp());
  return quoted_text("(" + std::to_string(bytes.proto.size()) + " bytes)");
}

std::string Printer::attribute(const std::string& name, const Attr& attr, const std::string& indent) {
  auto subgraph = [&](const Subgraph& graph) {
    std::string stem = is_identifier(graph->name) && !is_keyword(graph->name) ? graph->name : "body";
    return stem + " " + this->graph(*graph, indent);
  };
  auto number = [](float value) { return float_text(value, true); };
  struct {
    std::string type, value;
  } text;
  if (auto* i = std::get_if<std::int64_t>(&attr)) text = {"int", std::to_string(*i)};
  if (auto* f = std::get_if<float>(&attr)) text = {"float", number(*f)};
  if (auto* s = std::get_if<std::string>(&attr)) text = {"string", quoted_text(*s)};
  if (auto* t = std::get_if<Tensor>(&attr)) text = {"tensor", tensor_text(*t, "")};
  if (auto* g = std::get_if<Subgraph>(&attr)) text = {"graph", subgraph(*g)};
  if (auto* is = std::get_if<Ints>(&attr)) {
    text = {"ints", "[" + joined(*is, [](std::int64_t i) { return std::to_string(i); }) + "]"};
  }
  if (auto* fs = std::get_if<Floats>(&attr)) text = {"floats", "[" + joined(*fs, number) + "]"};
  if (auto* ss = std::get_if<Strings>(&attr)) text = {"strings", "[" + joined(*ss, quoted_text) + "]"};
  if (auto* ts = std::get_if<std::vector<Tensor>>(&attr)) {
    text = {"tensors", "[" + joined(*ts, [](const Tensor& t) { return tensor_text(t, ""); }) + "]"};
  }
  if (auto* gs = std::get_if<std::vector<Subgraph>>(&attr)) text = {"graphs", "[" + joined(*gs, subgraph) + "]"};
  if (auto* reference = std::get_if<AttrRef>(&attr)) {
    auto type = static_cast<proto::AttributeProto::AttributeType>(reference->type);
    text = {proto::AttributeTypeNameMap::ToString(type), "@" + id(reference->name)};
  }
  if (auto* bytes = std::get_if<AttrBytes>(&attr)) text = {"", bytes_text(*bytes)};
  bool empty_list = text.value == "[]" || std::holds_alternative<AttrRef>(attr);
  return name + (empty_list ? ": " + text.type : "") + " = " + text.value;
}

/// Without what a fused op has where nothing is said.
Attrs said(const Node& node) {
  const FusedOp* op = fused_op(node);
  if (!op) return node.attrs;
  Attrs attrs;
  for (const auto& [name, attr] : node.attrs)
    if (const Attr* usual = op->defaults.find(name); !usual || !equal(attr, *usual)) attrs.set(name, attr);
  return attrs;
}

std::string Printer::node(const Node& node, const std::string& indent) {
  auto name = [](const Value* value) { return value ? id(value->name()) : std::string("\"\""); };
  std::string text = joined(node.outputs(), name) + " = ";
  if (!node.domain().empty()) text += node.domain() + ".";
  text += node.op();
  if (!node.overload.empty()) text += ":" + node.overload;
  if (const Attrs attrs = said(node); attrs.size()) {
    text += " <" + joined(attrs, [&](const auto& item) { return attribute(item.first, item.second, indent); }) + ">";
  }
  return text + " (" + joined(node.inputs(), name) + ")";
}

std::string Printer::graph(const Graph& graph, const std::string& indent) {
  std::string text =
      "(" + joined(graph.inputs(), [](const Value* value) {
        return declaration(*value) + (value->is_initializer() ? " = " + tensor_values(*value->initializer()) : "");
      });
  text += ") => (" + joined(graph.outputs(), [](const Value* value) { return declaration(*value); }) + ")";
  std::string constants;
  for (const Value* value : graph.initializers()) {
    if (value->is_graph_input()) continue;
    constants += constants.empty() ? "" : ",\n" + indent + " ";
    constants += tensor_text(*value->initializer(), value->name());
  }
  if (!constants.empty()) text += "\n" + indent + "<" + constants + ">";
  return text + " " + nodes(graph, indent);
}

std::string opsets_text(const std::map<std::string, std::int64_t>& opsets) {
  return "opset_import: [" +
         joined(opsets,
                [](const auto& item) { return quoted_text(item.first) + " : " + std::to_string(item.second); }) +
         "]";
}

std::string function_text(const Function& function) {
  std::string text = "<domain: " + quoted_text(function.domain) + ", " + opsets_text(function.opsets);
  if (!function.overload.empty()) text += ", overload: " + quoted_text(function.overload);
  if (!function.doc.empty()) text += ", doc_string: " + quoted_text(function.doc);
  return text + ">\n" + id(function.name) + " " + function_body_text(function);
}

std::string header(const Model& model) {
  std::string text = "<ir_version: " + std::to_string(model.ir_version) + ", " + opsets_text(model.opsets);
  auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) text += std::string(", ") + key + ": " + quoted_text(value);
  };
  add("producer_name", model.producer_name);
  add("producer_version", model.producer_version);
  add("domain", model.domain);
  add("doc_string", model.doc);
  if (model.model_version) text += ", model_version: " + std::to_string(model.model_version);
  if (!model.metadata.empty()) {
    text += ", metadata_props: [" +
            joined(model.metadata,
                   [](const auto& item) { return quoted_text(item.first) + ": " + quoted_text(item.second); }) +
            "]";
  }
  return text + ">\n";
}

}  // namespace

std::string function_body_text(const Function& function) {
  Printer printer;
  std::string formals = joined(function.attributes, id);
  for (const auto& [name, attr] : function.defaults)
    formals += (formals.empty() ? "" : ", ") + printer.attribute(name, attr, "");
  auto name = [](const Value* value) { return id(value->name()); };
  return (formals.empty() ? "" : "<" + formals + "> ") + "(" + joined(function.body->inputs(), name) + ") => (" +
         joined(function.body->outputs(), name) + ") " + printer.nodes(*function.body, "");
}

std::string Model::to_text() const {
  std::string text = header(*this) + id(graph().name.empty() ? "main_graph" : graph().name) + " ";
  text += Printer().graph(graph(), "") + "\n";
  for (const Function& function : functions) text += function_text(function) + "\n";
  return text;
}

}  // namespace modelflow
