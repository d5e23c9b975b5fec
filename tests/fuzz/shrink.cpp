// Leaves outputs out, cuts at values in the middle, takes single nodes out, and makes constants plain.
#include "tests/fuzz/shrink.h"

#include <algorithm>
#include <cmath>

#include "modelflow/compose.h"
#include "modelflow/error.h"
#include "modelflow/pass.h"
#include "tests/all_graphs.h"
#include "tests/fuzz/change.h"
#include "tests/fuzz/elements.h"

namespace modelflow::fuzz {
namespace {

/// These outputs, and the inputs that they read.
void keep_only(Model& model, const std::vector<std::string>& names) {
  model = keep_outputs(std::move(model), names);
  Graph& graph = model.graph();
  for (std::size_t i = graph.inputs().size(); i-- > 0;) {
    const Value& input = *graph.inputs()[i];
    if (input.uses().empty() && !input.is_graph_output() && !input.is_initializer()) graph.remove_input(i);
  }
}

std::vector<std::string> output_names(const Model& model) {
  std::vector<std::string> names;
  for (const Value* output : model.graph().outputs()) names.push_back(output->name());
  return names;
}

bool one_output(Model& model, std::size_t i) {
  const std::vector<std::string> names = output_names(model);
  if (names.size() < 2 || i >= names.size()) return false;
  keep_only(model, {names[i]});
  return true;
}

bool without_output(Model& model, std::size_t i) {
  std::vector<std::string> names = output_names(model);
  if (names.size() < 2 || i >= names.size()) return false;
  names.erase(names.begin() + static_cast<std::ptrdiff_t>(i));
  keep_only(model, names);
  return true;
}

Node* node_at(Model& model, std::size_t i) {
  auto it = model.graph().nodes().begin();
  std::advance(it, static_cast<std::ptrdiff_t>(std::min(i, model.graph().nodes().size())));
  return it == model.graph().nodes().end() ? nullptr : it->get();
}

/// What a node makes comes from outside.
bool cut_above(Model& model, std::size_t i) {
  Node* node = node_at(model, i);
  if (!node || node->outputs().empty()) return false;
  const std::vector<Value*> made = node->outputs();
  for (Value* output : made) {
    if (!output) continue;
    if (output->is_graph_output() || !output->type.is_tensor() || output->dtype() == DType::undefined) return false;
    if (output->uses().empty()) continue;
    Value& input =
        model.graph().add_input(model.graph().unique_name("x"), Type::tensor(output->dtype(), output->shape()));
    for (const Use& use : std::vector<Use>(output->uses())) use.node->graph().set_input(*use.node, use.index, &input);
  }
  keep_only(model, output_names(model));
  return true;
}

/// What a node makes is the result.
bool cut_below(Model& model, std::size_t i) {
  Node* node = node_at(model, i);
  if (!node || !node->output() || !node->output()->type.is_tensor() || node->output()->is_graph_output()) return false;
  node->output()->type.shape = {};
  keep_only(model, {node->output()->name()});
  return true;
}

/// A node that changes no shape is left out.
bool skipped(Model& model, std::size_t i) {
  Node* node = node_at(model, i);
  if (!node || node->outputs().size() != 1 || node->inputs().empty() || !node->input(0) || !node->output())
    return false;
  if (node->output()->is_graph_output() || node->input(0)->dtype() != node->output()->dtype()) return false;
  model.graph().replace(*node->output(), *node->input(0));
  keep_only(model, output_names(model));
  return true;
}

bool plain_constant(Model& model, std::size_t i) {
  std::vector<Value*> constants;
  for (Graph* graph : all_graphs(model))
    for (Value* value : graph->initializers())
      if (value->constant() && is_float(value->dtype())) constants.push_back(value);
  if (i >= constants.size()) return false;
  const Tensor tensor = *constants[i]->constant();
  std::vector<double> numbers = tensor.to_doubles();
  bool changed = false;
  for (double& number : numbers) {
    const double rounded = std::abs(number) < 1e4 ? std::nearbyint(number * 2) / 2 : number;
    const double plain = rounded == 0 ? number : rounded;  // a scale of 0 is another failure
    changed = changed || plain != number;
    number = plain;
  }
  if (changed) constants[i]->graph().set_initializer(*constants[i], tensor_of(tensor.dtype(), tensor.dims(), numbers));
  return changed;
}

bool number_dim(Model& model, std::size_t i) {
  std::size_t at = 0;
  for (Value* input : model.graph().inputs()) {
    if (!input->shape().has_rank()) continue;
    std::vector<Dim> dims = input->shape().dims();
    for (Dim& dim : dims)
      if (!dim.known() && at++ == i) {
        dim = Dim(2);
        input->type.shape = Shape(dims);
        return true;
      }
  }
  return false;
}

class Shrinker {
 public:
  Shrinker(Model model, const std::function<bool(const Model&)>& fails, int most)
      : model_(std::move(model)), fails_(fails), left_(most) {}

  Model run() {
    using Reduce = bool (*)(Model&, std::size_t);
    for (bool smaller = true; smaller && left_ > 0;) {
      smaller = false;
      for (const Reduce reduce : std::initializer_list<Reduce>{one_output, without_output, cut_below, cut_above,
                                                               skipped, plain_constant, number_dim})
        smaller = try_all(reduce) || smaller;
    }
    return std::move(model_);
  }

 private:
  /// `reduce` at every place, from the last on.
  bool try_all(bool (*reduce)(Model&, std::size_t)) {
    bool any = false;
    const std::size_t places = std::max<std::size_t>(model_.graph().nodes().size(), 40);
    for (std::size_t i = places; i-- > 0 && left_ > 0;) {
      Model attempt = model_;
      try {
        infer_types(attempt);
        if (!reduce(attempt, i)) continue;
        forget_shapes(attempt);
        --left_;
        if (!fails_(attempt)) continue;
      } catch (const Error&) {
        continue;
      }
      model_ = std::move(attempt);
      any = true;
    }
    return any;
  }

  Model model_;
  const std::function<bool(const Model&)>& fails_;
  int left_;
};

}  // namespace

Model shrunk(Model model, const std::function<bool(const Model&)>& fails, int most) {
  return Shrinker(std::move(model), fails, most).run();
}

}  // namespace modelflow::fuzz
