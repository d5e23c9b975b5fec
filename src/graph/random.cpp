// Which nodes draw random numbers.
#include "modelflow/random.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "modelflow/function.h"

namespace modelflow {
namespace {

constexpr int kDeepest = 64;  // calls of functions that call functions

constexpr std::array<std::string_view, 6> kRandom = {"RandomNormal",      "RandomUniform", "RandomNormalLike",
                                                     "RandomUniformLike", "Multinomial",   "Bernoulli"};

/// Dropout that drops: since opset 12 where its third input says so, before it where `is_test` denies it.
bool drops(const Node& node) {
  if (node.attrs.integer("is_test", 1) != 1) return true;
  const Value* training = node.input(2);
  if (!training) return false;
  const Tensor* constant = training->constant();
  return !constant || constant->elements() != 1 || constant->to_ints()[0] != 0;
}

bool draws(const Graph& graph, const Model* model, int depth);

bool draws(const Node& node, const Model* model, int depth) {
  if (depth > kDeepest) return true;
  if (const Function* function = model ? find_function(*model, node) : nullptr)
    return draws(*function->body, model, depth + 1);
  const bool theirs = node.domain() == "com.microsoft";
  if (node.domain().empty() || theirs) {
    if (std::ranges::find(kRandom, node.op()) != kRandom.end()) return true;
    if (node.op() == "Dropout" && drops(node)) return true;
    if (theirs && (node.op() == "Sampling" || node.op().ends_with("Dropout"))) return true;
  }
  const auto inner = node.subgraphs();
  return std::any_of(inner.begin(), inner.end(), [&](const Graph* graph) { return draws(*graph, model, depth); });
}

bool draws(const Graph& graph, const Model* model, int depth) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [&](const auto& node) { return draws(*node, model, depth); });
}

}  // namespace

bool draws(const Node& node, const Model* model) { return draws(node, model, 0); }
bool draws(const Graph& graph, const Model* model) { return draws(graph, model, 0); }

}  // namespace modelflow
