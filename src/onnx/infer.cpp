// Types and shapes of values from the operators that make them: schemas, function bodies, symbols.
#include <onnx/defs/schema.h>

#include <algorithm>
#include <deque>

#include "modelflow/error.h"
#include "modelflow/function.h"
#include "modelflow/kernel.h"
#include "modelflow/pass.h"
#include "src/emit/bind.h"
#include "src/onnx/corrections.h"
#include "src/onnx/derived.h"
#include "src/onnx/extent_text.h"
#include "src/onnx/floor.h"
#include "src/onnx/held_dims.h"
#include "src/onnx/infer_context.h"
#include "src/onnx/infer_node.h"
#include "src/onnx/symbolic.h"
#include "src/onnx/types.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace modelflow {
namespace {

constexpr int kMaxCallDepth = 16;  // deeper calls stay untyped

/// Anything but an unknown extent, or one that only has a name.
bool says_more(const Dim& dim) {
  return !dim.unknown() && !has_open_quotient(dim) &&
         std::ranges::none_of(dim.symbols(), [](const std::string& symbol) { return symbol.starts_with(kUnnamed); });
}

// Which of two facts about one dim to keep: what the file says of a value counts where inference says nothing. Files
// are wrong where somebody gave an input a symbol and left the numbers behind it, or made them up; runtimes take no
// notice. Of a quotient that is a floor for all but small numbers only, symbols of the file count as well.
// `keep_numbers`: both were inferred.
Dim merged(const Dim& old, const Dim& found, bool keep_numbers) {
  if (found.unknown() || (has_open_quotient(found) && !old.known() && says_more(old))) return old;
  return keep_numbers && old.known() ? old : found;
}

bool same(const Dim& a, const Dim& b) { return a == b || (a.unknown() && b.unknown()); }

bool merge_shape(Shape& shape, const Shape& found, bool keep_numbers = false) {
  if (!found.has_rank()) return false;
  if (!shape.has_rank() || shape.rank() != found.rank()) {
    shape = found;
    return true;
  }
  bool changed = false;
  std::vector<Dim> dims = shape.dims();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    Dim dim = merged(dims[i], found[i], keep_numbers);
    changed = changed || !same(dim, dims[i]);
    dims[i] = std::move(dim);
  }
  if (changed) shape = std::move(dims);
  return changed;
}

// The name of a value, in a subgraph with where that stands: branches beside each other may use the same names.
std::string full_name(const Value& value) {
  std::string name = value.name();
  const Graph* graph = &value.graph();
  while (const Node* owner = graph->parent()) {
    const std::vector<Graph*> inside = owner->subgraphs();
    const auto outputs = owner->outputs();
    const auto first = std::ranges::find_if(outputs, [](const Value* output) { return output != nullptr; });
    name += "@" + std::to_string(std::ranges::find(inside, graph) - inside.begin()) + ":" +
            (first == outputs.end() ? owner->name : (*first)->name());
    graph = &owner->graph();
  }
  return name;
}

/// A number, or made of symbols that the file gives.
bool is_told(const Dim& dim) { return !dim.unknown() && !is_derived(dim); }

bool is_told(const Node& node) {
  const auto told = [](const Value* value) {
    if (!value) return true;
    const Type& type = value->type;
    return type.is_tensor() && type.dtype != DType::undefined && type.shape.has_rank() &&
           std::ranges::all_of(type.shape.dims(), [](const Dim& dim) { return is_told(dim); });
  };
  return node.subgraphs().empty() && std::ranges::all_of(node.outputs(), told);
}

// A symbol made from the value's name: the same in every sweep.
void name_dims(Value& value) {
  if (!value.type.is_tensor() || !value.shape().has_rank()) return;
  std::vector<Dim> dims = value.shape().dims();
  bool changed = false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!dims[i].unknown()) continue;
    const std::string key = full_name(value) + ":" + std::to_string(i);
    dims[i] = Dim::symbol(std::string(kUnnamed) + std::to_string(XXH3_64bits(key.data(), key.size())));
    changed = true;
  }
  if (changed) value.type.shape = std::move(dims);
}

