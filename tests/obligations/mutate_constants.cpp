// Constants: other numbers, other ranks and types, and values that are not constant after all.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/obligations/mutation.h"

namespace modelflow::obligations {
namespace {

using Values = std::vector<double>;
using Change = std::function<void(Values&, Dims&, DType&)>;

bool numeric(const Tensor& tensor) {
  return tensor.dtype() != DType::string && bits(tensor.dtype()) >= 8 && tensor.elements() <= 4096;
}

struct Place {
  const Model& model;
  const Value& value;
  Mutations& out;

  void add(const std::string& what, const Change& change) const {
    const Model* original = &model;
    const Value* place = &value;
    out.push_back({"constant " + value.name() + ": " + what, [=](Model& copy) {
                     Value& same = same_value(copy, *original, *place);
                     const Tensor& tensor = *same.initializer();
                     Values values = tensor.to_doubles();
                     Dims dims = tensor.dims();
                     DType dtype = tensor.dtype();
                     change(values, dims, dtype);
                     same.graph().set_initializer(same, encode(dtype, dims, values));
                   }});
  }
  void each(const std::string& what, double (*change)(double)) const {
    add(what, [=](Values& values, Dims&, DType&) { std::ranges::transform(values, values.begin(), change); });
  }
  void first(const std::string& what, double (*change)(double)) const {
    add("first " + what, [=](Values& values, Dims&, DType&) {
      if (!values.empty()) values.front() = change(values.front());
    });
  }
};

void floats(const Place& place) {
  place.each("half a last digit more", [](double v) { return v + 0.6 * std::abs(v) * 0x1p-23; });
  place.each("times 1.0003", [](double v) { return v * 1.0003; });  // what exporters round is within 1e-4
  place.each("times 1.001", [](double v) { return v * 1.001; });
  if (place.value.initializer()->elements() == 1) place.each("times 1e25", [](double v) { return v * 1e25; });
  place.each("negated", [](double v) { return -v; });
  place.each("0", [](double) { return 0.0; });
  place.each("-0", [](double) { return -0.0; });
  place.each("1", [](double) { return 1.0; });
  place.each("-inf", [](double) { return -std::numeric_limits<double>::infinity(); });
  place.each("NaN", [](double) { return std::nan(""); });
  place.first("plus a half", [](double v) { return v + 0.5; });
  place.first("inf", [](double) { return std::numeric_limits<double>::infinity(); });
  place.first("0", [](double) { return 0.0; });
}

void integers(const Place& place, std::size_t count) {
  for (std::size_t i = 0; i < std::min<std::size_t>(count, 8); ++i)
    for (const auto& [what, change] :
         std::initializer_list<std::pair<const char*, double (*)(double)>>{{"+ 1", [](double v) { return v + 1; }},
                                                                           {"- 1", [](double v) { return v - 1; }},
                                                                           {"negated", [](double v) { return -v; }},
                                                                           {"= 0", [](double) { return 0.0; }},
                                                                           {"= -1", [](double) { return -1.0; }},
                                                                           {"= 1", [](double) { return 1.0; }},
                                                                           {"= 2", [](double) { return 2.0; }},
                                                                           {"huge", [](double) { return 9e18; }},
                                                                           {"lowest", [](double) { return -9.3e18; }}})
      place.add("[" + std::to_string(i) + "] " + what, [=, change = change](Values& values, Dims&, DType&) {
        if (i < values.size()) values[i] = change(values[i]);
      });
  place.add("in int32", [](Values&, Dims&, DType& dtype) { dtype = DType::i32; });
}

void forms(const Place& place) {
  place.add("with a first axis of 1", [](Values&, Dims& dims, DType&) { dims.insert(dims.begin(), 1); });
  place.add("with a last axis of 1", [](Values&, Dims& dims, DType&) { dims.push_back(1); });
  place.add("as scalar", [](Values& values, Dims& dims, DType&) { values.resize(1), dims.clear(); });
  place.add("one element", [](Values& values, Dims& dims, DType&) { values.resize(1), dims = {1}; });
  place.add("none", [](Values& values, Dims& dims, DType&) { values.clear(), dims = {0}; });
  place.add("one more", [](Values& values, Dims& dims, DType&) {
    if (dims.size() != 1 || values.empty()) return;
    values.push_back(values.front());
    ++dims[0];
  });
  place.add("one fewer", [](Values& values, Dims& dims, DType&) {
    if (dims.size() != 1 || values.empty()) return;
    values.pop_back();
    --dims[0];
  });
  place.add("reversed", [](Values& values, Dims&, DType&) { std::reverse(values.begin(), values.end()); });
  place.add("the other way round", [](Values&, Dims& dims, DType&) { std::reverse(dims.begin(), dims.end()); });
  place.add("spread", [](Values& values, Dims& dims, DType&) {  // one number, written for every place
    if (values.size() != 1) return;
    dims = {2};
    values.push_back(values.front());
  });
  place.add("not all the same", [](Values& values, Dims& dims, DType&) {
    if (values.size() == 1) dims = {2}, values.push_back(values.front() + 1);
  });
}

void sources(const Place& place) {
  const Model* original = &place.model;
  const Value* value = &place.value;
  if (&value->graph() != &original->graph()) return;
  // An Identity of an input that has the constant as its default: known to nobody before it runs.
  place.out.push_back({"constant " + value->name() + " is the default of an input", [=](Model& copy) {
                         Value& same = same_value(copy, *original, *value);
                         const Tensor tensor = *same.initializer();
                         Value& input = copy.graph().add_input(copy.graph().unique_name("given"),
                                                               Type::tensor(tensor.dtype(), Shape::of(tensor.dims())));
                         copy.graph().set_initializer(input, tensor);
                         copy.graph().replace(same, input);
                         copy.graph().erase(same);
                       }});
  place.out.push_back({"constant " + value->name() + " is an input", [=](Model& copy) {
                         Value& same = same_value(copy, *original, *value);
                         const Tensor& tensor = *same.initializer();
                         Value& input = copy.graph().add_input(copy.graph().unique_name("given"),
                                                               Type::tensor(tensor.dtype(), Shape::of(tensor.dims())));
                         copy.graph().replace(same, input);
                         copy.graph().erase(same);
                       }});
}

}  // namespace

void mutate_constants(const Model& model, Mutations& out) {
  for (const Graph* graph : all_graphs(model))
    for (const Value* value : graph->initializers()) {
      const Tensor& tensor = *value->initializer();
      if (value->is_graph_input() || !numeric(tensor)) continue;
      const Place place{model, *value, out};
      if (is_float(tensor.dtype()))
        floats(place);
      else if (tensor.dtype() != DType::boolean)
        integers(place, static_cast<std::size_t>(tensor.elements()));
      forms(place);
      sources(place);
    }
}

}  // namespace modelflow::obligations
