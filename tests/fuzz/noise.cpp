// Multiplies values by random numbers near one, in the graph itself: RandomUniformLike and Mul behind every value.
#include "tests/fuzz/noise.h"

#include <algorithm>

#include "modelflow/modelflow.h"
#include "modelflow/pass.h"
#include "src/verify/nudge.h"
#include "tests/fuzz/change.h"
#include "tests/fuzz/draws.h"

namespace modelflow::fuzz {
namespace {

bool takes_noise(const Value& value) {
  return value.type.is_tensor() &&
         (value.dtype() == DType::f32 || value.dtype() == DType::f64 || value.dtype() == DType::f16);
}

/// Moves values only: rounds nothing, so noise behind it would count rounding twice.
bool only_moves(const Node& node) {
  if (node.is("Cast") && node.input(0) && !is_float(node.input(0)->dtype())) return true;  // exact
  for (const char* op : {"Identity",        "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Slice",
                         "Gather",          "Concat",  "Split",     "Expand",  "Tile",      "Pad",     "Constant",
                         "ConstantOfShape", "Where",   "Relu",      "Neg",     "Abs",       "Max",     "Min"})
    if (node.is(op)) return true;
  return false;
}

/// Scales of quantization: integer sums times these round to integers again, and often lie between two of them.
bool is_scale(const Value& value) {
  return std::any_of(value.uses().begin(), value.uses().end(), [](const Use& use) {
    return use.node->op().find("Linear") != std::string::npos && use.index > 0;
  });
}

/// These readers get `by` instead of the value, and so does who asks.
Value* instead(const Value& value, const std::vector<Use>& readers, Value* by) {
  by->type = value.type;
  for (const Use& use : readers) use.node->graph().set_input(*use.node, use.index, by);
  return by;
}

void disturb(Graph& graph, Value& value, double steps, Node* before, Noise& noise) {
  const double width = (is_scale(value) ? 8 : 1) * steps * last_digit(value.dtype());
  const std::vector<Use> readers = value.uses();
  Value* factor = noise.draws(graph, value, 1 - width, 1 + width, before);
  instead(value, readers, graph.add("Mul", {&value, factor}, {.before = before}).output());
}

/// Small constants may stand for extents (Resize, Range).
bool worth_noise(const Value& constant) {
  if (is_scale(constant)) return true;
  const bool pads = std::ranges::any_of(constant.uses(), [](const Use& use) { return use.node->is("Pad"); });
  return !pads && !decides_extents_or_domain(constant) && constant.constant()->elements() > 1;
}

std::vector<Value*> inputs_worth_noise(const Graph& graph) {
  std::vector<Value*> inputs = graph.inputs();
  std::erase_if(inputs, [](const Value* value) { return decides_extents_or_domain(*value); });
  return inputs;
}

/// Normalizations subtract a mean from values inside of themselves: noise in front of it moves the mean along. What
/// noise in the mean alone does comes behind them: rounding of it, divided by the deviation. What readers get then.
Value* disturb_mean(Graph& graph, Node& node, double steps, Node* before, Noise& noise) {
  Value *x = node.input(0), *y = node.output();
  if (!x || !y || !takes_noise(*x) || !x->shape().has_rank()) return y;
  const auto rank = static_cast<std::int64_t>(x->shape().rank());
  const bool layer = node.is("LayerNormalization");
  if (!layer && !node.is("InstanceNormalization")) return y;
  std::int64_t first = layer ? node.attrs.integer("axis", -1) : 2;
  if (first < 0) first += rank;
  Ints axes;
  for (std::int64_t i = first; i < rank; ++i) axes.push_back(i);
  const auto op = [&](std::string_view name, std::vector<Value*> inputs, Attrs attrs = {}) {
    Value* made = graph.add(name, std::move(inputs), {.before = before, .attrs = std::move(attrs)}).output();
    made->type = Type::tensor(x->dtype());
    return made;
  };
  const auto mean = [&](Value* of) {
    Attrs attrs;
    if (!noise.axes_are_inputs()) return op("ReduceMean", {of}, {{"axes", axes}});
    return op("ReduceMean", {of, &graph.add_constant(Tensor::of<std::int64_t>({static_cast<std::int64_t>(axes.size())},
                                                                              std::span<const std::int64_t>(axes)))});
  };
  Value* middle = mean(x);
  Value* off = op("Sub", {x, middle});
  Value* spread = mean(op("Mul", {off, off}));
  const double epsilon = node.attrs.number("epsilon", 1e-5F);
  Value* deviation = op("Sqrt", {op("Add", {spread, noise.constant(graph, x->dtype(), epsilon)})});
  const double width = steps * last_digit(x->dtype());
  Value* moved = op("Mul", {middle, noise.draws(graph, *middle, -width, width, before)});
  Value* size = op("ReduceMax", {op("Abs", {node.input(1)})}, {{"keepdims", std::int64_t{0}}});
  Value* by = op("Mul", {op("Div", {moved, deviation}), size});
  Value* sum = op("Add", {y, by});
  graph.replace(*y, *sum);
  return sum;
}

/// What lower precision does to a value: noise of a share of its largest magnitude, or steps of twice that.
struct Coarseness {
  double share;
  bool steps;
};

/// The largest magnitude in a value: a share of an infinity (masks) would be infinite for every element.
Value* largest_finite(Graph& graph, Value& value, Node* before, Noise& noise) {
  const auto op = [&](std::string_view name, std::vector<Value*> inputs, Attrs attrs = {}) {
    return graph.add(name, std::move(inputs), {.before = before, .attrs = std::move(attrs)}).output();
  };
  Value* size = op("Abs", {&value});
  if (noise.has_is_inf() && value.dtype() == DType::f32)
    size = op("Where", {op("IsInf", {size}), noise.constant(graph, value.dtype(), 0), size});
  return op("ReduceMax", {size}, {{"keepdims", std::int64_t{0}}});
}

Value* coarsened(Graph& graph, Value& value, Coarseness coarse, Node* before, Noise& noise) {
  const auto op = [&](std::string_view name, std::vector<Value*> inputs, Attrs attrs = {}) {
    Value* made = graph.add(name, std::move(inputs), {.before = before, .attrs = std::move(attrs)}).output();
    made->type.kind = Type::Kind::tensor;
    made->type.dtype = value.dtype();
    return made;
  };
  Value* largest = largest_finite(graph, value, before, noise);
  if (coarse.steps) {
    Value* step = op("Mul", {largest, noise.constant(graph, value.dtype(), 2 * coarse.share)});
    Value* some = op("Max", {step, noise.constant(graph, value.dtype(), 1e-7)});  // also where all of it is 0
    return op("Mul", {op("Round", {op("Div", {&value, some})}), some});
  }
  Value* moved = op("Mul", {noise.draws(graph, value, -coarse.share, coarse.share, before), largest});
  return op("Add", {&value, moved});
}

/// What make(value as it was) gives, in its place for its readers and the model's user.
template <class Make>
Value* in_place_of(Graph& graph, Value& value, Node* before, Make make) {
  Node& plain = *graph.add("Identity", {&value}, {.before = before}).output()->producer();
  plain.output()->type = value.type;
  Value* made = make(*plain.output());
  graph.replace(value, *made);
  graph.set_input(plain, 0, &value);
  return made;
}

Value* coarsen(Graph& graph, Value& value, Coarseness coarse, Node* before, Noise& noise) {
  if (!takes_noise(value) || (value.uses().empty() && !value.is_graph_output())) return &value;
  return in_place_of(graph, value, before,
                     [&](Value& plain) { return coarsened(graph, plain, coarse, before, noise); });
}

/// Exponentials that nearly vanish do so in some kernels, and ONNX Runtime (1.31) ends at 4e-39: times an infinity that
/// is NaN or infinite.
Value* vanishing(Graph& graph, Node& node, Value& value, Node* before, Noise& noise) {
  const std::vector<Use> readers = value.uses();
  const DType dtype = value.dtype();
  if (!node.is("Softmax") || !noise.has_where() || (dtype != DType::f32 && dtype != DType::f16)) return &value;
  const auto op = [&](std::string_view name, std::vector<Value*> inputs) {
    return graph.add(name, std::move(inputs), {.before = before}).output();
  };
  Value* tiny = op("Less", {&value, noise.constant(graph, dtype, dtype == DType::f32 ? 1e-37 : 0x1p-14)});
  return instead(value, readers, op("Where", {tiny, noise.constant(graph, dtype, 0), &value}));
}

/// The sign of a 0 is nobody's promise, and numbers that nearly vanish are 0 to some kernels, or with a `share` all
/// that are such a part of the largest: what divides by them gets either infinity.
void either_zero(Graph& graph, Node& node, Noise& noise, double share = 0) {
  const std::size_t index = node.is("Div") ? 1 : 0;
  Value* by = node.input(index);
  if (!(node.is("Div") || node.is("Reciprocal")) || !by || by->constant() || !takes_noise(*by)) return;
  const DType dtype = by->dtype();
  const auto op = [&](std::string_view name, std::vector<Value*> inputs, Attrs attrs = {}) {
    return graph.add(name, std::move(inputs), {.before = &node, .attrs = std::move(attrs)}).output();
  };
  const double least = dtype == DType::f32 ? 1e-37 : dtype == DType::f16 ? 0x1p-14 : 1e-307;
  Value* limit = noise.constant(graph, dtype, share > 0 ? share : least);
  if (share > 0) limit = op("Mul", {largest_finite(graph, *by, &node, noise), limit});
  // Where is of opset 9, and ONNX Runtime's makes 0 of -0: 1 or 0 choose, and the sign comes through a product.
  Value* tiny = op("Cast", {op("Less", {op("Abs", {by}), limit})}, {{"to", static_cast<std::int64_t>(dtype)}});
  Value* others = op("Sub", {noise.constant(graph, dtype, 1), tiny});
  Value* drawn = op("Mul", {noise.draws(graph, *by, -1, 1, &node), tiny});
  Value* either = op("Mul", {op("Add", {op("Mul", {by, others}), drawn}), others});
  either->type = by->type;
  graph.set_input(node, index, either);
}

/// ONNX Runtime's Sigmoid is as exact as numbers near 1 are, and 0 below -18: what divides by it sees that, and the
/// model's user. The tanh of its recurrent layers ends at 1.0000005, for what reads them.
Value* near_one(Graph& graph, Node& node, Value& value, double steps, Node* before, Noise& noise) {
  const bool within = node.is("LSTM") || node.is("GRU") || node.is("RNN");  // its Sigmoid is that of the layers, too
  if (!node.is("Sigmoid") && !within) return &value;
  const double width = (within ? 8 : 1) * steps * last_digit(value.dtype());
  const std::vector<Use> readers = value.uses();
  const auto moved = [&](Value& exact) {
    Value* by = noise.draws(graph, exact, -width, width, before);
    Value* sum = graph.add("Add", {&exact, by}, {.before = before}).output();
    sum->type = value.type;
    return sum;
  };
  return within ? instead(value, readers, moved(value)) : in_place_of(graph, value, before, moved);
}

/// A sum of equal numbers, one after the other, rounds the same way every time: half a digit for each of n, and the
/// sums on the way are half of the last on average. What readers, and the model's user, get then.
Value* sum_in_turn(Graph& graph, Value& value, double steps, Node* before, Noise& noise) {
  const auto op = [&](std::string_view name, std::vector<Value*> inputs, Attrs attrs = {}) {
    return graph.add(name, std::move(inputs), {.before = before, .attrs = std::move(attrs)}).output();
  };
  const Attrs to = {{"to", static_cast<std::int64_t>(value.dtype())}};
  Value* read = value.producer()->input(0);
  const double width = steps * last_digit(value.dtype()) / 8;
  return in_place_of(graph, value, before, [&](Value& sum) {
    Value* all = op("Cast", {op("Size", {read})}, to);
    Value* kept = op("Cast", {op("Size", {&sum})}, to);
    Value* by = op("Mul", {noise.draws(graph, sum, -width, width, before), op("Div", {all, kept})});
    Value* moved = op("Mul", {&sum, op("Add", {by, noise.constant(graph, value.dtype(), 1)})});
    moved->type = value.type;
    return moved;
  });
}

bool sums(const Node& node) {
  for (const char* op : {"ReduceMean", "ReduceSum", "ReduceL1", "ReduceSumSquare", "GlobalAveragePool"})
    if (node.is(op)) return true;
  return false;
}

/// Rounding of some ops is a share of the largest of their results, so many digits of it; 0 for others. Transforms:
/// what is 0 in one order is dust of some digits in another, and infinite or NaN for who divides by it or takes its
/// root. Interpolation: places are rounded, and a weight that should be 0 is dust. 3x3 convolutions: minimal filtering
/// (Winograd) of tiles of 4 by 4 is off by 35 digits with 4 channels, 50 with 16 and 160 with 256, where a plain sum is
/// by 3, 7 and 36 (numpy, normal numbers).
double digits_of_largest(const Node& node) {
  if (node.is("STFT") || node.is("DFT")) return 2;
  const bool resizes = node.is("Resize") || node.is("Upsample");
  if (resizes && node.attrs.text("mode", "nearest") != "nearest") return 2;
  if (!node.is("Conv") || node.attrs.integer("group", 1) != 1) return 0;
  const Shape& w = node.input(1)->shape();
  return w.has_rank() && w.rank() == 4 && w[2].number() == 3 && w[3].number() == 3 ? 12 : 0;
}

void disturb(Graph& graph, double steps, Noise& noise) {
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes()) nodes.push_back(node.get());
  if (nodes.empty()) return;
  std::vector<Value*> sources = inputs_worth_noise(graph);
  for (Value* value : graph.initializers())
    if (value->constant() && worth_noise(*value)) sources.push_back(value);
  for (Value* value : sources)
    if (takes_noise(*value) && !value->uses().empty()) disturb(graph, *value, steps, nodes.front(), noise);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (Graph* inner : nodes[i]->subgraphs()) disturb(*inner, steps, noise);
    either_zero(graph, *nodes[i], noise);
    const bool scale = nodes[i]->is("Constant") && nodes[i]->output() && is_scale(*nodes[i]->output());
    if (only_moves(*nodes[i]) && !scale) continue;
    Node* next = i + 1 < nodes.size() ? nodes[i + 1] : nullptr;
    std::vector<Value*> results = nodes[i]->outputs();
    if (!results.empty()) results[0] = disturb_mean(graph, *nodes[i], steps, next, noise);
    const double digits = digits_of_largest(*nodes[i]);
    for (Value* result : results) {
      if (!result || !takes_noise(*result)) continue;
      if (digits != 0)
        result =
            coarsen(graph, *result, {digits * steps * last_digit(result->dtype()), noise.drops_dust()}, next, noise);
      if (sums(*nodes[i]) && result->dtype() != DType::f16) result = sum_in_turn(graph, *result, steps, next, noise);
      result = near_one(graph, *nodes[i], *result, steps, next, noise);
      if (result->uses().empty()) continue;
      result = vanishing(graph, *nodes[i], *result, next, noise);
      disturb(graph, *result, steps, next, noise);
    }
  }
}

