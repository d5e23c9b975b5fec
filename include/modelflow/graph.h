// The graph: nodes, values with true use lists, and the few edits that keep them true.
#pragma once

#include <list>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "modelflow/attr.h"
#include "modelflow/shape.h"
#include "modelflow/tensor.h"

namespace modelflow {

class Graph;
class Node;
class Value;

/// The domain of our fused ops. The default ONNX domain is "" ("ai.onnx" is read as "").
inline constexpr std::string_view kDomain = "modelflow";

/// What is known about a value: a dense tensor (dtype, shape) or, for every other kind, its serialized TypeProto.
struct Type {
  enum class Kind { unknown, tensor, other };
  Kind kind = Kind::unknown;
  DType dtype = DType::undefined;
  Shape shape;
  std::string proto;  ///< kind == other: sequence, map, optional, sparse tensor; else denotations etc. if any

  static Type tensor(DType dtype, Shape shape = {}) { return {Kind::tensor, dtype, std::move(shape), {}}; }
  bool is_tensor() const { return kind == Kind::tensor; }
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

/// One reader of a value: `node` reads it as its input number `index`. A node that reads a value twice is two uses.
struct Use {
  Node* node;
  std::size_t index;
};

/// The only kind of edge: an input, an initializer or the output of a node, with everything that reads it (also nodes
/// of nested subgraphs). Owned by its graph; edits go through Graph.
class Value {
 public:
  const std::string& name() const { return name_; }
  Graph& graph() const { return *graph_; }
  /// The node that computes it; null for graph inputs and initializers.
  Node* producer() const { return producer_; }
  std::size_t output_index() const { return output_index_; }
  const std::vector<Use>& uses() const { return uses_; }
  bool is_graph_input() const { return is_input_; }
  bool is_graph_output() const { return output_count_ > 0; }
  bool is_initializer() const { return initializer_ != nullptr; }
  /// The bytes of an initializer that no caller can override (that is: not also a graph input); else null.
  const Tensor* constant() const { return is_input_ ? nullptr : initializer_.get(); }
  /// The initializer's bytes, also when it is only the default of a graph input; else null.
  const Tensor* initializer() const { return initializer_.get(); }

  DType dtype() const { return type.dtype; }
  const Shape& shape() const { return type.shape; }

  Type type;
  std::string doc;
  Metadata metadata;

 private:
  friend class Graph;
  std::string name_;
  Graph* graph_ = nullptr;
  Node* producer_ = nullptr;
  std::size_t output_index_ = 0;
  std::vector<Use> uses_;
  std::shared_ptr<const Tensor> initializer_;
  bool is_input_ = false;
  int output_count_ = 0;
  std::size_t id_ = 0;  ///< how many values its graph had made before it
  std::list<Value>::iterator where_;
  std::list<Value*>::iterator among_initializers_;
};

/// One operation. Inputs may be null (an absent optional input); outputs may be null (not wanted).
class Node {
 public:
  const std::string& op() const { return op_; }
  const std::string& domain() const { return domain_; }
  /// True for op "Conv" of domain "", or "modelflow.Conv" of kDomain.
  bool is(std::string_view op) const;
  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  /// The input, or null when absent or beyond the end.
  Value* input(std::size_t i) const { return i < inputs_.size() ? inputs_[i] : nullptr; }
  Value* output(std::size_t i = 0) const { return i < outputs_.size() ? outputs_[i] : nullptr; }
  Graph& graph() const { return *graph_; }
  /// The subgraphs in its attributes (If, Loop, Scan, SequenceMap), in attribute order.
  std::vector<Graph*> subgraphs() const;
  /// "node 'name' (Op)" for messages.
  std::string label() const;

  std::string name, overload, doc;
  Attrs attrs;
  Metadata metadata;
  /// Serialized NodeProto with what nothing here edits (attribute order and docs, device placement); mostly empty.
  /// Goes wherever a copy of the node goes.
  std::string extras;

 private:
  friend class Graph;
  std::string op_, domain_;
  std::vector<Value*> inputs_, outputs_;
  std::vector<std::size_t> slots_;  ///< where this node's uses stand in the use lists of its inputs
  Graph* graph_ = nullptr;
  std::list<std::unique_ptr<Node>>::iterator where_;
};

/// Where and how Graph::add puts a node.
struct Place {
  Node* before = nullptr;   ///< insert in front of this node; null: at the end
  std::size_t outputs = 1;  ///< how many outputs to make
  Attrs attrs = {};
  std::string name = {};  ///< node name and stem of the output names; empty: made from the op
};

/// Nodes in topological order with true use lists. Every edit keeps both true; src/graph/verify.h checks them.
///
///     Node& relu = graph.add("Relu", {x}, {.before = user});
///     graph.replace(*old, *relu.output());
///     graph.prune();                                   // erases what nobody reads
class Graph {
 public:
  explicit Graph(Node* parent = nullptr);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();

