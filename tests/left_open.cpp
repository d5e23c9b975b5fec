// Shapes of results by the definition of the op, where runtimes differ.
#include "tests/left_open.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <span>

#include "modelflow/error.h"
#include "modelflow/modelflow.h"
#include "modelflow/pass.h"
#include "passes/clean/clean.h"
#include "passes/graph/facts.h"
#include "src/core/half.h"
#include "src/verify/compare.h"
#include "src/verify/element.h"
#include "src/verify/open_results.h"
#include "src/verify/reference.h"

namespace modelflow {
namespace {

using Values = std::map<const Value*, Tensor>;
constexpr const char* kOverflow = "what overflows in float16 depends on the casts that ONNX Runtime leaves out";

bool reduces(const Node& node) { return node.domain().empty() && node.op().starts_with("Reduce"); }

std::optional<Dims> reduced(const Node& node, const Dims& x, const Values& values) {
  const auto given = values.find(node.input(1));
  Ints axes = given != values.end() ? given->second.to_ints() : node.attrs.ints("axes");
  const auto rank = static_cast<std::int64_t>(x.size());
  if (axes.empty() && node.attrs.integer("noop_with_empty_axes") != 0) return x;
  for (std::int64_t i = 0; axes.empty() && i < rank; ++i) axes.push_back(i);
  for (std::int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  Dims dims;
  for (std::int64_t i = 0; i < rank; ++i) {
    const bool gone = std::ranges::find(axes, i) != axes.end();
    if (!gone || node.attrs.integer("keepdims", 1) != 0) dims.push_back(gone ? 1 : x[static_cast<std::size_t>(i)]);
  }
  return dims;
}

std::optional<Dims> product(Dims a, Dims b) {
  if (a.size() < 2 || b.size() < 2) return {};
  Dims dims = {a[a.size() - 2], b.back()};
  a.resize(a.size() - 2), b.resize(b.size() - 2);
  const std::size_t rank = std::max(a.size(), b.size());
  a.insert(a.begin(), rank - a.size(), 1), b.insert(b.begin(), rank - b.size(), 1);
  for (std::size_t i = rank; i-- > 0;) {
    if (a[i] != b[i] && a[i] != 1 && b[i] != 1) return Dims{-1};  // they do not broadcast: no shape is right
    dims.insert(dims.begin(), a[i] == 1 ? b[i] : a[i]);
  }
  return dims;
}

/// The shape that the definition of the op gives its first output.
std::optional<Dims> defined(const Node& node, const Values& values) {
  const auto x = values.find(node.input(0)), y = values.find(node.input(1));
  if (x == values.end()) return {};
  if (reduces(node)) return reduced(node, x->second.dims(), values);
  if (node.is("MatMul") && y != values.end()) return product(x->second.dims(), y->second.dims());
  return {};
}

/// Parts whose extents differ beside the axis that they are joined along.
bool joins_unlike(const Node& concat, const Values& values) {
  std::optional<Dims> first;
  for (const Value* part : concat.inputs()) {
    const auto found = values.find(part);
    if (found == values.end()) return false;
    Dims dims = found->second.dims();
    const std::int64_t axis = concat.attrs.integer("axis");
    const auto at = static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(dims.size()) : axis);
    if (at < dims.size()) dims[at] = 0;
    if (first && *first != dims) return true;
    first = dims;
  }
  return false;
}

/// No frame fits into the signal.
bool frameless(const Node& stft, const Values& values) {
  const auto signal = values.find(stft.input(0)), window = values.find(stft.input(2)),
             length = values.find(stft.input(3));
  if (signal == values.end() || signal->second.rank() < 2) return false;
  const std::int64_t frame = length != values.end()   ? length->second.to_ints().at(0)
                             : window != values.end() ? window->second.elements()
                                                      : 0;
  return signal->second.dims()[1] < frame;
}

bool has(const Tensor& tensor, bool (*kind)(double)) {
  if (!is_float(tensor.dtype())) return false;
  const std::vector<double> numbers = tensor.to_doubles();
  return std::ranges::any_of(numbers, kind);
}
bool is_nan(double x) { return std::isnan(x); }
bool is_endless(double x) { return !std::isfinite(x); }
bool overflows(const Tensor& half) {
  return has(half, [](double x) { return is_endless(x) || std::abs(x) >= largest(DType::f16); });
}

/// The standard Attention hides a key by the lowest number: of rows of such alone ONNX Runtime 1.31 makes zeros, 1.27
/// and the definition means.
bool hides_rows(const Node& attention, const Values& values) {
  const auto mask = values.find(attention.input(3));
  if (mask == values.end() || mask->second.dtype() != DType::f32) return false;
  const std::span<const float> numbers = mask->second.as<float>();
  return std::ranges::find(numbers, std::numeric_limits<float>::lowest()) != numbers.end();
}

/// A computed extent comes out as 0, which Reshape takes for "as it was", and it was another.
bool copies_by_chance(const Node& reshape, const Values& values) {
  const auto x = values.find(reshape.input(0)), target = values.find(reshape.input(1));
  if (x == values.end() || target == values.end() || reshape.attrs.integer("allowzero") != 0) return false;
  const Ints extents = target->second.to_ints();
  for (std::size_t i = 0; i < std::min(extents.size(), x->second.dims().size()); ++i)
    if (extents[i] == 0 && x->second.dims()[i] != 0) return true;
  return false;
}

/// A target that is computed and holds 0 and -1 with allowzero, which ONNX forbids: a file that says so does not load.
bool mixes_zero_and_rest(const Node& reshape, const Values& values) {
  const auto target = values.find(reshape.input(1));
  if (target == values.end() || reshape.attrs.integer("allowzero") == 0) return false;
  return passes::refuses_empty(target->second.to_ints());
}

/// It takes the largest or the smallest of its numbers.
bool picks(const Node& node) {
  for (const char* op : {"ReduceMax", "ReduceMin", "ArgMax", "ArgMin", "TopK", "MaxPool", "GlobalMaxPool", "Hardmax"})
    if (node.is(op)) return true;
  return false;
}

/// It sums products of its operands.
bool sums_products(const Node& node) {
  for (const char* op : {"Conv", "ConvTranspose", "MatMul", "Gemm", "Einsum"})
    if (node.is(op)) return true;
  return false;
}

/// A convolution with a border around its image whose weights are not finite: ONNX Runtime multiplies zeros that it
/// puts there, which gives NaN, and no definition says that anything outside is multiplied.
bool multiplies_outside(const Node& conv, const Values& values) {
  const auto w = values.find(conv.input(1));
  const bool bordered = !passes::explicit_pads(conv) ||
                        std::ranges::any_of(conv.attrs.ints("pads", {}), [](std::int64_t pad) { return pad != 0; });
  return bordered && w != values.end() && has(w->second, is_endless);
}

bool is_nothing(const Value* value, const Values& values) {
  const auto found = values.find(value);
  return found != values.end() && found->second.elements() == 0;
}

/// Its inference in opset 10 lets an extent that has a name stand, and ONNX Runtime puts into one buffer what has the
/// same names.
bool misses_cut(const Node& slice, const Values& values) {
  const auto x = values.find(slice.input(0)), y = values.find(slice.output());
  if (x == values.end() || y == values.end() || !slice.input(0)->shape().has_rank()) return false;
  const Shape& shape = slice.input(0)->shape();
  for (std::size_t i = 0; i < shape.rank(); ++i)
    if (!shape[i].known() && x->second.dims()[i] != y->second.dims()[i]) return true;
  return false;
}

/// What one node did that its definition does not say.
std::string open_at(const Node& node, const Values& values) {
  const auto result = values.find(node.output());
  if (result == values.end()) return "";
  const std::optional<Dims> dims = defined(node, values);
  if (dims && *dims != result->second.dims())
    return "ONNX Runtime gives " + node.op() + " of nothing a shape of its own";
  if (node.is("ReduceMean") && result->second.elements() > 0 && is_nothing(node.input(0), values))
    return "ONNX does not define the mean of nothing";
  if (node.is("Concat") && joins_unlike(node, values)) return "ONNX Runtime joins what has no elements with anything";
  const auto x = values.find(node.input(0));
  if (node.is("PRelu") && x != values.end() && x->second.dims() != result->second.dims())
    return "ONNX Runtime takes slopes of PRelu that do not broadcast to its operand";
  if (picks(node) && x != values.end() && has(x->second, is_nan))
    return "NaN is the largest or not, as its place has it";
  if (node.is("MaxPool") && x != values.end() && has(x->second, [](double v) { return v == -INFINITY; }))
    return "the largest of nothing but -infinity is that or the lowest number, as the window lies";
  if (node.is("Attention") && hides_rows(node, values)) return "whole rows may be hidden by the lowest number";
  if (node.is("Reshape") && !node.input(1)->constant() && copies_by_chance(node, values))
    return "an extent that comes out as 0 is another one";
  if (node.is("Reshape") && mixes_zero_and_rest(node, values)) return "ONNX forbids 0 beside -1 with allowzero";
  if (node.is("STFT") && frameless(node, values)) return "no frame fits into the signal";
  const bool endless = std::ranges::any_of(node.inputs(), [&](const Value* input) {
    const auto found = values.find(input);
    return found != values.end() && has(found->second, is_endless);
  });
  if (!endless && sums_products(node) && has(result->second, is_endless))
    return "a sum that overflows on the way is infinite or NaN as its order has it";
  if (endless && leaves_nan_open(node)) return "nobody promises what " + node.op() + " makes of NaN and infinities";
  if (node.is("Conv") && multiplies_outside(node, values))
    return "nobody says that weights which are not finite are multiplied with what lies outside of the image";
  if (endless && adds_parallel_convolutions(node)) return "summed weights make other sums of infinities";
  if (node.is("InstanceNormalization") && node.input(1) && values.contains(node.input(1)) &&
      has(values.at(node.input(1)), is_endless))
    return "ONNX Runtime multiplies an endless scale with the mean first";
  if (result->second.dtype() != DType::f16) return "";
  const auto no_input = [&](bool (*is)(const Tensor&)) {
    return std::ranges::none_of(node.inputs(), [&](const Value* input) {
      const auto found = values.find(input);
      return found != values.end() && found->second.dtype() == DType::f16 && !input->constant() && is(found->second);
    });
  };
  // The lowest number itself is no overflow: masks hold it.
  const auto endless_half = [](const Tensor& half) { return has(half, is_endless); };
  const bool fresh = overflows(result->second) && no_input(overflows);
  return fresh || (endless_half(result->second) && no_input(endless_half)) ? kOverflow : "";
}

/// Every value of the main graph for these inputs, as far as the runtime gives it.
Values values_of(Runtime& runtime, const Model& model, const Feeds& feeds) {
  Model open = model;
  Graph& graph = open.graph();
  for (const auto& node : graph.nodes())
    for (Value* output : node->outputs())
      if (output && output->type.is_tensor() && output->dtype() != DType::undefined && !output->is_graph_output())
        graph.add_output(*output);
  for (Value* output : graph.outputs()) output->type.shape = {};
  const auto session = open_session(runtime, open, {.threads = 1, .optimize = false});
  const std::vector<Tensor> results = session->run(feeds);
  Values values;
  for (const Value* constant : model.graph().initializers()) values[constant] = *constant->initializer();
  for (const auto& [name, tensor] : feeds)
    if (const Value* input = model.graph().find(name)) values[input] = tensor;
  for (std::size_t i = 0; i < results.size() && i < graph.outputs().size(); ++i)
    if (const Value* value = model.graph().find(graph.outputs()[i]->name());
        value && results[i].dtype() != DType::undefined)
      values[value] = results[i];
  return values;
}

/// Puts the branches that were taken in place of their If; false where there is none, or nobody knows which.
bool take_branches(Model& model, const Values& values) {
  bool taken = false;
  for (const auto& node : model.graph().nodes()) {
    const auto condition = node->is("If") ? values.find(node->input(0)) : values.end();
    if (condition == values.end() || condition->second.elements() != 1) continue;
    model.graph().set_input(*node, 0, &model.graph().add_constant(condition->second));
    taken = true;
  }
  const Options options;
  Context context{.model = model, .options = options, .target = options.target, .runtime = nullptr};
  return taken && passes::inline_branches().run(model.graph(), context) > 0;
}

bool has_inner(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const auto& node) {
    return std::ranges::any_of(node->subgraphs(), [](const Graph* inner) {
      return has_inner(*inner) || std::ranges::any_of(inner->nodes(), [](const auto& one) {
               return reduces(*one) || one->is("MatMul") || one->is("Concat") || one->is("STFT");
             });
    });
  });
}

