// BatchNormalization behind a Concat of convolutions (MixNet): of each part, where its convolution takes it in.
#include <cstring>
#include <numeric>

#include "modelflow/modelflow.h"
#include "passes/clean/clean.h"
#include "passes/graph/batch_norm.h"
#include "passes/graph/facts.h"
#include "passes/graph/joined.h"

namespace modelflow::passes {
namespace {

/// Some numbers of a vector.
Tensor part_of(const Tensor& vector, std::int64_t first, std::int64_t count) {
  const std::size_t each = byte_count(vector.dtype(), Dims{1});
  return Tensor::make(vector.dtype(), {count}, [&](std::byte* out) {
    std::memcpy(out, vector.data() + static_cast<std::size_t>(first) * each, static_cast<std::size_t>(count) * each);
  });
}

bool split(Node& bn, Context& context) {
  if (const Verdict form = inference_form(bn); !form) return false;
  Node* concat = joined_convolutions(*bn.input(0));
  if (!concat) return false;
  Ints channels;
  for (const Value* part : concat->inputs()) channels.push_back(part->shape()[1].value());
  const Tensor& scale = *bn.input(1)->constant();
  if (scale.rank() != 1 || scale.elements() != std::accumulate(channels.begin(), channels.end(), std::int64_t{0}))
    return false;
  Graph& graph = bn.graph();
  Build build(graph, bn, context);
  std::vector<Value*> parts;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < channels.size(); first += channels[i++]) {
    std::vector<Value*> inputs = {concat->input(i)};
    for (std::size_t k = 1; k < 5; ++k)
      inputs.push_back(&build.constant(part_of(*bn.input(k)->constant(), first, channels[i]), bn.input(k)->name()));
    parts.push_back(&build.op("BatchNormalization", std::move(inputs), bn.attrs));
  }
  graph.replace(*bn.output(), build.op("Concat", std::move(parts), concat->attrs));
  context.hit("batch-norm-of-parts");
  return true;
}

int run(Graph& graph, Context& context) {
  int changes = 0;
  for (Node* bn : nodes_of(graph, {"BatchNormalization"})) changes += split(*bn, context);
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass split_batch_norm() {
  return {.name = "split-batch-norm",
          .doc = "BatchNormalization behind a Concat of convolutions -> of each of them, in front of the Concat",
          .run = run};
}

}  // namespace modelflow::passes
