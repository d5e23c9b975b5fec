// Nodes of constants, cut out of the graph and run in ONNX Runtime.
#include "passes/clean/evaluate.h"

#include <algorithm>
#include <unordered_set>

#include "modelflow/error.h"
#include "modelflow/runtime.h"

namespace modelflow::passes {

namespace {

/// Larger constants are fed as inputs, which the runtime reads in place; small ones travel inside the model, where the
/// few kernels that want a true constant find it.
constexpr std::size_t kInline = 1024;

/// The nodes as a model of their own.
struct Excerpt {
  Model model;
  Feeds feeds;
  std::vector<const Value*> wanted;
};

class Cutter {
 public:
  Cutter(const Context& context, const Known& known) : known_(known) {
    const Model& whole = context.model;
    cut_.model.ir_version = whole.ir_version;
    cut_.model.opsets = {{"", whole.opset()}};
  }

  Excerpt cut(std::span<Node* const> nodes) {
    Graph& graph = cut_.model.graph();
    for (const Node* node : nodes) {
      std::vector<Value*> inputs;
      for (const Value* input : node->inputs()) inputs.push_back(input ? &copy(*input) : nullptr);
      Node& made = graph.add(node->op(), std::move(inputs), {.outputs = node->outputs().size(), .attrs = node->attrs});
      for (std::size_t i = 0; i < node->outputs().size(); ++i) {
        if (const Value* out = node->output(i)) {
          made.output(i)->type = out->type;
          copies_[out] = made.output(i);
          cut_.wanted.push_back(out);
          graph.add_output(*made.output(i));
        } else {
          graph.set_output(made, i, nullptr);
        }
      }
    }
    return std::move(cut_);
  }

 private:
  Value& copy(const Value& value) {
    Value*& copy = copies_[&value];
    if (copy) return *copy;
    const auto found = known_.find(&value);
    const Tensor& tensor = found != known_.end() ? found->second : *value.constant();
    Graph& graph = cut_.model.graph();
    if (tensor.bytes() <= kInline) {
      copy = &graph.add_constant(tensor);
    } else {
      const std::string name = graph.unique_name("fed");
      copy = &graph.add_input(name, Type::tensor(tensor.dtype(), Shape::of(tensor.dims())));
      cut_.feeds[name] = tensor;
    }
    return *copy;
  }

  const Known& known_;
  Excerpt cut_;
  std::unordered_map<const Value*, Value*> copies_;
};

void run(std::span<Node* const> nodes, const Context& context, Known& results) {
  const Excerpt excerpt = Cutter(context, results).cut(nodes);
  const std::string bytes = excerpt.model.to_bytes();
  // As many threads as the caller has cores for: those that share a core wait for each other by spinning.
  const SessionOptions options{.threads = context.options.threads, .optimize = false};
  const auto session = context.runtime->load_bytes(std::as_bytes(std::span(bytes)), options);
  std::vector<Tensor> outputs = session->run(excerpt.feeds);
  for (std::size_t i = 0; i < excerpt.wanted.size(); ++i) {
    const DType declared = excerpt.wanted[i]->dtype();
    if (outputs[i].dtype() == DType::undefined || (declared != DType::undefined && declared != outputs[i].dtype()))
      throw Error(ErrorKind::internal, "the runtime gave a value of another type");
  }
  for (std::size_t i = 0; i < excerpt.wanted.size(); ++i) results[excerpt.wanted[i]] = std::move(outputs[i]);
}

/// Halves the set until the nodes that fail stand alone.
void attempt(std::span<Node* const> nodes, const Context& context, Known& results, std::vector<Failure>& failures) {
  std::vector<Node*> runnable;
  std::unordered_set<const Node*> among;
  const auto available = [&](const Value* v) {
    return !v || v->constant() || results.contains(v) || among.contains(v->producer());
  };
  for (Node* node : nodes)
    if (std::all_of(node->inputs().begin(), node->inputs().end(), available)) {
      runnable.push_back(node);
      among.insert(node);
    }
  if (runnable.empty()) return;
  try {
    run(runnable, context, results);
  } catch (const Error& error) {
    if (runnable.size() == 1) {
      failures.push_back({runnable.front(), error.what()});
      return;
    }
    const std::span<Node* const> all(runnable);
    const std::size_t half = all.size() / 2;
    attempt(all.first(half), context, results, failures);
    attempt(all.subspan(half), context, results, failures);
  }
}

}  // namespace

std::vector<Failure> evaluate(const std::vector<Node*>& nodes, const Context& context, Known& results) {
  std::vector<Failure> failures;
  attempt(nodes, context, results, failures);
  return failures;
}

}  // namespace modelflow::passes
