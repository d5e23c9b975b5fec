// Inputs that become constants, and outputs that are wanted.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "modelflow/compose.h"
#include "modelflow/data.h"
#include "modelflow/pass.h"
#include "src/compose/numbers.h"
#include "src/compose/wording.h"
#include "src/core/nearest.h"
#include "src/input_shape.h"
#include "src/onnx/derived.h"

namespace modelflow {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorKind::usage, why); }

std::size_t input_place(const Model& model, const std::string& name) {
  return place_of(model.graph().inputs(), name, "input", "the model");
}

void check_fits(const Value& input, const Tensor& tensor) {
  const auto differs = [&] {
    refuse(fmt::format("'{}' is {}: {} cannot be bound to it", input.name(), text(input.type),
                       text(Type::tensor(tensor.dtype(), Shape::of(tensor.dims())))));
  };
  if (input.type.kind == Type::Kind::unknown) return;
  if (!input.type.is_tensor() || input.dtype() != tensor.dtype()) differs();
  if (!fits(input.shape(), tensor.dims())) differs();
}

Number number(const std::string& input, std::string_view text) {
  if (text == "true") return 1;
  if (text == "false") return 0;
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    refuse(fmt::format("'{}' for input '{}' is no number", text, input));
  return value;
}

std::vector<Number> numbers_in(const std::string& input, std::string_view text) {
  std::vector<Number> all;
  while (true) {
    const std::size_t comma = text.find(',');
    all.push_back(number(input, text.substr(0, comma)));
    if (comma == std::string_view::npos) return all;
    text.remove_prefix(comma + 1);
  }
}

/// Inner values that become outputs need the types that a file says of outputs.
void tell_types(const Model& model, const std::vector<Value*>& values) {
  Model inferred = model;
  infer_types(inferred);
  for (Value* value : values) {
    Type type = inferred.graph().find(value->name())->type;
    if (!type.is_tensor() || !type.shape.has_rank()) continue;
    std::vector<Dim> dims = type.shape.dims();
    for (Dim& dim : dims)
      if (is_derived(dim)) dim = Dim();
    value->type = Type::tensor(type.dtype, std::move(dims));
  }
}

bool is_read(const Value& input) { return !input.uses().empty() || input.is_graph_output(); }

}  // namespace

Model bind_inputs(Model model, const Feeds& values) {
  Graph& graph = model.graph();
  for (const auto& [name, tensor] : values) {
    const std::size_t place = input_place(model, name);
    Value& input = *graph.inputs()[place];
    check_fits(input, tensor);
    graph.set_initializer(input, tensor);
    input.type = Type::tensor(tensor.dtype(), Shape::of(tensor.dims()));
    graph.remove_input(place);
  }
  return model;
}

namespace {

Tensor parsed(const Value& input, std::string_view text) {
  if (!input.type.is_tensor()) refuse(fmt::format("'{}' is no tensor: it cannot be bound", input.name()));
  if (!input.shape().known() || input.dtype() == DType::string)
    refuse(fmt::format("'{}' is {}: give its value as an array in an .npz file", input.name(),
                       modelflow::text(input.type)));
  const Dims dims = input.shape().values();
  const auto count = static_cast<std::size_t>(element_count(dims));
  std::vector<Number> given = numbers_in(input.name(), text);
  if (given.size() == 1) given.resize(count, given.front());
  if (given.size() != count)
    refuse(
        fmt::format("'{}' is {}: {} numbers cannot fill it", input.name(), modelflow::text(input.type), given.size()));
  try {
    return numbers(input.dtype(), dims, given);
  } catch (const Error& error) {
    throw error.within(fmt::format("input '{}'", input.name()));
  }
}

}  // namespace

Feeds parse_bind(const Model& model, std::string_view text) {
  const auto& inputs = model.graph().inputs();
  for (std::size_t at = text.find('='); at != std::string_view::npos; at = text.find('=', at + 1)) {
    const auto found = std::ranges::find(inputs, text.substr(0, at), &Value::name);
    if (found != inputs.end()) return {{(*found)->name(), parsed(**found, text.substr(at + 1))}};
  }
  if (text.ends_with(".npz")) {
    const std::vector<Feeds> sets = read_feeds(std::string(text));
    return sets.front();
  }
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos)
    refuse(fmt::format("'{}' binds nothing: expected INPUT=NUMBER or FILE.npz", text));
  (void)input_place(model, std::string(text.substr(0, equals)));  // says what there is
  return {};
}

Model keep_outputs(Model model, const std::vector<std::string>& outputs) {
  Graph& graph = model.graph();
  std::set<const Value*> were_read;
  for (const Value* input : graph.inputs())
    if (is_read(*input)) were_read.insert(input);
  std::vector<Value*> wanted, inner;
  for (const std::string& name : outputs) {
    Value* value = graph.find(name);
    const std::vector<std::string> names = names_of(graph.outputs());
    if (!value)
      refuse(fmt::format("the model has no value '{}': its outputs are {}{}", name, listed(names),
                         did_you_mean(name, names)));
    if (std::ranges::find(wanted, value) != wanted.end()) refuse(fmt::format("output '{}' is named twice", name));
    wanted.push_back(value);
    if (!value->is_graph_output()) inner.push_back(value);
  }
  if (wanted.empty()) refuse("a model needs an output");
  if (!inner.empty()) tell_types(model, inner);
  while (!graph.outputs().empty()) graph.remove_output(graph.outputs().size() - 1);
  for (Value* value : wanted) graph.add_output(*value);
  graph.prune();
  for (std::size_t i = graph.inputs().size(); i-- > 0;)  // those that only what is gone has read
    if (!is_read(*graph.inputs()[i]) && were_read.contains(graph.inputs()[i])) graph.remove_input(i);
  return model;
}

Model drop_outputs(Model model, const std::vector<std::string>& outputs) {
  std::vector<Value*> left = model.graph().outputs();
  for (const std::string& name : outputs)
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(place_of(left, name, "output", "the model")));
  const std::vector<std::string> names = names_of(left);
  return keep_outputs(std::move(model), names);
}

}  // namespace modelflow
