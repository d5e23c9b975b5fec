// Adding and removing nodes and values, with true use lists: each node knows where its uses stand in the lists of its
// inputs, so that every edit takes constant time also on values with a hundred thousand readers.
#include "modelflow/graph.h"

#include <algorithm>

#include "modelflow/error.h"
#include "src/graph/op_name.h"

namespace modelflow {
namespace {

[[noreturn]] void bug(const std::string& message) { throw Error(ErrorKind::internal, message); }

}  // namespace

Graph::Graph(Node* parent) : parent_(parent) {
  if (parent) parent->graph_->holds_graphs_ = true;
}

Graph::~Graph() {
  // Readers of outer values leave their use lists, unless the outer values go down with this graph.
  if (dying_ || (!holds_graphs_ && !parent_)) return;
  mark_dying();
  drop_captures();
}

void Graph::mark_dying() {
  dying_ = true;
  if (!holds_graphs_) return;
  for (const auto& node : nodes_) {
    for (Graph* graph : node->subgraphs()) {
      if (graph->parent_ == node.get()) graph->mark_dying();
    }
  }
}

/// Takes this graph, and what is nested in it, off the use lists of enclosing graphs.
void Graph::drop_captures() {
  for (const auto& node : nodes_) {
    for (std::size_t i = 0; i < node->inputs_.size(); ++i) {
      Value* value = node->inputs_[i];
      if (!value || (value->graph_ == this) || value->graph_->dying_) continue;
      remove_use(*node, i);
      node->inputs_[i] = nullptr;
    }
    for (Graph* graph : node->subgraphs()) {
      if (graph->parent_ == node.get()) graph->drop_captures();
    }
  }
  for (Value*& value : outputs_) {
    if (value && value->graph_ != this && !value->graph_->dying_) {
      --value->output_count_;
      value = nullptr;
    }
  }
}

void Graph::add_use(Value* value, Node& node, std::size_t index) {
  node.inputs_[index] = value;
  if (!value) return;
  node.slots_[index] = value->uses_.size();
  value->uses_.push_back({&node, index});
}

void Graph::remove_use(Node& node, std::size_t index) {
  Value* value = node.inputs_[index];
  if (!value) return;
  const std::size_t slot = node.slots_[index];
  const Use last = value->uses_.back();
  value->uses_[slot] = last;
  last.node->slots_[last.index] = slot;
  value->uses_.pop_back();
}

Node& Graph::add(std::string_view op, std::vector<Value*> inputs, Place place) {
  if (place.before && place.before->graph_ != this) bug("a node was added before one of another graph");
  const OpName op_name = split_op(op);
  const auto where = place.before ? place.before->where_ : nodes_.end();
  auto owned = std::make_unique<Node>();
  Node& node = *owned;
  node.graph_ = this;
  node.op_ = op_name.op;
  node.domain_ = op_name.domain;
  node.name = place.name.empty() ? unique_name(op_name.op) : std::move(place.name);
  root().nested_names_.insert(node.name);
  node.attrs = std::move(place.attrs);
  node.where_ = nodes_.insert(where, std::move(owned));
  node.inputs_.resize(inputs.size());
  node.slots_.resize(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) add_use(inputs[i], node, i);
  for (std::size_t i = 0; i < place.outputs; ++i) {
    Value& value = new_value(unique_name(node.name + (i ? "_out" + std::to_string(i) : "_out")));
    value.producer_ = &node;
    value.output_index_ = i;
    node.outputs_.push_back(&value);
  }
  for (Graph* graph : node.subgraphs()) graph->set_parent(&node);
  ++version_;
  return node;
}

Value& Graph::new_value(std::string name) {
  if (name.empty()) throw Error(ErrorKind::invalid_input, "a value has an empty name");
  if (by_name_.contains(name)) {
    throw Error(ErrorKind::invalid_input, "the name '" + name + "' is given to two values of one graph");
  }
  claim(name);
  const auto where = values_.emplace(values_.end());
  Value& value = *where;
  value.name_ = std::move(name);
  value.graph_ = this;
  value.id_ = next_id_++;
  value.where_ = where;
  by_name_.emplace(value.name_, &value);
  ++version_;
  return value;
}

Value& Graph::add_constant(Tensor tensor, std::string_view stem) {
  Value& value = new_value(unique_name(stem));
  set_initializer(value, std::move(tensor));
  return value;
}

Value& Graph::add_value(std::string name, Type type) {
  Value& value = new_value(std::move(name));
  value.type = std::move(type);
  return value;
}

Value& Graph::add_input(std::string name, Type type) {
  Value& value = add_value(std::move(name), std::move(type));
  value.is_input_ = true;
  inputs_.push_back(&value);
  return value;
}

void Graph::add_output(Value& value) {
  outputs_.push_back(&value);
  ++value.output_count_;
  ++version_;
}

void Graph::set_initializer(Value& value, Tensor tensor) {
  if (value.producer_) bug("'" + value.name_ + "' is computed by a node and cannot be an initializer");
  if (!value.is_input_ || value.type.kind == Type::Kind::unknown) {
    value.type = Type::tensor(tensor.dtype(), Shape::of(tensor.dims()));
  }
  if (!value.initializer_) value.among_initializers_ = initializers_.insert(initializers_.end(), &value);
  value.initializer_ = std::make_shared<const Tensor>(std::move(tensor));
  ++version_;
}

std::vector<Value*> Graph::initializers() const { return {initializers_.begin(), initializers_.end()}; }

void Graph::set_output(Node& node, std::size_t index, Value* value) {
  if (value && (value->producer_ || value->initializer_ || value->is_input_ || value->graph_ != this)) {
    throw Error(ErrorKind::invalid_input, node.label() + ": '" + value->name_ + "' has another source already");
  }
  if (index >= node.outputs_.size()) node.outputs_.resize(index + 1);
  if (Value* former = node.outputs_[index]) former->producer_ = nullptr;
  node.outputs_[index] = value;
  if (value) {
    value->producer_ = &node;
    value->output_index_ = index;
  }
  ++version_;
}

void Graph::set_input(Node& node, std::size_t index, Value* value) {
  if (index >= node.inputs_.size()) resize_inputs(node, index + 1);
  remove_use(node, index);
  add_use(value, node, index);
  ++version_;
}

void Graph::resize_inputs(Node& node, std::size_t count) {
  for (std::size_t i = count; i < node.inputs_.size(); ++i) remove_use(node, i);
  node.inputs_.resize(count);
  node.slots_.resize(count);
  ++version_;
}

void Graph::set_op(Node& node, std::string_view op) {
  const OpName name = split_op(op);
  std::string type(name.op), domain(name.domain);
  node.op_ = std::move(type);
  node.domain_ = std::move(domain);
  ++version_;
}

void Graph::move_before(Node& node, Node& other) {
  if (node.graph_ != this || other.graph_ != this) bug("move_before: both nodes must be of this graph");
  nodes_.splice(other.where_, nodes_, node.where_);
  ++version_;
}

void Graph::erase(Node& node) {
  if (node.graph_ != this) bug(node.label() + " is erased from a graph that it is not in");
  for (const Value* value : node.outputs_) {
    if (value && !removable(*value)) bug(node.label() + " is erased while '" + value->name_ + "' is in use");
  }
  for (Graph* graph : node.subgraphs()) {
    if (graph->parent_ == &node) graph->drop_captures();
  }
  for (std::size_t i = 0; i < node.inputs_.size(); ++i) remove_use(node, i);
  for (Value* value : node.outputs_) {
    if (!value) continue;
    value->producer_ = nullptr;
    root().nested_names_.insert(value->name_);  // what has another meaning takes another name
    erase(*value);
  }
  nodes_.erase(node.where_);
  ++version_;
}

void Graph::erase(Value& value) {
  if (value.graph_ != this || value.producer_ || value.is_input_ || !removable(value)) {
    bug("'" + value.name_ + "' is erased while it is in use");
  }
  if (value.initializer_) initializers_.erase(value.among_initializers_);
  by_name_.erase(value.name_);
  values_.erase(value.where_);
  ++version_;
}

void Graph::remove_input(std::size_t index) {
  if (index >= inputs_.size()) bug("remove_input: no such input");
  Value& value = *inputs_[index];
  if (!value.initializer_ && !removable(value)) bug("the input '" + value.name_ + "' is removed while it is in use");
  inputs_.erase(inputs_.begin() + static_cast<std::ptrdiff_t>(index));
  value.is_input_ = false;
  if (!value.initializer_) erase(value);
  ++version_;
}

void Graph::remove_output(std::size_t index) {
  if (index >= outputs_.size()) bug("remove_output: no such output");
  --outputs_[index]->output_count_;
  outputs_.erase(outputs_.begin() + static_cast<std::ptrdiff_t>(index));
  ++version_;
}

}  // namespace modelflow