// libonnx complains of a missing type as of a wrong one, and of results of subgraphs in the same way.
bool knows_its_inputs(const Node& node) {
  const auto& inputs = node.inputs();
  return node.subgraphs().empty() && std::none_of(inputs.begin(), inputs.end(), [](const Value* input) {
           return input && (input->type.kind == Type::Kind::unknown ||
                            (input->type.is_tensor() && input->dtype() == DType::undefined));
         });
}

// libonnx puts the class of its error in brackets before what it says.
std::string without_class(std::string_view message) {
  const auto end = message.starts_with('[') ? message.find("] ") : std::string_view::npos;
  return std::string(end == std::string_view::npos ? message : message.substr(end + 2));
}

// Where libonnx gives up on symbols.
void complete(Type& type, const Shape& shape) {
  if (!shape.has_rank() || type.kind == Type::Kind::other) return;
  if (!type.shape.has_rank()) {
    type.shape = shape;
    return;
  }
  if (type.shape.rank() == shape.rank()) merge_shape(type.shape, shape, true);
}

}  // namespace

bool merge_type(Type& type, const Type& found, bool declared) {
  if (found.kind == Type::Kind::unknown) return false;
  if (type.kind == Type::Kind::unknown) {
    type = found;
    return true;
  }
  if (type.kind != found.kind) {
    if (!declared) type = found;
    return !declared;
  }
  if (!type.is_tensor()) return false;
  bool changed = merge_shape(type.shape, found.shape);
  bool better = found.dtype != DType::undefined && found.dtype != type.dtype;
  if (better && (!declared || type.dtype == DType::undefined)) {
    type.dtype = found.dtype;
    changed = true;
  }
  return changed;
}

void Inference::settle(Type& type) const {
  if (!type.is_tensor()) return;
  if (!model_.settled.empty()) change_dims(type, [&](const Dim& dim) { return settled_extent(dim, model_.settled); });
  if (!bounds_.empty()) change_dims(type, [&](const Dim& dim) { return bounds_.without(dim); });
}

bool Inference::run(Node& node) {
  std::vector<Type> types;
  try {
    types = infer(node);
  } catch (const std::exception&) {
    // An odd but loadable model: what is known stays, the rest stays unknown.
  }
  types.resize(node.outputs().size());
  try {
    std::vector<Shape> shapes = symbolic_shapes(node, values_);
    const bool disputed = disputed_shapes(node, values_);
    for (std::size_t i = 0; i < shapes.size() && i < types.size(); ++i) {
      if (!types[i].is_tensor()) continue;
      if (disputed && types[i].shape.has_rank()) types[i].shape = std::vector<Dim>(types[i].shape.rank());
      complete(types[i], shapes[i]);
    }
  } catch (const Error&) {
    // attributes of unexpected types
  }
  bool changed = false;
  for (std::size_t i = 0; i < types.size(); ++i) {
    Value* value = node.outputs()[i];
    settle(types[i]);
    if (value && !value->is_graph_output()) settle(value->type);
    if (value) changed |= merge_type(value->type, types[i], value->is_graph_output() && !value->graph().parent());
    if (value && naming_) name_dims(*value);
  }
  for (Graph* inner : node.subgraphs()) {
    if (!visited_.count(inner)) run(*inner);
  }
  return changed;
}

void Inference::run(Graph& graph) {
  if (naming_)
    for (Value* input : graph.inputs()) name_dims(*input);
  for (const auto& node : graph.nodes())
    if (!only_open_ || !is_told(*node)) run(*node);
}

std::vector<Type> Inference::infer(Node& node) {
  if (node.domain() == kDomain && find_fused_op(node.op())) return infer_fused(node);
  if (const Function* function = find_function(model_, node)) return infer_function(node, *function);
  return infer_standard(node);
}