/// Adds what a graph computes from such values, and from such ops.
void spread(const Graph& graph, std::set<const Value*>& open) {
  for (const auto& node : graph.nodes()) {
    const std::vector<Graph*> inner = node->subgraphs();
    for (const Graph* one : inner) spread(*one, open);
    const auto is_open = [&](const Value* value) { return value && open.contains(value); };
    const bool within = std::ranges::any_of(inner, [&](const Graph* one) {
      return std::ranges::any_of(one->outputs(), is_open);  // what a branch gives out
    });
    if (within || std::ranges::any_of(node->inputs(), is_open) || (leaves_nan_open(*node) && !node->is("If")))
      open.insert(node->outputs().begin(), node->outputs().end());
  }
}

bool is_recurrent(const Graph& graph, bool standard_only) {
  return std::ranges::any_of(graph.nodes(), [&](const auto& node) {
    const bool layer =
        node->is("RNN") || node->op().find("LSTM") != std::string::npos || node->op().find("GRU") != std::string::npos;
    return (layer && (node->domain().empty() || !standard_only)) ||
           std::ranges::any_of(node->subgraphs(),
                               [&](const Graph* inner) { return is_recurrent(*inner, standard_only); });
  });
}

/// Zeros in place of NaN and infinities; nothing where there are none.
std::optional<Feeds> calmed(Feeds feeds) {
  bool changed = false;
  for (auto& [name, tensor] : feeds) {
    if (!has(tensor, is_endless)) continue;
    const std::vector<double> numbers = tensor.to_doubles();
    tensor = Tensor::make(tensor.dtype(), tensor.dims(), [&, dtype = tensor.dtype()](std::byte* out) {
      for (std::size_t i = 0; i < numbers.size(); ++i)
        store_element(dtype, out, static_cast<std::int64_t>(i), is_endless(numbers[i]) ? 0 : numbers[i]);
    });
    changed = true;
  }
  return changed ? std::optional(std::move(feeds)) : std::nullopt;
}

