// The cut of a graph into what is faster in lower precision and what is not.
#include "src/precision/gains.h"

#include <algorithm>
#include <map>

#include "passes/graph/cut.h"
#include "src/precision/trials.h"

namespace modelflow {
namespace {

constexpr double kNever = 1e3;  // seconds

/// Kept in few bits while the model runs.
bool in_few_bits(const Value* value) { return value && !value->is_initializer() && in_low_precision(*value); }

double elements(const Dims& dims) { return static_cast<double>(element_count(dims)); }

/// What it takes to convert a value, by what the conversions of the lowered model take.
class Conversions {
 public:
  Conversions(const Timed& full, const Timed& lowered) {
    for (const auto& [name, time] : lowered.times) {
      const bool converts = time.op.starts_with("Quantize") || time.op.starts_with("Dequantize") || time.op == "Cast";
      if (!converts || full.times.contains(name) || time.outputs.empty()) continue;
      least_ = seen_ ? std::min(least_, time.seconds) : time.seconds;
      seen_ = true;
      if (elements(time.outputs.front()) < elements_) continue;
      elements_ = elements(time.outputs.front());
      most_ = time.seconds;
    }
  }
  double seconds(const Dims& dims) const {
    return elements_ > 0 ? std::max(least_, most_ * elements(dims) / elements_) : least_;
  }

 private:
  bool seen_ = false;
  double least_ = 0, most_ = 0, elements_ = 0;  // of the shortest one; of that with the most elements
};

class Split {
 public:
  Split(const Timed& full, const Timed& lowered) : full_(full), lowered_(lowered), conversions_(full, lowered) {
    for (const auto& node : lowered.fused.graph().nodes()) nodes_.emplace(node->name, node.get());
    for (const auto& node : full.fused.graph().nodes()) add(*node);
    for (const auto& node : full.fused.graph().nodes())
      for (const Value* output : node->outputs())
        if (output) cross(*output);
    for (const Value* input : full.fused.graph().inputs()) cross(*input);
    cut_.solve();
  }

  std::set<std::string> stay() const {
    std::set<std::string> names;
    for (const auto& [node, id] : ids_)
      if (cut_.far(id) && counterpart(*node)) names.insert(node->name);
    return names;
  }

 private:
  const Node* counterpart(const Node& node) const {
    const auto found = nodes_.find(node.name);
    return found == nodes_.end() ? nullptr : found->second;
  }

  static double seconds(const NodeTimes& times, const Node& node) {
    const auto found = times.find(node.name);
    return found == times.end() ? 0 : found->second.seconds;
  }

  bool writes_narrow(const Node& node) const {
    const Node* low = counterpart(node);
    return low && std::ranges::any_of(low->outputs(), in_few_bits);
  }
  bool reads_narrow(const Node& node) const {
    const Node* low = counterpart(node);
    return low && std::ranges::any_of(low->inputs(), in_few_bits);
  }

  /// Near is lowered. What is the same in both models stays; what another op took in goes with the node that reads it.
  void add(const Node& node) {
    const Node* low = counterpart(node);
    const bool moves = !low || low->op() != node.op() || reads_narrow(node) || writes_narrow(node);
    ids_[&node] = cut_.node(seconds(full_.times, node), moves ? seconds(lowered_.times, node) : kNever);
  }

  double conversion(const Value& value) const {
    const auto made = value.producer() ? full_.times.find(value.producer()->name) : full_.times.end();
    if (made != full_.times.end() && !made->second.outputs.empty())
      return conversions_.seconds(made->second.outputs.front());
    if (value.uses().empty()) return 0;
    const Use& use = value.uses().front();
    const auto read = full_.times.find(use.node->name);
    if (read == full_.times.end() || read->second.inputs.size() <= use.index) return 0;
    return conversions_.seconds(read->second.inputs[use.index]);
  }

  /// A value that one side has in few bits and the other has not: the conversion is shared by its readers. Who reads
  /// the model's outputs wants floats.
  void cross(const Value& value) {
    const Node* from = value.producer();
    const std::size_t readers = value.uses().size() + (value.is_graph_output() ? 1 : 0);
    if (readers == 0 || value.dtype() != DType::f32) return;
    const double cost = conversion(value) / static_cast<double>(readers);
    if (value.is_graph_output() && from && writes_narrow(*from)) cut_.add(ids_.at(from), 0, cost);
    for (const Use& use : value.uses()) {
      if (!ids_.contains(use.node)) continue;
      const std::size_t reader = ids_.at(use.node);
      if (from && !counterpart(*from)) {
        cut_.edge(ids_.at(from), reader, kNever, kNever);
        continue;
      }
      const bool written = from && writes_narrow(*from), read = reads_narrow(*use.node);
      if (written && read)
        cut_.edge(ids_.at(from), reader, cost, cost);
      else if (written)
        cut_.add(ids_.at(from), 0, cost);
      else if (read)
        cut_.add(reader, 0, cost);
    }
  }

  const Timed &full_, &lowered_;
  Conversions conversions_;
  std::map<std::string, const Node*> nodes_;  // of the lowered model
  std::map<const Node*, std::size_t> ids_;
  passes::Cut cut_;
};

}  // namespace

std::set<std::string> without_gain(const Timed& full, const Timed& lowered) { return Split(full, lowered).stay(); }

}  // namespace modelflow