bool is_product(const Node& node) {
  for (const char* op :
       {"MatMul", "Gemm", "Conv", "ConvTranspose", "LSTM", "GRU", "RNN", "Einsum", "Attention", "STFT", "DFT"})
    if (node.is(op)) return true;
  return false;
}

/// Where what a product reads comes from, through whatever only moves it: there it is kept in 8 bits, for all that read
/// it.
void add_sources(Value& value, std::vector<Value*>& sources) {
  if (std::ranges::find(sources, &value) != sources.end()) return;
  sources.push_back(&value);
  if (!value.producer() || !only_moves(*value.producer())) return;
  for (Value* input : value.producer()->inputs())
    if (input && takes_noise(*input)) add_sources(*input, sources);
}

/// A result of a product, and what becomes of it in the same kernel (bias, activation): all of it ends in 8 bits.
void add_results(Value& result, std::vector<Value*>& kept) {
  constexpr int kMostSteps = 3;
  Value* value = &result;
  for (int i = 0; value && takes_noise(*value) && i < kMostSteps; ++i) {
    add_sources(*value, kept);
    const bool alone = value->uses().size() == 1 && value->uses()[0].node->outputs().size() == 1;
    value = alone ? value->uses()[0].node->output() : nullptr;
  }
}

/// What products of this graph and those within it read and make, wherever it is made.
void add_kept(Graph& graph, std::vector<Value*>& kept) {
  std::ranges::copy(inputs_worth_noise(graph), std::back_inserter(kept));
  for (const auto& node : graph.nodes()) {
    for (Graph* inner : node->subgraphs()) add_kept(*inner, kept);
    if (!is_product(*node)) continue;
    for (Value* input : node->inputs())
      if (input && takes_noise(*input)) add_sources(*input, kept);
    for (Value* output : node->outputs())
      if (output) add_results(*output, kept);
  }
}

