// Extents, ranks and symbols of inputs: small ones, none, unknown ones, equal ones.
#include <algorithm>
#include <set>

#include "tests/obligations/mutation.h"

namespace modelflow::obligations {
namespace {

const std::vector<std::int64_t> kSmall = {0, 1, 2, 3};

bool has_shape(const Value& value) { return value.type.is_tensor() && value.shape().has_rank(); }

std::vector<Value*> free_inputs(const Model& model) {
  std::vector<Value*> inputs;
  for (const Graph* graph : all_graphs(model))
    for (Value* value : graph->inputs())
      if (has_shape(*value) && !value->is_initializer()) inputs.push_back(value);
  return inputs;
}

/// The same elements again and again, or the first of them.
Tensor stretched(const Tensor& tensor, const Dims& dims) {
  const std::vector<double> old = tensor.to_doubles();
  std::vector<double> values(static_cast<std::size_t>(element_count(dims)));
  for (std::size_t i = 0; i < values.size() && !old.empty(); ++i) values[i] = old[i % old.size()];
  return encode(tensor.dtype(), dims, values);
}

bool convertible(const Tensor& tensor) { return tensor.dtype() != DType::string && bits(tensor.dtype()) >= 8; }

/// Wherever an extent of `from` may be meant, it is `to`: shapes, weights, and integers that constants hold.
void exchange(Model& model, std::int64_t from, std::int64_t to, bool in_values) {
  for (Value* input : free_inputs(model)) {
    std::vector<Dim> dims = input->shape().dims();
    for (Dim& dim : dims)
      if (dim.known() && dim.value() == from) dim = to;
    input->type.shape = Shape(dims);
  }
  for (Graph* graph : all_graphs(model))
    for (Value* value : graph->initializers()) {
      const Tensor tensor = *value->initializer();
      if (!convertible(tensor)) continue;
      Dims dims = tensor.dims();
      std::replace(dims.begin(), dims.end(), from, to);
      Tensor changed = dims == tensor.dims() ? tensor : stretched(tensor, dims);
      if (in_values && tensor.dtype() == DType::i64) {
        std::vector<double> values = changed.to_doubles();
        std::replace(values.begin(), values.end(), static_cast<double>(from), static_cast<double>(to));
        changed = encode(DType::i64, dims, values);
      }
      graph->set_initializer(*value, changed);
    }
}

std::set<std::int64_t> extents(const Model& model) {
  std::set<std::int64_t> found;
  for (const Value* input : free_inputs(model))
    for (const Dim& dim : input->shape().dims())
      if (dim.known()) found.insert(dim.value());
  for (const Graph* graph : all_graphs(model))
    for (const Value* value : graph->initializers())
      for (const std::int64_t extent : value->initializer()->dims()) found.insert(extent);
  return found;
}

std::set<std::string> symbols(const Model& model) {
  std::set<std::string> found;
  for (const Value* input : free_inputs(model))
    for (const Dim& dim : input->shape().dims())
      for (const std::string& symbol : dim.symbols()) found.insert(symbol);
  return found;
}

void rename_symbol(Model& model, const std::string& symbol, const Dim& by) {
  for (Value* input : free_inputs(model)) {
    std::vector<Dim> dims = input->shape().dims();
    for (Dim& dim : dims)
      if (dim == Dim::symbol(symbol)) dim = by;
    input->type.shape = Shape(dims);
  }
}

void of_all(const Model& model, Mutations& out) {
  for (const std::int64_t from : extents(model)) {
    std::vector<std::int64_t> targets = kSmall;
    targets.push_back(from + 1);
    for (const std::int64_t to : targets) {
      if (to == from) continue;
      const std::string what = "extent " + std::to_string(from) + " -> " + std::to_string(to);
      out.push_back({what, [=](Model& copy) { exchange(copy, from, to, false); }});
      out.push_back({what + ", in constants too", [=](Model& copy) { exchange(copy, from, to, true); }});
    }
    // The feeds know what "was5" was.
    out.push_back({"extent " + std::to_string(from) + " -> a symbol", [=](Model& copy) {
                     for (Value* input : free_inputs(copy)) {
                       std::vector<Dim> dims = input->shape().dims();
                       for (Dim& dim : dims)
                         if (dim.known() && dim.value() == from) dim = Dim::symbol("was" + std::to_string(from));
                       input->type.shape = Shape(dims);
                     }
                   }});
  }
  const std::set<std::string> names = symbols(model);
  for (const std::string& symbol : names) {
    for (const std::int64_t extent : kSmall)
      out.push_back(
          {symbol + " -> " + std::to_string(extent), [=](Model& copy) { rename_symbol(copy, symbol, extent); }});
    for (const std::string& other : names)
      if (other > symbol)
        out.push_back({symbol + " = " + other, [=](Model& copy) { rename_symbol(copy, symbol, Dim::symbol(other)); }});
  }
}

using Change = std::function<void(std::vector<Dim>&)>;

void of_one(const Model& model, const Value& input, const std::string& what, const Change& change, Mutations& out) {
  const Value* place = &input;
  const Model* original = &model;
  out.push_back({"input " + input.name() + ": " + what, [=](Model& copy) {
                   Value& value = same_value(copy, *original, *place);
                   std::vector<Dim> dims = value.shape().dims();
                   change(dims);
                   value.type.shape = Shape(dims);
                   // What bodies say of their own inputs may be wrong from here on.
                   for (Graph* graph : all_graphs(copy))
                     for (Value* inner : graph->inputs())
                       if (graph->parent() && inner != &value) inner->type.shape = {};
                 }});
}

}  // namespace

void mutate_extents(const Model& model, Mutations& out) {
  of_all(model, out);
  for (const Value* input : free_inputs(model)) {
    for (std::size_t axis = 0; axis < input->shape().rank(); ++axis) {
      const std::string place = "axis " + std::to_string(axis);
      for (const std::int64_t extent : kSmall)
        of_one(
            model, *input, place + " is " + std::to_string(extent),
            [=](std::vector<Dim>& dims) { dims[axis] = extent; }, out);
      const Dim symbol = Dim::symbol(input->name() + "_" + std::to_string(axis));
      of_one(
          model, *input, place + " has a symbol of its own", [=](std::vector<Dim>& d) { d[axis] = symbol; }, out);
      of_one(
          model, *input, place + " is unknown", [=](std::vector<Dim>& dims) { dims[axis] = Dim(); }, out);
    }
    if (input->shape().rank() > 0)
      of_one(
          model, *input, "without its first axis", [](std::vector<Dim>& dims) { dims.erase(dims.begin()); }, out);
    of_one(
        model, *input, "with a first axis of 1", [](std::vector<Dim>& d) { d.insert(d.begin(), Dim(1)); }, out);
    of_one(
        model, *input, "with a first axis of 2", [](std::vector<Dim>& d) { d.insert(d.begin(), Dim(2)); }, out);
    of_one(
        model, *input, "with a last axis of 1", [](std::vector<Dim>& dims) { dims.emplace_back(1); }, out);
    of_one(
        model, *input, "as scalar", [](std::vector<Dim>& dims) { dims.clear(); }, out);
  }
}

}  // namespace modelflow::obligations
