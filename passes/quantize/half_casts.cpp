// As few Casts between float32 and floats of 16 bits as the choice leaves: what they cost more than it gains goes back.
#include <algorithm>
#include <unordered_set>
#include <vector>

#include "passes/quantize/half_places.h"

namespace modelflow::passes {

/// Whether another reader takes the value as this node would, so that a Cast is there anyway.
bool HalfPlaces::read_elsewhere(const Value& value, const Node& node, bool half) const {
  return std::ranges::any_of(value.uses(), [&](const Use& use) {
    return use.node != &node && !takes_any(*use.node) && computes(*use.node) == half;
  });
}

/// How many there are for the sake of this node alone.
int HalfPlaces::casts(const Node& node, bool half) const {
  int count = 0;
  for (std::size_t i = 0; i < node.inputs().size() && !takes_any(node); ++i) {
    const Value* value = node.input(i);
    if (!varies(value) ||
        std::ranges::find(node.inputs(), value) - node.inputs().begin() != static_cast<std::ptrdiff_t>(i))
      continue;
    const bool comes_half = value->producer() && computes(*value->producer());
    count += comes_half != half && !read_elsewhere(*value, node, half);
  }
  for (const Value* value : node.outputs()) {
    if (!is_single(value)) continue;
    count += (half && value->is_graph_output()) || read_elsewhere(*value, node, !half);
  }
  return count;
}

/// What does not multiply goes back where that takes fewer Casts. Each step saves one, so there is an end.
void HalfPlaces::save_casts() {
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& node : graph_.nodes()) {
      const bool free = computes(*node) && !multiplies(*node) && !modelflow::computes(*node, Family::product);
      if (!free || casts(*node, false) >= casts(*node, true)) continue;
      halves_.erase(node.get());
      changed = true;
    }
  }
}

/// What half_ saves, in seconds.
double HalfPlaces::gain(const Node& node, TypicalSizes& sizes) const {
  const auto seconds = [&](DType type) {
    const Call call = in_type(sizes.call(node), type);
    const Choice choice = fused_op(node) ? choose_kernel(call, context_.target) : Choice();
    if (choice.kernel) return choice.kernel->cost(call, context_.target);
    const double elements = call.outputs[0].shape.known_elements();
    return context_.target.launch + context_.target.stream(elements * 2 * bits(type) / 8);
  };
  return seconds(DType::f32) - seconds(half_);
}

/// All that computes in the smaller type and hangs together with this node, one handing values to the next.
std::vector<const Node*> HalfPlaces::island(const Node& first) const {
  std::vector<const Node*> nodes = {&first};
  std::unordered_set<const Node*> seen = {&first};
  const auto reach = [&](const Node* node) {
    if (node && computes(*node) && seen.insert(node).second) nodes.push_back(node);
  };
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    for (const Value* value : nodes[at]->inputs())
      if (varies(value)) reach(value->producer());
    for (const Value* value : nodes[at]->outputs())
      if (is_single(value))
        for (const Use& use : value->uses()) reach(use.node);
  }
  return nodes;
}

/// Where 8 bits are asked for, 16 are a means: what computes in them together goes back to float32 where it gains less
/// time than the Casts around it take.
void HalfPlaces::save_islands() {
  TypicalSizes sizes(context_);
  const auto is_outside = [&](const Use& use) { return !takes_any(*use.node) && !computes(*use.node); };
  std::unordered_set<const Node*> seen;
  for (const auto& first : graph_.nodes()) {
    if (!computes(*first) || seen.contains(first.get())) continue;
    const std::vector<const Node*> nodes = island(*first);
    seen.insert(nodes.begin(), nodes.end());
    std::unordered_set<const Value*> casts;
    double saved = 0;
    for (const Node* node : nodes) {
      saved += gain(*node, sizes);
      for (std::size_t i = 0; i < node->inputs().size(); ++i)
        if (const Value* value = node->input(i); varies(value) && !stays_single(*node, i))
          if (!value->producer() || !computes(*value->producer())) casts.insert(value);
      for (const Value* value : node->outputs())
        if (is_single(value) && (value->is_graph_output() || std::ranges::any_of(value->uses(), is_outside)))
          casts.insert(value);
    }
    for (const Value* value : casts)
      saved -= context_.target.launch + context_.target.stream(sizes.of(*value).known_elements() * 6);
    if (saved < 0)
      for (const Node* node : nodes) halves_.erase(node);
  }
}

/// The nodes between another output of the model and this one, the last first; none where they read or are read by
/// anything else.
std::vector<const Node*> HalfPlaces::way_from_output(const Value& output) const {
  std::vector<const Node*> way;
  for (const Value* value = &output; value;) {
    const Node* node = value->producer();
    const bool was_cast = node && takes_any(*node) && node->input(0)->dtype() == half_;
    if (!node || !(computes(*node) || was_cast)) return {};
    if (value != &output && value->is_graph_output()) return way;
    if (was_cast) return {};
    if (value->uses().size() != (value == &output ? 0 : 1) || node->outputs().size() != 1) return {};
    way.push_back(node);
    const Value* read = nullptr;
    for (const Value* input : node->inputs()) {
      if (!varies(input)) continue;
      if (read && read != input) return {};
      read = input;
    }
    value = read;
  }
  return {};
}

/// Both outputs need a Cast, but for where the second goes on in float32 from that of the first: so it does where that
/// costs less than a Cast.
void HalfPlaces::save_output_casts() {
  TypicalSizes sizes(context_);
  for (const Value* output : graph_.outputs()) {
    double more = 0;
    const std::vector<const Node*> way = is_single(output) ? way_from_output(*output) : std::vector<const Node*>();
    for (const Node* node : way) more += gain(*node, sizes);
    if (more >= context_.target.launch) continue;
    for (const Node* node : way) halves_.erase(node);
  }
}

}  // namespace modelflow::passes
