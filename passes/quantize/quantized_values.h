// Which values are kept in 8 bits, and what quantization asks of ops.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "modelflow/pass.h"
#include "passes/graph/extents.h"

namespace modelflow::passes {

/// Values of one graph that are kept in 8 bits, and the scale that each has.
class QuantizedValues {
 public:
  QuantizedValues(const Graph& graph, Context& context);
  /// In graph order.
  const std::vector<Value*>& values() const { return values_; }
  bool contains(const Value* value) const { return chosen_.contains(value); }
  /// A convolution in 8 bits, or what moves or adds values that are kept in 8 bits.
  bool reads_bytes(const Node& node) const;
  /// What the value and all that share its scale were seen to hold.
  Range range(const Value& value) const;

 private:
  void choose(const Graph& graph);
  void choose_transposed(Node& node);
  void follow(const Node& node);
  void unify(const Graph& graph);
  const Value* root(const Value* value) const;
  void drop_unknown(const Graph& graph);

  Context& context_;
  Extents extents_;
  std::set<const Value*> chosen_;
  std::set<const Node*> convolutions_, movers_;  ///< that have a form in 8 bits
  std::vector<Value*> values_;
  mutable std::map<const Value*, const Value*> parent_;
  std::map<const Value*, Range> ranges_;
};

/// A convolution that some quantized kernel of the target runs.
Verdict quantizable(const Node& conv, const Context& context);
/// The attributes that QConv has in common with this modelflow.Conv.
Attrs quantized_attrs(const Node& conv);
/// Moves or picks elements and computes nothing: its result has the scale of its data inputs, in any element type.
bool carries(const Node& node, std::int64_t opset);
/// A subgraph reads the value, or what carriers make of it. ONNX Runtime (1.31) moves a DequantizeLinear through
/// carriers and ends the process where it meets a branch behind them.
bool leads_inside(const Value& value, std::int64_t opset);
/// A sum of two tensors that may be of one shape, which has a quantized form with scales of its own; then whether Relu
/// follows.
std::optional<bool> sum_of(const Node& node, Extents& extents);
/// The data inputs of a node that carries.
std::vector<Value*> carried(const Node& node);

}  // namespace modelflow::passes