/// What no definition of ONNX says about these inputs.
std::string reason(Runtime& runtime, const Model& original, const Feeds& feeds) {
  try {
    Model model = inline_functions(original);
    infer_types(model);
    Values values = values_of(runtime, model, feeds);
    while (take_branches(model, values)) {
      infer_types(model);
      values = values_of(runtime, model, feeds);
    }
    bool empty = false;
    for (const auto& [value, tensor] : values) empty = empty || (tensor.elements() == 0 && !value->constant());
    for (const auto& node : model.graph().nodes()) {
      if (std::string why = open_at(*node, values); !why.empty()) return why;
      if (model.opset() == 10 && node->is("Slice") && misses_cut(*node, values))
        return "ONNX takes what a Slice of opset 10 leaves for as long as before";
    }
    return empty && has_inner(model.graph()) ? "of nothing, and within a loop, where nobody looks" : "";
  } catch (const Error&) {
    return "";  // no excuse then
  }
}

}  // namespace

bool dies_of_empty_batches(const Model& model, bool plugin) {
  return is_recurrent(model.graph(), plugin) || std::ranges::any_of(model.functions, [&](const Function& function) {
           return !(plugin && function.domain == kDomain) && is_recurrent(*function.body, plugin);
         });
}

std::set<std::string> with_open_kinds(const Model& original) {
  const Model model = inline_functions(original);
  std::set<const Value*> open;
  spread(model.graph(), open);
  std::set<std::string> names;
  for (const Value* output : model.graph().outputs())
    if (open.contains(output)) names.insert(output->name());
  return names;
}

std::string left_open(Runtime& runtime, const Model& original, const Feeds& feeds) {
  std::string why = reason(runtime, original, feeds);
  const std::optional<Feeds> calm = why.empty() ? calmed(feeds) : std::nullopt;
  if (calm && reason(runtime, original, *calm) == kOverflow) why = kOverflow;  // beside those that were fed
  return why;
}

}  // namespace modelflow
