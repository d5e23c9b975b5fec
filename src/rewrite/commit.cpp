// A match replaced by what its rule made.
#include "src/rewrite/commit.h"

#include <algorithm>

#include "modelflow/error.h"
#include "modelflow/function.h"
#include "src/graph/op_name.h"

namespace modelflow {
namespace {

constexpr std::int64_t kMetadataIr = 10;  // first IR version in which nodes have metadata
constexpr const char* kFusedFrom = "modelflow.fused_from";

bool unread(const Node& node) {
  return std::all_of(node.outputs().begin(), node.outputs().end(), [&](const Value* value) {
    return !value ||
           (value->uses().empty() && !value->is_graph_output() && !node.graph().pinned.contains(value->name()));
  });
}

std::string type_text(const Value& value) { return std::string(name(value.dtype())) + value.shape().str(); }

/// "Mul,Erf,Add": the ops in running order, those behind an already fused node instead of the node.
std::string provenance(const std::vector<Node*>& nodes) {
  std::string text;
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    std::string one = joined_op(**it);
    for (const auto& [key, value] : (*it)->metadata) {
      if (key == kFusedFrom) one = value;
    }
    text += (text.empty() ? "" : ",") + one;
  }
  return text;
}

}  // namespace

Verdict Commit::check_value(const Value& old, const Value& by) const {
  const auto differ = [&] { return no("the replacement would be " + type_text(by) + ", not " + type_text(old)); };
  const auto unproven = [&] { return no("a number of the pattern might enlarge the result", old.name()); };
  if (!old.type.is_tensor() || !by.type.is_tensor()) return numbers_may_enlarge_ ? unproven() : yes();
  const bool dtypes_known = old.dtype() != DType::undefined && by.dtype() != DType::undefined;
  if (dtypes_known && old.dtype() != by.dtype()) return differ();
  if (!old.shape().has_rank() || !by.shape().has_rank()) return numbers_may_enlarge_ ? unproven() : yes();
  if (old.shape().rank() != by.shape().rank()) return differ();
  for (std::size_t i = 0; i < old.shape().rank(); ++i) {
    const Dim &before = old.shape()[i], &after = by.shape()[i];
    if (before.known() && after.known() && before.value() != after.value()) return differ();
    if (numbers_may_enlarge_ && !(before == after)) return unproven();
  }
  return yes();
}

Verdict Commit::check() const {
  const auto& outputs = match_.root().outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i]) continue;
    if (i < values_.size() && values_[i]) {
      if (Verdict verdict = check_value(*outputs[i], *values_[i]); !verdict) return verdict;
    } else if (!outputs[i]->uses().empty() || outputs[i]->is_graph_output()) {
      return no("is read, and the rule does not replace it", outputs[i]->name());
    }
  }
  for (const Node* node : build_.made()) {
    if (node->domain() != kDomain) continue;
    if (Verdict verdict = may_stay(*node, context_); !verdict) return verdict;
  }
  return yes();
}

/// False when nothing changed: the root was already as good as the graph allows.
bool Commit::replace() {
  bool changed = !build_.made().empty();
  const std::vector<Value*> outputs = match_.root().outputs();
  for (std::size_t i = 0; i < std::min(outputs.size(), values_.size()); ++i) {
    Value *old = outputs[i], *by = values_[i];
    if (!old || !by || old == by) continue;
    const bool was_read = !old->uses().empty(), was_output = old->is_graph_output();
    match_.root().graph().replace(*old, *by);
    changed |= was_read || (was_output && !old->is_graph_output());
  }
  return changed;
}

/// The node that now computes the result takes over what named and documented the old one.
void Commit::describe() {
  const Node& root = match_.root();
  const auto& made = build_.made();
  Node* heir = values_.front() ? values_.front()->producer() : nullptr;
  if (heir && std::find(made.begin(), made.end(), heir) != made.end()) {
    if (!root.name.empty()) heir->name = root.name;
    if (heir->doc.empty()) heir->doc = root.doc;
  }
  if (context_.model.ir_version < kMetadataIr) return;
  for (Node* node : made) {
    if (node->domain() == kDomain) node->metadata.emplace_back(kFusedFrom, provenance(match_.nodes()));
  }
}

void Commit::erase_unread() {
  std::vector<Node*> left = match_.nodes();
  for (bool again = true; again;) {
    again = false;
    for (Node*& node : left) {
      if (!node || !unread(*node)) continue;
      if (on_erase) on_erase(*node);
      node->graph().erase(*node);
      node = nullptr;
      again = true;
    }
  }
}

Verdict Commit::run() {
  try {
    values_ = rule_.into(match_, build_);
  } catch (const Error& error) {
    throw error.within("rule '" + rule_.name + "' at " + match_.root().label());
  }
  Verdict verdict = build_.refusal();
  if (verdict) verdict = values_.empty() ? no("the rule makes no replacement here") : check();
  if (!verdict) {
    build_.undo();
    return verdict;
  }
  if (!replace()) return no("nothing better is possible here", match_.root().output()->name());
  describe();
  erase_unread();
  return yes();
}

}  // namespace modelflow
