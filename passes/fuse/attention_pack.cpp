// Three projections of one input as one product: the input is read once, and the kernel finds the heads side by side.
#include "passes/fuse/attention_pack.h"

#include <algorithm>
#include <array>

#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/graph/imported_weights.h"

namespace modelflow::passes {
namespace {

/// x * weight + bias with constants.
struct Linear {
  Value* x = nullptr;
  const Tensor* weight = nullptr;
  const Tensor* bias = nullptr;  ///< one number per column
  Node* product = nullptr;
};

std::optional<Linear> read_linear(const Value& y) {
  Linear linear;
  Node* node = y.producer();
  if (!node) return {};
  if (node->is("Add")) {
    for (const std::size_t i : {0, 1})
      if (const Tensor* bias = node->input(i)->constant()) {
        linear.bias = bias;
        node = node->input(1 - i)->producer();
        break;
      }
    if (!linear.bias || !node || !only_reader(*node->output())) return {};
  }
  if (!node->is("MatMul") || !node->input(1)->constant() || node->input(0)->constant()) return {};
  linear.x = node->input(0);
  linear.weight = node->input(1)->constant();
  linear.product = node;
  if (linear.weight->rank() != 2 || linear.weight->dtype() != DType::f32) return {};
  if (rank_of(linear.x) != 3) return {};
  const std::int64_t columns = linear.weight->dims()[1];
  if (linear.bias && (linear.bias->dtype() != DType::f32 || linear.bias->rank() > 3 || linear.bias->rank() < 1 ||
                      linear.bias->dims().back() != columns || linear.bias->elements() != columns))
    return {};
  return linear;
}

/// The picked columns of several matrices of equally many rows side by side.
struct Part {
  const Tensor* tensor;  ///< null: zeros
  const Ints* columns;
};

Tensor side_by_side(const std::array<Part, 3>& parts, std::int64_t rows, Dims dims) {
  std::size_t width = 0;
  for (const Part& part : parts) width += part.columns->size();
  return Tensor::make(DType::f32, std::move(dims), [&](std::byte* bytes) {
    auto* out = reinterpret_cast<float*>(bytes);
    for (const Part& part : parts) {
      if (part.tensor) {
        const auto from = part.tensor->as<float>();
        const std::size_t step = rows == 0 ? 0 : from.size() / static_cast<std::size_t>(rows);
        for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row)
          for (std::size_t i = 0; i < part.columns->size(); ++i)
            out[row * width + i] = from[row * step + static_cast<std::size_t>((*part.columns)[i])];
      }
      out += part.columns->size();
    }
  });
}

class Packing {
 public:
  Packing(const Operands& operands, const std::set<const Node*>& gone, Node& before, Context& context)
      : heads_{operands.q, operands.k, operands.v}, gone_(gone), before_(before), context_(context) {}

  Value* run(std::string& why) {
    if (Value* value = as_it_is()) return value;
    if (!read_linears(why)) return nullptr;
    Value* x = rows_in_batches();
    Ints all;
    for (const Heads* heads : heads_) all.insert(all.end(), heads->columns.begin(), heads->columns.end());
    const auto width = static_cast<std::int64_t>(all.size());
    std::array<Part, 3> weights, biases;
    bool biased = false;
    for (std::size_t i = 0; i < 3; ++i) {
      weights[i] = {linears_[i].weight, &heads_[i]->columns};
      biases[i] = {linears_[i].bias, &heads_[i]->columns};
      biased = biased || linears_[i].bias;
    }
    const std::int64_t rows = linears_[0].weight->dims()[0];
    Graph& graph = before_.graph();
    const std::string stem = linears_[0].product->name.empty() ? "qkv" : linears_[0].product->name + "_qkv";
    Value& w = graph.add_constant(side_by_side(weights, rows, {rows, width}), stem + "_weight");
    Value* y = &add("MatMul", {x, &w}, stem);
    if (biased) y = &add("Add", {y, &graph.add_constant(side_by_side(biases, 1, {width}), stem + "_bias")}, stem);
    return y;
  }

 private:
  Value& add(const char* op, std::vector<Value*> inputs, const std::string& name, Attrs attrs = {}) {
    Graph& graph = before_.graph();
    Node& node = graph.add(op, std::move(inputs),
                           {.before = &before_, .attrs = std::move(attrs), .name = graph.unique_name(name)});
    infer_types(node, context_.model);
    return *node.output();
  }

  /// All columns of one value in order.
  Value* as_it_is() const {
    Value* value = heads_[0]->value;
    std::int64_t next = 0;
    for (const Heads* heads : heads_) {
      if (heads->value != value || heads->form != Heads::Form::bsh) return nullptr;
      for (const std::int64_t column : heads->columns)
        if (column != next++) return nullptr;
    }
    return value->shape().back().number() == next ? value : nullptr;
  }

  bool read_linears(std::string& why) {
    for (std::size_t i = 0; i < 3; ++i) {
      const std::optional<Linear> linear = read_linear(*heads_[i]->value);
      if (!linear) return refuse(why, "'" + heads_[i]->value->name() + "' is not computed by a linear layer");
      if (i && linear->x != linears_[0].x) return refuse(why, "the projections read different inputs");
      if (heads_[i]->value->is_graph_output()) return refuse(why, "a projection is an output of the model");
      for (const Use& use : heads_[i]->value->uses())
        if (!gone_.contains(use.node)) return refuse(why, "a projection is read elsewhere too");
      if (imported_weights(*linear->product->input(1), 1))
        return refuse(why, "the weights of a projection are in 8 bits and stay as they are");
      linears_[i] = *linear;
    }
    return true;
  }

  static bool refuse(std::string& why, std::string reason) {
    why = std::move(reason);
    return false;
  }

  /// The input as [batch, sequence, channels].
  Value* rows_in_batches() {
    Value* x = linears_[0].x;
    if (heads_[0]->form == Heads::Form::bsh) return x;
    const Node* node = x->producer();
    if (node && node->is("Transpose") && node->attrs.ints("perm") == Ints{1, 0, 2}) return node->input(0);
    return &add("Transpose", {x}, "batches", {{"perm", Ints{1, 0, 2}}});
  }

  std::array<const Heads*, 3> heads_;
  std::array<Linear, 3> linears_;
  const std::set<const Node*>& gone_;
  Node& before_;
  Context& context_;
};

}  // namespace

Value* pack(const Operands& operands, const std::set<const Node*>& gone, Node& before, Context& context,
            std::string& why) {
  const auto flat = [](const Heads& heads) { return heads.form == Heads::Form::bsh || heads.form == Heads::Form::sbh; };
  for (const Heads* heads : {operands.q, operands.k, operands.v}) {
    if (!flat(*heads) || heads->form != operands.q->form || heads->columns.empty()) {
      why = "the projections are not of one form";
      return nullptr;
    }
    if (!heads->size.known() || !(heads->size == operands.q->size)) {
      why = "keys and values have heads of different sizes";
      return nullptr;
    }
  }
  return Packing(operands, gone, before, context).run(why);
}

}  // namespace modelflow::passes
