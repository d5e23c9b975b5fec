// Small changes of a model, enumerated: what the obligations of rules and passes are tried at.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "modelflow/model.h"
#include "tests/all_graphs.h"

namespace modelflow::obligations {

/// One change: `apply` makes it in a copy of the model that it was listed for. Not every one leaves a valid model.
struct Mutation {
  std::string what;
  std::function<void(Model&)> apply;
};
using Mutations = std::vector<Mutation>;

/// Every change of one place of this model, in an order that depends on the model alone.
Mutations mutations(const Model& model);

/// A node that changes are listed for.
struct NodePlace {
  const Node& node;
  std::size_t index;  ///< in all_nodes()
  Mutations& out;

  void add(const std::string& what, const std::function<void(Node&)>& change) const;
  void set(const std::string& attribute, const Attr& value, const std::string& text) const;
};

void mutate_extents(const Model& model, Mutations& out);     ///< extents, ranks and symbols of inputs
void mutate_constants(const Model& model, Mutations& out);   ///< values, ranks and types of constants, and where from
void mutate_attributes(const Model& model, Mutations& out);  ///< those there are, and those that the schema allows
void mutate_nodes(const Model& model, Mutations& out);       ///< ops, operands, what stands between two nodes
void mutate_readers(const Model& model, Mutations& out);     ///< outputs, further readers, enclosing If and Loop
void mutate_types(const Model& model, Mutations& out);       ///< element types, opset versions

/// All nodes of a model in the order of its graphs: places are numbers in this list, which are the same in a copy.
std::vector<Node*> all_nodes(const Model& model);
/// A value of the main graph or of a subgraph, in a copy of the model.
Value& same_value(Model& copy, const Model& model, const Value& value);

/// The values of an integer attribute that only has a few; empty for others.
std::vector<std::int64_t> meaningful(const std::string& attribute);

/// A tensor of any type with elements of 8 bits or more from doubles, rounded and cut to what the type holds.
Tensor encode(DType dtype, const Dims& dims, const std::vector<double>& values);

}  // namespace modelflow::obligations
