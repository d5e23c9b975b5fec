// What a file says that the graph has no place for, kept so that an untouched model is written as it was read.
#pragma once

#include "src/onnx/proto.h"

// It travels in the `extras` of model, graph and node: messages with only those parts filled in. Spellings (order of
// attributes, explicit empty strings, typed or raw data) are kept the same way.
namespace modelflow::proto {

using Attributes = google::protobuf::RepeatedPtrField<AttributeProto>;

/// Parts of a NodeProto that Node has no place for; empty when there are none.
std::string kept(const NodeProto& node);
/// Parts of a FunctionProto that Function has no place for, under what it is called.
FunctionProto kept(const FunctionProto& function);
/// What a TensorProto says beside dtype, dims and values. `named`: its name counts. False: nothing.
bool keep(const TensorProto& tensor, bool named, TensorProto& kept);
/// Whether `kept` says that the data lay in a typed field.
bool typed(const TensorProto& kept);
/// Writes name, doc and metadata that keep() saved.
void restore(const TensorProto& kept, TensorProto& tensor);

/// Keeps fields of newer format versions: bytes in protobuf's lite runtime, parsed in the full one.
inline void append_fields(const std::string& fields, std::string& kept) { kept += fields; }
template <class Fields>
void append_fields(const Fields& fields, Fields& kept) {
  kept.MergeFrom(fields);
}
inline void drop_fields(std::string& fields) { fields.clear(); }
template <class Fields>
void drop_fields(Fields& fields) {
  fields.Clear();
}
template <class Message>
void keep_unknown(const Message& message, Message& kept) {
  if (!message.unknown_fields().empty()) append_fields(message.unknown_fields(), *kept.mutable_unknown_fields());
}

}  // namespace modelflow::proto