std::vector<Type> Inference::infer_standard(Node& node) {
  auto import = opsets_.find(node.domain());
  if (import == opsets_.end()) return {};
  // Axes from behind are taken in every opset, the first schemas do not know them.
  const bool axes = node.is("Squeeze") || node.is("Unsqueeze");
  const int version = std::max(static_cast<int>(import->second), axes ? 11 : 0);
  const auto* schema = proto::OpSchemaRegistry::Schema(node.op(), version, node.domain());
  // Functions by their body say nothing of types: these before opset 16, where the strict comparisons do, and groups
  // from 21 on, where instances do.
  if (node.is("GroupNormalization")) schema = proto::OpSchemaRegistry::Schema("InstanceNormalization", version, "");
  if (node.is("GreaterOrEqual") || node.is("LessOrEqual"))
    schema = proto::OpSchemaRegistry::Schema(node.is("GreaterOrEqual") ? "Greater" : "Less", version, "");
  if (!schema || !schema->has_type_and_shape_inference_function()) return {};
  // libonnx reads in front of the extents there.
  if (node.is("GatherND") && node.attrs.integer("batch_dims") < 0) return {};
  NodeContext context(node, *this, *schema);
  try {
    schema->GetTypeAndShapeInferenceFunction()(context);
  } catch (const std::exception& error) {
    // what was inferred before the contradiction (mostly the dtype) is still right
    if (contradiction_.empty() && knows_its_inputs(node))
      contradiction_ = node.label() + ": " + without_class(error.what());
  }
  std::vector<Type> types;
  for (std::size_t i = 0; i < context.getNumOutputs(); ++i) {
    Type type = proto::read_type(*context.getOutputType(i));
    if (type.is_tensor()) type.proto.clear();
    if (type.is_tensor() && type.dtype == DType::undefined) type = {};
    types.push_back(std::move(type));
  }
  correct(node, values_, types);
  return types;
}

std::vector<Type> Inference::infer_fused(const Node& node) {
  Call call = call_of(node);
  for (Operand& output : call.outputs) output = {output.name, DType::undefined, {}, nullptr};
  std::deque<Tensor> sizes;  // that follow from other extents are as good as constant ones
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i].constant || call.inputs[i].dtype != DType::i64) continue;
    const auto numbers = values_.numbers(node.input(i));
    if (!numbers || call.inputs[i].shape.rank() != 1) continue;
    sizes.push_back(Tensor::of<std::int64_t>({std::ssize(*numbers)}, *numbers));
    call.inputs[i].constant = &sizes.back();
  }
  if (!find_fused_op(node.op())->infer(call)) return {};
  std::vector<Type> types;
  for (const Operand& output : call.outputs) {
    types.push_back(output.dtype == DType::undefined ? Type{} : Type::tensor(output.dtype, output.shape));
  }
  return types;
}

std::vector<Type> Inference::infer_function(const Node& node, const Function& function) {
  if (depth_ >= kMaxCallDepth) return {};
  auto body = function.body->clone();
  bind_attributes(*body, node.attrs, function.defaults);
  for (std::size_t i = 0; i < body->inputs().size(); ++i) {
    if (const Value* actual = node.input(i)) body->inputs()[i]->type = actual->type;
  }
  Inference inner(model_, function.opsets, depth_ + 1);
  inner.run(*body);
  if (contradiction_.empty() && !inner.contradiction_.empty())
    contradiction_ = node.label() + ": in its body, " + inner.contradiction_;
  std::vector<Type> types;
  for (const Value* value : body->outputs()) types.push_back(value->type);
  return types;
}

bool infer_types(Node& node, const Model& model) { return Inference(model).run(node); }

namespace {

// A convolution may stand behind what is bounded because of the same extent: it is told in a second sweep. Extents that
// only the file declares tell nothing: the first sweep over a file has none.
void sweep(Model& model, bool only_open) {
  for (const bool last : {false, true}) {
    Inference inference(model);
    inference.name_unknown();
    if (only_open) inference.only_open();
    if (only_open || last) inference.drop_bounds(NeedlessBounds(model.graph()));
    inference.run(model.graph());
    if (last || !NeedlessBounds(model.graph()).stand_in(model.graph())) return;
  }
}

}  // namespace

// Unknown extents get a symbol each, so that "the same unknown" can be told from "another unknown" (residuals of models
// whose inputs are all -1). The writer keeps the declared types of inputs and outputs.
void infer_types(Model& model) { sweep(model, false); }

void refresh_types(Model& model) { sweep(model, true); }

}  // namespace modelflow
