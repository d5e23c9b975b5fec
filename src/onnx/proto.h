// The protobuf classes of ONNX, under names of their own.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <string_view>

#include "modelflow/graph.h"

// The one place where the protobuf classes of the format come in. They are named proto::ModelProto and so on, because
// namespace onnx has its own Dim, Model and Graph.
namespace modelflow::proto {

using namespace ::ONNX_NAMESPACE;  // NOLINT: an alias for a whole foreign vocabulary

/// Most bytes of one serialized message.
inline constexpr std::size_t kMaxBytes = 0x7fffffff;

/// "ai.onnx" is the written-out spelling of the default domain.
inline std::string read_domain(const std::string& domain) { return domain == "ai.onnx" ? std::string() : domain; }

/// The message with its line breaks and runs of blanks folded: errors are one line.
std::string one_line(std::string_view text);

template <class Entries>
Metadata read_metadata(const Entries& entries) {
  Metadata result;
  for (const auto& entry : entries) result.emplace_back(entry.key(), entry.value());
  return result;
}

template <class Entries>
void write_metadata(const Metadata& metadata, Entries& entries) {
  for (const auto& [key, value] : metadata) {
    auto& entry = *entries.Add();
    entry.set_key(key);
    entry.set_value(value);
  }
}

/// The bytes of a message; empty for a message without content. Errors are ours (deterministic, no size surprise).
template <class Message>
std::string bytes_of(const Message& message) {
  std::string bytes;
  message.SerializePartialToString(&bytes);
  return bytes;
}

template <class Message>
Message parsed(const std::string& bytes) {
  Message message;
  if (!bytes.empty()) message.ParsePartialFromString(bytes);
  return message;
}

}  // namespace modelflow::proto
