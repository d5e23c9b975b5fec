// Attributes of nodes by name, and the kinds of values that they take.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "modelflow/tensor.h"

namespace modelflow {

class Graph;

/// In a function body: the attribute takes the value of the calling node's attribute `name`. `type` is the number of
/// ONNX AttributeProto.AttributeType.
struct AttrRef {
  std::string name;
  int type = 0;
  bool operator==(const AttrRef&) const = default;
};
/// An attribute kept as the bytes of its AttributeProto because nothing here looks inside (sparse tensors, types).
struct AttrBytes {
  std::string proto;
  bool operator==(const AttrBytes&) const = default;
};

using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;
using Strings = std::vector<std::string>;
/// Subgraphs are shared only while a node is moved; Graph::clone makes deep copies.
using Subgraph = std::shared_ptr<Graph>;

/// The value of a node attribute.
using Attr = std::variant<std::int64_t, float, std::string, Tensor, Subgraph, Ints, Floats, Strings,
                          std::vector<Tensor>, std::vector<Subgraph>, AttrRef, AttrBytes>;

/// The attributes of one node by name, with typed access and defaults.
///
///     attrs.ints("pads", {0, 0, 0, 0});   attrs.set("group", 1);
///
/// The typed getters return the default when the attribute is absent and throw Error(invalid_input) when it has
/// another type.
class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<const std::string, Attr>> items);

  bool has(std::string_view name) const { return find(name) != nullptr; }
  const Attr* find(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise = 0) const;
  float number(std::string_view name, float otherwise = 0) const;
  std::string text(std::string_view name, std::string_view otherwise = "") const;
  Ints ints(std::string_view name, Ints otherwise = {}) const;
  Floats floats(std::string_view name, Floats otherwise = {}) const;
  const Tensor* tensor(std::string_view name) const;
  const Subgraph* graph(std::string_view name) const;
  Attrs& set(std::string name, Attr value);
  /// For literals: without these, a float or an int64 would silently take the overload for int.
  Attrs& set(std::string name, int value) { return set(std::move(name), Attr(std::int64_t{value})); }
  Attrs& set(std::string name, std::int64_t value) { return set(std::move(name), Attr(value)); }
  Attrs& set(std::string name, float value) { return set(std::move(name), Attr(value)); }
  Attrs& set(std::string name, double) = delete;
  Attrs& set(std::string name, const char* value) { return set(std::move(name), Attr(std::string(value))); }
  void erase(std::string_view name);

  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  std::size_t size() const { return items_.size(); }
  /// False when none was ever a subgraph: most nodes need no search for theirs.
  bool may_hold_graphs() const { return may_hold_graphs_; }

 private:
  std::map<std::string, Attr, std::less<>> items_;
  bool may_hold_graphs_ = false;
};

/// Equal values; tensors by content, subgraphs by identity.
bool equal(const Attr& a, const Attr& b);
bool equal(const Attrs& a, const Attrs& b);

}  // namespace modelflow
