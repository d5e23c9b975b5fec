// Standard nodes as lines of a program for Pointwise and Reduce, and trees of them.
#include "passes/fuse/program.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "passes/graph/epilogue.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

constexpr std::array kArithmetic = {"Add",  "Sub",        "Mul", "Div", "Neg", "Abs",
                                    "Sqrt", "Reciprocal", "Exp", "Log", "Sin", "Cos"};
constexpr std::array kPlainActivations = {"Relu", "Sigmoid", "Tanh", "SiLU", "Mish", "Gelu", "GeluTanh"};

template <class List>
bool contains(const List& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

/// Clip with one bound, a number.
Line bounded(const Node& node) {
  const std::optional<float> low = scalar(node.input(1)), high = scalar(node.input(2));
  if (node.input(1) && node.input(2)) return {};
  if (low && !std::isnan(*low)) return {"AtLeast", {0, 1}};
  return high && !std::isnan(*high) ? Line{"AtMost", {0, 2}} : Line{};
}

/// x squared, by an exponent that does not enlarge x.
bool is_square(const Node& node) {
  if (!node.is("Pow") || node.input(0)->dtype() != DType::f32 || scalar(node.input(1)) != 2.0F) return false;
  const std::size_t rank = node.input(1)->constant()->rank();
  return rank == 0 || rank <= rank_of(node.input(0)).value_or(0);
}

/// Whether an axis of one number becomes one of a size that is not known to be 1: typical inputs are a batch of one.
bool repeats(const Shape& shape, const Shape& result) {
  if (!shape.has_rank() || !result.has_rank() || shape.rank() != result.rank()) return true;
  for (std::size_t i = 0; i < shape.rank(); ++i)
    if (shape[i] == Dim(1) && !(result[i] == Dim(1))) return true;
  return false;
}

}  // namespace

bool is_plain_activation(const std::string& kind) { return contains(kPlainActivations, kind); }

Line line_of(const Node& node, std::int64_t opset) {
  if (!node.output() || node.output()->dtype() != DType::f32) return {};
  if (node.domain().empty()) {
    if (node.op().starts_with("Reduce")) return {node.op(), {0}};
    if (contains(kArithmetic, node.op()))
      return {node.op(), node.inputs().size() == 2 ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{0}};
    // These broadcast from opset 8 on.
    if ((node.is("Max") || node.is("Min")) && node.inputs().size() == 2 && opset >= 8) return {node.op(), {0, 1}};
    if (is_square(node)) return {"Mul", {0, 0}};
    if (node.is("Clip") && opset >= 11) return bounded(node);
  }
  if (node.attrs.number("post_scale", 1) != 1 || node.attrs.number("post_shift") != 0) return {};
  const std::optional<Activation> activation = activation_of(node);
  if (!activation || !is_plain_activation(activation->kind)) return {};
  return {activation->kind, {0}};
}

bool is_elementwise_line(const Node& node, std::int64_t opset) {
  const Line line = line_of(node, opset);
  return !line.op.empty() && !line.op.starts_with("Reduce");
}

Tree::Tree(std::vector<Node*> nodes, Extents& extents, std::int64_t opset, TypicalSizes* sizes)
    : spine_(std::move(nodes)), extents_(extents), opset_(opset), sizes_(sizes), nodes_(spine_.begin(), spine_.end()) {}

void Tree::grow(const std::unordered_set<const Node*>& taken, std::size_t most_inputs) {
  const auto inputs = [&] { return program_inputs(ordered(), opset_); };
  for (bool grown = true; grown && nodes_.size() < kMostLines;) {
    grown = false;
    for (Value* input : inputs()) {
      Node* node = input->producer();
      if (!node || taken.contains(node) || !fits(*input)) continue;
      nodes_.insert(node);
      if (inputs().size() <= most_inputs) {
        if (is_reduced(input->uses().front())) before_.insert(node);
        grown = true;
        break;
      }
      nodes_.erase(node);
    }
  }
}

std::vector<Node*> Tree::ordered() const {
  std::vector<Node*> list;
  const auto visit = [&](Node* node, const auto& self) -> void {
    if (!nodes_.contains(node) || std::find(list.begin(), list.end(), node) != list.end()) return;
    for (const std::size_t operand : line_of(*node, opset_).operands) self(node->input(operand)->producer(), self);
    list.push_back(node);
  };
  for (Node* node : spine_) visit(node, visit);
  return list;
}

bool Tree::is_reduced(const Use& use) const {
  return before_.contains(use.node) || !is_elementwise_line(*use.node, opset_);
}

bool Tree::as_large(const Value& value, const Value& result) {
  const Shape shape = extents_.of(value), all = extents_.of(result);
  if (shape == all) return true;
  if (!sizes_ || repeats(shape, all)) return false;
  const Shape typical = sizes_->of(value);
  return typical.known() && typical == sizes_->of(result);
}

bool Tree::fits(const Value& value) {
  const Node& node = *value.producer();
  if (&node.graph() != &spine_.back()->graph() || value.is_graph_output() || !is_elementwise_line(node, opset_))
    return false;
  const auto joins = [&](const Use& use) {
    if (!nodes_.contains(use.node) || is_reduced(use) != is_reduced(value.uses().front())) return false;
    return !is_elementwise_line(*use.node, opset_) || as_large(value, *use.node->output());
  };
  return value.shape().has_rank() && std::all_of(value.uses().begin(), value.uses().end(), joins);
}

std::vector<Value*> program_inputs(const std::vector<Node*>& nodes, std::int64_t opset) {
  std::unordered_set<const Node*> inside(nodes.begin(), nodes.end());
  std::vector<Value*> inputs;
  for (const Node* node : nodes) {
    for (const std::size_t i : line_of(*node, opset).operands) {
      Value* value = node->input(i);
      const bool inner = value->producer() && inside.contains(value->producer());
      if (!inner && std::find(inputs.begin(), inputs.end(), value) == inputs.end()) inputs.push_back(value);
    }
  }
  return inputs;
}

std::string program_of(const std::vector<Node*>& nodes, const std::vector<Value*>& inputs, std::int64_t opset) {
  std::unordered_map<const Value*, std::string> names;
  for (std::size_t i = 0; i < inputs.size(); ++i) names[inputs[i]] = " x" + std::to_string(i);
  std::string text;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Line line = line_of(*nodes[i], opset);
    text += (i ? "; " : "") + line.op;
    for (const std::size_t operand : line.operands) text += names[nodes[i]->input(operand)];
    names[nodes[i]->output()] = " t" + std::to_string(i);
  }
  return text;
}

std::vector<Written> lines_of(const std::string& program) {
  std::vector<Written> lines;
  std::istringstream text(program);
  for (std::string part; std::getline(text, part, ';');) {
    std::istringstream words(part);
    Written& line = lines.emplace_back();
    words >> line.op;
    for (std::string word; words >> word;) line.operands.push_back(word);
  }
  return lines;
}

}  // namespace modelflow::passes
