// Loops of a few steps written out: what was one step then fuses with the next, and with what stands around the loop.
#include "modelflow/modelflow.h"
#include "modelflow/random.h"
#include "modelflow/symbols.h"
#include "passes/graph/edits.h"
#include "passes/graph/facts.h"
#include "passes/graph/inliner.h"
#include "passes/normalize/iteration.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {
namespace {

/// A model shall not grow much by it: as many nodes may come of a loop, of as many steps.
constexpr std::size_t kMostNodes = 128;
constexpr std::int64_t kMostSteps = 16;

std::size_t nodes_in(const Graph& graph) {
  std::size_t count = graph.nodes().size();
  for (const auto& node : graph.nodes())
    for (const Graph* inner : node->subgraphs()) count += nodes_in(*inner);
  return count;
}

class Unrolling {
 public:
  Unrolling(const Iteration& it, Context& context)
      : it_(it),
        context_(context),
        graph_(it.node->graph()),
        build_(graph_, *it.node, context),
        collected_(it.stacks.size()) {
    for (const Iteration::State& state : it_.states) current_.push_back(state.initial);
  }

  void run() {
    for (std::int64_t i = 0; i < it_.trips; ++i) step(i);
    for (std::size_t i = 0; i < it_.states.size(); ++i)
      if (Value* last = it_.states[i].last) put(*last, *current_[i]);
    for (std::size_t i = 0; i < it_.stacks.size(); ++i)
      if (Value* all = it_.stacks[i].all) put(*all, build_.op("Concat", collected_[i], {{"axis", std::int64_t{0}}}));
    graph_.erase(*it_.node);
  }

 private:
  Value& number(std::int64_t i) { return build_.constant(Tensor::scalar(i), "step"); }

  /// One number, of the rank that the body declares for it.
  Value& given(const Tensor& number, const Value& inside, const char* stem) {
    return build_.constant(rank_of(&inside) == 1 ? number.reshaped({1}) : number, stem);
  }

  void step(std::int64_t i) {
    const std::unique_ptr<Graph> body = it_.body->clone(it_.node, &graph_);
    forget_symbols(*body);  // beside each other, the trips have extents of their own
    Inliner inliner(graph_, *it_.node);
    for (std::size_t j = 0; j < body->inputs().size(); ++j) inliner.bind(*body->inputs()[j], outside(j, i));
    inliner.move(*body);
    for (const auto& node : body->nodes())
      for (Value* output : node->outputs())
        if (output) infer_types(*inliner.moved(output)->producer(), context_.model);
    const std::size_t first = it_.number ? 1 : 0;  // behind the condition
    for (std::size_t j = 0; j < current_.size(); ++j) current_[j] = inliner.moved(body->outputs()[first + j]);
    for (std::size_t j = 0; j < collected_.size(); ++j)
      if (it_.stacks[j].all)
        collected_[j].push_back(&row(*inliner.moved(body->outputs()[first + current_.size() + j])));
  }

  /// What input `j` of the body is at step `i`.
  Value& outside(std::size_t j, std::int64_t i) {
    if (it_.number && j == 0) return given(Tensor::scalar(i), *it_.number, "step");
    if (it_.number && j == 1) return given(Tensor::scalar(true), *it_.keep_going, "more");
    const std::size_t k = j - (it_.number ? 2 : 0);
    if (k < current_.size()) return *current_[k];
    return build_.op("Gather", {it_.sequences[k - current_.size()].all, &number(i)}, {{"axis", std::int64_t{0}}});
  }

  Value& row(Value& value) { return with_axes(build_, "Unsqueeze", value, {0}); }

  void put(Value& result, Value& value) {
    // A graph output stays the output of a node.
    const bool bare = result.is_graph_output() && (!value.producer() || value.is_graph_output());
    graph_.replace(result, bare ? build_.op("Identity", {&value}) : value);
  }

  const Iteration& it_;
  Context& context_;
  Graph& graph_;
  Build build_;
  std::vector<Value*> current_;
  std::vector<std::vector<Value*>> collected_;
};

Verdict unroll(const Iteration& it, Context& context) {
  if (it.trips > kMostSteps) return no("it has " + std::to_string(it.trips) + " steps");
  if (draws(*it.body, &context.model)) return no("every step draws random numbers of its own");
  for (const Value* number : {it.number, it.keep_going})
    if (number && rank_of(number).value_or(2) > 1) return no("the body does not say the rank of its count");
  const std::size_t nodes = nodes_in(*it.body) * static_cast<std::size_t>(it.trips);
  if (nodes > kMostNodes) return no("it would become " + std::to_string(nodes) + " nodes");
  Unrolling(it, context).run();
  return yes();
}

int run(Graph& graph, Context& context) { return rewrite_loops(graph, context, "unroll", unroll); }

}  // namespace

Pass unroll_loops() {
  return {.name = "unroll-loops", .doc = "A Loop or Scan of a few steps -> the nodes of these", .run = run};
}

}  // namespace modelflow::passes