void add_divisions(Graph& graph, std::vector<Node*>& found) {
  for (const auto& node : graph.nodes()) {
    for (Graph* inner : node->subgraphs()) add_divisions(*inner, found);
    if (node->is("Div") || node->is("Reciprocal")) found.push_back(node.get());
  }
}

void coarsen(Graph& main, Coarseness coarse, Noise& noise) {
  std::vector<Node*> divisions;
  add_divisions(main, divisions);
  for (Node* node : divisions) either_zero(node->graph(), *node, noise, 2 * coarse.share);
  std::vector<Value*> kept;
  add_kept(main, kept);
  for (Value* value : kept) {
    Graph& graph = value->graph();
    const auto& nodes = graph.nodes();
    auto place = nodes.begin();
    if (value->producer())
      place = std::next(std::ranges::find(nodes, value->producer(), [](const auto& node) { return node.get(); }));
    coarsen(graph, *value, coarse, place == nodes.end() ? nullptr : place->get(), noise);
  }
}

Model prepared(const Model& model) {
  Model copy = inline_functions(model);
  infer_types(copy);
  return copy;
}

}  // namespace

Model with_noise(const Model& model, double steps, std::uint64_t seed) {
  Model copy = prepared(model);
  Noise noise(seed, model.opset());
  disturb(copy.graph(), steps, noise);
  return copy;
}

Model with_coarse_products(const Model& model, double share, std::uint64_t seed, bool steps) {
  Model copy = prepared(model);
  Noise noise(seed, model.opset());
  coarsen(copy.graph(), {share, steps && model.opset() >= 11}, noise);
  return copy;
}

}  // namespace modelflow::fuzz
