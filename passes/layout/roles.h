// What a node is to layout propagation, its role: whether it can run channels last, and how it is rewritten then.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "modelflow/modelflow.h"
#include "passes/graph/channels_last.h"
#include "passes/graph/extents.h"

namespace modelflow::passes {

/// One node that is being rewritten to channels last.
struct Move {
  Graph& graph;
  Context& context;
  Node& node;                  ///< the node as it was; new nodes go in front of it
  std::vector<Value*> inputs;  ///< its inputs, those that follow the layout already channels last
  bool named = false;          ///< a new node has the name of the old one
  /// A typed node in front of the old one; the first has its name.
  Node& add(std::string_view op, std::vector<Value*> inputs, Attrs attrs, std::size_t outputs = 1);
  Value& constant(Tensor tensor) { return graph.add_constant(std::move(tensor), node.name.empty() ? "k" : node.name); }
};

/// How one node takes part in an island, a connected part of the graph that is channels last.
struct Role {
  std::vector<std::size_t> inputs;  ///< these follow the layout of the node
  bool output = true;               ///< its outputs follow too; false: they are the same in either layout
  bool always = false;              ///< channels last in any case
  double plain_cost = 0;            ///< seconds that the node costs more when it stays as it is
  double last_cost = 0;             ///< seconds that it costs more channels last
  /// Makes the channels-last form; returns its outputs in order.
  std::function<std::vector<Value*>(Move&)> make = {};
};

/// What roles may ask.
struct Facts {
  Graph& graph;
  Context& context;
  Extents extents;                       ///< what is certain
  TypicalSizes typical;                  ///< for costs
  std::size_t rank(const Value* value);  ///< 0 when unknown
  double transpose_seconds(const Value& value);
};

/// Nothing when the node cannot run channels last.
std::optional<Role> role_of(const Node& node, Facts& facts);

/// A fused op that reduces axes that stand side by side, whichever they are.
bool reduces(const Node& node);

/// The node again with another list (axes, pads), which is an attribute of it or, in newer opsets, its second input.
std::vector<Value*> with_list(Move& move, const char* name, const Ints& list);

// One function per family of ops; nothing when the node is not of the family or not movable.
std::optional<Role> elementwise_role(const Node& node, Facts& facts);  ///< fused reductions too
std::optional<Role> axis_role(const Node& node, Facts& facts);         ///< Concat, Split, Softmax, Slice, Pad
std::optional<Role> reduce_role(const Node& node, Facts& facts);       ///< Reduce*, ArgMax
std::optional<Role> window_role(const Node& node, Facts& facts);  ///< pooling, ConvTranspose, SqueezeExcite, GroupNorm
std::optional<Role> global_pool_role(const Node& node, Facts& facts);  ///< a mean over all spatial axes
/// Another reduction of all spatial axes (a norm of each channel: ConvNeXt V2, arXiv 2301.00808).
std::optional<Role> image_reduction_role(const Node& node, Facts& facts);
std::optional<Role> resize_role(const Node& node, Facts& facts);
std::optional<Role> view_role(const Node& node, Facts& facts);  ///< Transpose, Reshape, Flatten, Squeeze, Shape

/// The values of an integer list that is an attribute in old opsets and constant input `index` in new ones.
std::optional<Ints> ints_of(const Node& node, const char* attribute, std::size_t index);

}  // namespace modelflow::passes