  /// A new node; `op` is "Relu" or "modelflow.Conv" (or "com.example:Op" for any domain). Outputs get unique names and
  /// unknown types.
  Node& add(std::string_view op, std::vector<Value*> inputs, Place place = {});
  /// A new initializer with a unique name made from `stem`.
  Value& add_constant(Tensor tensor, std::string_view stem = "const");
  /// A new graph input / a value with exactly this name (throws Error(invalid_input) when it is taken).
  Value& add_input(std::string name, Type type);
  Value& add_value(std::string name, Type type = {});
  void add_output(Value& value);
  void set_initializer(Value& value, Tensor tensor);
  /// Ties `node`'s output `index` to an existing producer-less value (used by the reader).
  void set_output(Node& node, std::size_t index, Value* value);
  void set_input(Node& node, std::size_t index, Value* value);
  void resize_inputs(Node& node, std::size_t count);
  void set_op(Node& node, std::string_view op);
  /// All readers of `old`, and its place among the graph outputs, now read `by`. A graph output keeps its name and its
  /// declared type: `by` takes the name over where it can, else an Identity is added. `by` must be visible where `old`
  /// is read. Known type facts of `old` are kept on `by` where `by` knows less.
  void replace(Value& old, Value& by);
  /// Removes a node none of whose outputs is read or is a graph output; throws Error(internal) otherwise.
  void erase(Node& node);
  void erase(Value& value);  ///< an unused initializer or value
  /// Erases, recursively, nodes and initializers that nothing reads. Returns the number of nodes erased.
  std::size_t prune();
  /// Restores topological order (stable); throws Error(invalid_input) naming a node of the cycle.
  void sort();
  void move_before(Node& node, Node& other);
  void rename(Value& value, std::string name);
  void remove_input(std::size_t index);   ///< of this graph's input list; the value stays if it is an initializer
  void remove_output(std::size_t index);  ///< of this graph's output list; the value stays

  const std::list<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  /// Initializers in the order in which they were added.
  std::vector<Value*> initializers() const;
  /// A value of this graph (not of outer ones) by name; null when there is none.
  Value* find(std::string_view name) const;
  /// As find, and through the enclosing graphs.
  Value* find_visible(std::string_view name) const;
  /// A name that neither this graph, its ancestors nor its nested subgraphs use.
  std::string unique_name(std::string_view stem);
  /// Whether a node may have subgraphs of its own: where not, nobody need look at each.
  bool holds_graphs() const { return holds_graphs_; }
  /// The If/Loop/Scan node that owns this subgraph; null for a main graph or function body.
  Node* parent() const { return parent_; }
  void set_parent(Node* parent);
  /// Deep copy; values of enclosing graphs are looked up by name in `outer` (null: none may be used).
  std::unique_ptr<Graph> clone(Node* parent = nullptr, Graph* outer = nullptr) const;
  /// Deep copy in which values of enclosing graphs are replaced as `outer` says.
  std::unique_ptr<Graph> clone(Node* parent, std::unordered_map<const Value*, Value*> outer) const;
  /// A number that changes with every edit, for caches.
  std::uint64_t version() const { return version_; }

  std::string name, doc;
  Metadata metadata;
  /// Parts kept as serialized GraphProto (quantization_annotation, sparse_initializer) because nothing here edits them;
  /// values they name are never renamed or erased.
  std::string extras;
  std::set<std::string> pinned;  ///< names that `extras` (or training info) refers to

 private:
  Graph& root();
  bool taken(const std::string& name);
  void claim(const std::string& name);
  Value& new_value(std::string name);
  void add_use(Value* value, Node& node, std::size_t index);
  void remove_use(Node& node, std::size_t index);
  void move_uses(Value& old, Value& by);
  void move_output(Value& old, Value& by);
  void swap_names(Value& a, Value& b);
  bool removable(const Value& value) const;
  bool removable(const Node& node) const;
  void drop_captures();
  void mark_dying();
  struct Copies;
  void copy_values(Graph& to, Copies& copies) const;
  void copy_node(const Node& node, Graph& to, Copies& copies) const;
  std::unique_ptr<Graph> copy(Node* parent, Copies& copies) const;

  Node* parent_;
  std::list<std::unique_ptr<Node>> nodes_;
  std::list<Value> values_;
  std::list<Value*> initializers_;
  std::unordered_map<std::string_view, Value*> by_name_;  ///< the names are those that the values hold
  std::vector<Value*> inputs_, outputs_;
  /// Kept by the outermost graph for the whole tree: every name of a nested subgraph, the next suffix of each stem.
  std::unordered_set<std::string> nested_names_;
  std::unordered_map<std::string, std::uint64_t> next_suffix_;
  std::uint64_t version_ = 0;
  std::size_t next_id_ = 0;
  bool holds_graphs_ = false;
  bool dying_ = false;
};

}  // namespace modelflow
