// Protobuf by hand, for models that no writer would write.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace modelflow::wire {

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(0x80 | (value & 0x7f));
  return bytes + static_cast<char>(value);
}

/// Field `number` holding a string, bytes or a message.
inline std::string field(int number, const std::string& content) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(content.size()) + content;
}

/// Field `number` holding an integer or enum.
inline std::string field(int number, std::int64_t value) {
  return varint(static_cast<std::uint64_t>(number) << 3) + varint(static_cast<std::uint64_t>(value));
}

inline std::string entry(const std::string& key, const std::string& value) { return field(1, key) + field(2, value); }

inline std::string tensor(const std::string& name, const std::vector<std::int64_t>& dims, const std::string& rest) {
  std::string bytes;
  for (std::int64_t dim : dims) bytes += field(1, dim);
  return bytes + field(2, 1) + field(8, name) + rest;  // float
}

inline std::string external(const std::string& location, const std::string& offset, const std::string& length) {
  return field(13, entry("location", location)) + field(13, entry("offset", offset)) +
         field(13, entry("length", length)) + field(14, 1);
}

inline std::string node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const std::string& rest = "") {
  std::string bytes;
  for (const std::string& name : inputs) bytes += field(1, name);
  for (const std::string& name : outputs) bytes += field(2, name);
  return bytes + field(4, op) + rest;
}

/// float[2] under this name.
inline std::string value(const std::string& name) {
  std::string shape = field(1, field(1, 2));
  return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)));
}

inline std::string model(const std::string& graph, const std::string& rest = "", std::int64_t ir = 8) {
  return field(1, ir) + field(8, field(2, 17)) + field(7, field(2, "g") + graph) + rest;
}

/// x -> Identity -> y around what is given, which may define initializers and more.
inline std::string around(const std::string& inner) {
  return model(field(1, node("Identity", {"x"}, {"y"})) + inner + field(11, value("x")) + field(12, value("y")));
}

inline std::span<const std::byte> span(const std::string& bytes) { return std::as_bytes(std::span(bytes)); }

}  // namespace modelflow::wire
