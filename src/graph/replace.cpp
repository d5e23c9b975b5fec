// One value in place of another, for all readers and as graph output.
#include <utility>

#include "modelflow/error.h"
#include "modelflow/graph.h"

namespace modelflow {
namespace {

/// `first` where it says something, `second` where it does not.
Shape merged(const Shape& first, const Shape& second, bool numbers_win) {
  if (!first.has_rank()) return second;
  if (!second.has_rank() || second.rank() != first.rank()) return first;
  std::vector<Dim> dims = first.dims();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].unknown() || (numbers_win && !dims[i].known() && second[i].known())) dims[i] = second[i];
  }
  return dims;
}

Type merged(const Type& first, const Type& second, bool numbers_win) {
  if (first.kind == Type::Kind::unknown) return second;
  if (!first.is_tensor() || !second.is_tensor()) return first;
  Type type = first;
  if (type.dtype == DType::undefined) type.dtype = second.dtype;
  type.shape = merged(first.shape, second.shape, numbers_win);
  return type;
}

}  // namespace

void Graph::move_uses(Value& old, Value& by) {
  const std::vector<Use> uses = old.uses_;
  for (const Use& use : uses) {
    if (use.node == by.producer_) continue;  // by = Identity(old), say: the wrapper goes on reading what it wraps
    Graph& graph = *use.node->graph_;
    graph.remove_use(*use.node, use.index);
    graph.add_use(&by, *use.node, use.index);
    ++graph.version_;
  }
}

/// `by` becomes the graph output that `old` was, under the same name and declared type.
void Graph::move_output(Value& old, Value& by) {
  const bool wrapped = old.producer_ && old.producer_->is("Identity") && old.producer_->input(0) == &by;
  const bool free = by.graph_ == this && !by.is_input_ && by.output_count_ == 0 && !pinned.contains(by.name_);
  if (!free && wrapped && old.output_count_ > 0) return;  // it is an Identity already
  Value* heir = &by;
  if (!free) heir = add("Identity", {&by}, {.name = old.name_}).output();
  const Type declared = merged(old.type, by.type, false);
  swap_names(old, *heir);
  heir->type = declared;
  heir->doc = old.doc;
  heir->metadata = old.metadata;
  for (Value*& output : outputs_) {
    if (output == &old) output = heir;
  }
  heir->output_count_ += std::exchange(old.output_count_, 0);
}

void Graph::replace(Value& old, Value& by) {
  if (&old == &by) return;
  if (old.graph_ != this) throw Error(ErrorKind::internal, "'" + old.name_ + "' is replaced in another graph");
  const bool fresh = by.uses_.empty() && by.producer_ && by.graph_ == this && by.output_count_ == 0;
  move_uses(old, by);
  const Type facts = merged(by.type, old.type, true);
  if (old.output_count_ > 0 || pinned.contains(old.name_))
    move_output(old, by);
  else if (!by.is_graph_output() && !by.is_input_ && by.graph_ == this)  // a branch may know what holds nowhere else
    by.type = facts;
  // What was made to stand for a value goes by its name: names tell users and verification what is the same.
  const bool is_free = old.output_count_ == 0 && by.output_count_ == 0 && old.producer_ && old.uses_.empty();
  if (fresh && is_free && !pinned.contains(old.name_) && !pinned.contains(by.name_)) swap_names(old, by);
  ++version_;
}

}  // namespace modelflow
