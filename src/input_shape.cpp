// Shapes that the user gives for inputs, parsed and checked.
#include "src/input_shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "modelflow/modelflow.h"

namespace modelflow {
namespace {

/// The inputs that wait for data, as a message lists them.
std::string listed(const std::vector<const Value*>& inputs) {
  std::string text;
  for (const Value* input : inputs)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", input->name(), input->shape().str());
  return text.empty() ? "none" : text;
}

}  // namespace

bool fits(const Shape& shape, const Dims& dims) {
  if (!shape.has_rank()) return true;
  if (shape.rank() != dims.size()) return false;
  for (std::size_t axis = 0; axis < dims.size(); ++axis)
    if (shape[axis].known() && shape[axis].value() != dims[axis]) return false;
  return true;
}

bool leaves_extents_open(const Model& model) {
  return std::ranges::any_of(model.graph().inputs(), [](const Value* input) {
    return input->type.is_tensor() && !input->is_initializer() && !input->shape().known();
  });
}

Model for_input_shapes(const Model& model, const std::map<std::string, Dims>& given) {
  Model bound = model;
  for (Value* input : bound.graph().inputs()) {
    const auto found = given.find(input->name());
    if (found == given.end() || !input->type.is_tensor() || !fits(input->shape(), found->second)) continue;
    input->type = Type::tensor(input->dtype(), Shape::of(found->second));
  }
  try {
    infer_types(bound);
  } catch (const Error&) {
    return model;
  }
  return bound;
}

void check_input_shapes(const Model& model, const std::map<std::string, Dims>& given) {
  std::vector<const Value*> inputs;
  for (const Value* input : model.graph().inputs())
    if (!input->is_initializer()) inputs.push_back(input);
  for (const auto& [name, dims] : given) {
    const auto found = std::ranges::find(inputs, name, [](const Value* input) { return input->name(); });
    if (found == inputs.end())
      throw Error(ErrorKind::usage,
                  fmt::format("input shapes: the model has no input '{}'; its inputs: {}", name, listed(inputs)));
    if (!fits((*found)->shape(), dims))
      throw Error(ErrorKind::usage, fmt::format("input shapes: '{}' cannot be [{}], the model says {}", name,
                                                fmt::join(dims, ","), (*found)->shape().str()));
  }
}

std::pair<std::string, Dims> parse_input_shape(std::string_view text) {
  const auto wrong = [&](std::string_view what) {
    return Error(ErrorKind::usage, fmt::format("input shape '{}': {}, expected NAME:1,3,224,224", text, what));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) throw wrong("no name");
  Dims dims;
  const std::string_view list = text.substr(colon + 1);
  for (std::size_t at = 0; !list.empty() && at <= list.size();) {
    const std::string_view part = list.substr(at, list.find(',', at) - at);
    std::int64_t dim = -1;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), dim);
    if (error != std::errc() || end != part.data() + part.size() || dim < 0)
      throw wrong(fmt::format("'{}' is not a dim", part));
    dims.push_back(dim);
    at += part.size() + 1;
  }
  return {std::string(text.substr(0, colon)), dims};
}

}  // namespace modelflow
