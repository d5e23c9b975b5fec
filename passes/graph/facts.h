// What several passes ask about nodes and values.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>

#include "modelflow/graph.h"
#include "modelflow/kernel.h"

/// What several passes ask about nodes and values.
namespace modelflow::passes {

/// The nodes of these ops, in running order, as they are now: for passes that edit while they go.
std::vector<Node*> nodes_of(const Graph& graph, std::initializer_list<std::string_view> ops);
/// The fused nodes that do this kind of work in this form, likewise.
std::vector<Node*> nodes_of(const Graph& graph, Family family, Form form);
/// The integers of a constant of an integer type; nullopt for anything else.
std::optional<Ints> const_ints(const Value* value);
/// The one number that every element of a constant is; nullopt when there are several, none, or no constant.
std::optional<double> const_number(const Value* value);
/// The same of a constant of one element and no more axes than `rank`: it makes no more of a value of that rank.
std::optional<double> number_beside(const Value* value, std::size_t rank);
/// Nothing but zeros, however many: a constant, or one that was blown up and moved around.
bool is_zero(const Value& value);
/// The number that every element is, likewise.
std::optional<double> fill_of(const Value& value);
/// The setting that old opsets keep in attribute `name` and newer ones in input `index`: the attribute if present, else
/// the constant input; `otherwise` when neither is there; nullopt when the input is not constant.
std::optional<Ints> setting(const Node& node, std::string_view name, std::size_t index, Ints otherwise = {});
/// x * number or x / number: the factor, and x in `value`. Nothing for other nodes, where the number gives the result
/// its rank or its extents, and where it is too large or too small to be taken elsewhere (see ordinary()).
std::optional<float> scaled(const Node& node, Value*& value);
/// Axes brought into [0, rank); nullopt when one lies outside.
std::optional<Ints> positive(Ints axes, std::int64_t rank);
/// Ascending, each once: runtimes squeeze and reduce an axis that is named twice once.
Ints each_once(Ints axes);
/// The axes that a Squeeze drops or an Unsqueeze adds, as it names them, counted from 0 in the wider tensor; empty
/// where it names none, nothing where they are not constant or no rank is known.
std::optional<Ints> unit_axes(const Node& view);

/// True where every number from place `first` on is `wanted`; also of none.
bool all_are(const Ints& values, std::int64_t wanted, std::size_t first = 0);
/// A target of Reshape: numbers, 0 where the input has the same extent there, one -1; nothing when more is open.
std::optional<Ints> reshape_target(const std::vector<Dim>& from, const std::vector<Dim>& to);
/// True where Reshape to `target` refuses empty tensors: beside an extent to copy (0) that is 0, no -1 can be told.
bool refuses_empty(const Ints& target);

/// True where the pads of a window are those that the node says: auto_pad takes them from no extents and no strides.
bool explicit_pads(const Node& node);
/// ConvTranspose by constant weights, one group, whose attributes alone say where windows lie; a bias is constant.
bool fixed_windows(const Node& node);
/// One whose windows lie side by side and make up the result: strides are the extents of the window, no pads.
bool windows_apart(const Node& node);

/// Rows and columns of a block of DepthToSpace; 0 beyond what any model has, so that products of it stay small.
std::int64_t block_size(const Node& node);

/// The node of this op that makes the value; null when it is another.
const Node* made_by(const Value* value, std::string_view op);
/// Reshape, Transpose, Squeeze, Unsqueeze or Flatten: the same elements in another order or shape.
bool is_view(const Node& node);
/// True for a standard op whose outputs depend on its inputs alone.
bool deterministic(const Node& node);
/// True when the types of both values are tensors of provably equal dtype and shape.
bool same_type(const Value& a, const Value& b);
/// Whether the first `count` extents stay in a Reshape of as many elements: one of them need not be proven. A number in
/// its place would prove nothing in a batch of 0, where all numbers of elements are alike.
bool leading_alike(const Shape& before, const Shape& after, std::size_t count);
/// Read by one MatMul only, at most scaled by a number on the way.
bool feeds_product(const Value& value);
std::optional<std::size_t> rank_of(const Value* value);
/// Constants that differ in their first extent at most, one behind the other along that axis.
Tensor stacked(const std::vector<const Tensor*>& parts);
/// A constant of one axis and type int64, as shapes, axes and the like are given.
Tensor tensor_of(const Ints& values);

}  // namespace modelflow::passes
