// What of nodes and tensors the graph has no place for.
#include "src/onnx/keep.h"

#include <algorithm>

#include "src/onnx/tensors.h"

namespace modelflow::proto {
namespace {

/// False where the names in order say it all.
bool keep_attributes(const Attributes& attributes, Attributes& kept) {
  bool sorted = std::is_sorted(attributes.begin(), attributes.end(),
                               [](const AttributeProto& a, const AttributeProto& b) { return a.name() < b.name(); });
  bool any = !sorted;
  for (const AttributeProto& attribute : attributes) {
    AttributeProto& entry = *kept.Add();
    entry.set_name(attribute.name());
    if (attribute.has_doc_string()) entry.set_doc_string(attribute.doc_string());
    TensorProto tensor;
    if (attribute.has_t() && keep(attribute.t(), true, tensor)) *entry.mutable_t() = tensor;
    keep_unknown(attribute, entry);
    any |= entry.has_doc_string() || entry.has_t() || !entry.unknown_fields().empty();
  }
  return any;
}

}  // namespace

std::string kept(const NodeProto& node) {
  NodeProto result;
  if (!keep_attributes(node.attribute(), *result.mutable_attribute())) result.clear_attribute();
  *result.mutable_device_configurations() = node.device_configurations();
  if (node.has_name() && node.name().empty()) result.set_name("");
  if (node.has_doc_string() && node.doc_string().empty()) result.set_doc_string("");
  if (node.has_overload() && node.overload().empty()) result.set_overload("");
  if (node.has_domain() && read_domain(node.domain()).empty()) result.set_domain(node.domain());
  keep_unknown(node, result);
  return bytes_of(result);
}

FunctionProto kept(const FunctionProto& function) {
  FunctionProto result;
  result.set_name(function.name());
  if (function.has_domain()) result.set_domain(function.domain());
  if (function.has_overload()) result.set_overload(function.overload());
  if (function.has_doc_string() && function.doc_string().empty()) result.set_doc_string("");
  keep_attributes(function.attribute_proto(), *result.mutable_attribute_proto());
  *result.mutable_opset_import() = function.opset_import();  // order and spelling
  *result.mutable_value_info() = function.value_info();      // symbols in their types
  keep_unknown(function, result);
  return result;
}

// One element in int32_data stands for "typed": the values themselves are in the Tensor.
bool keep(const TensorProto& tensor, bool named, TensorProto& kept) {
  if (named && tensor.has_name()) kept.set_name(tensor.name());
  if (tensor.has_doc_string()) kept.set_doc_string(tensor.doc_string());
  *kept.mutable_metadata_props() = tensor.metadata_props();
  bool raw = tensor.has_raw_data() || tensor.data_location() == TensorProto::EXTERNAL || tensor.string_data_size();
  bool empty = std::count(tensor.dims().begin(), tensor.dims().end(), 0) > 0;
  if (is_typed(tensor) || (empty && !raw)) kept.add_int32_data(1);
  keep_unknown(tensor, kept);
  return kept.ByteSizeLong() > 0;
}

bool typed(const TensorProto& kept) { return kept.int32_data_size() > 0; }

void restore(const TensorProto& kept, TensorProto& tensor) {
  if (kept.has_name()) tensor.set_name(kept.name());
  if (kept.has_doc_string()) tensor.set_doc_string(kept.doc_string());
  *tensor.mutable_metadata_props() = kept.metadata_props();
  keep_unknown(kept, tensor);
}

}  // namespace modelflow::proto
