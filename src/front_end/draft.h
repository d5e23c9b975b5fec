// Front ends are written op by op with this.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "modelflow/graph.h"

namespace modelflow {

class Draft {
 public:
  explicit Draft(Graph& graph) : graph_(graph) {}

  Graph& graph() const { return graph_; }
  Value* op(const char* name, std::vector<Value*> inputs, Attrs attrs = {}) const {
    return graph_.add(name, std::move(inputs), {.attrs = std::move(attrs)}).output();
  }
  Value& number(double value) const { return graph_.add_constant(Tensor::scalar(static_cast<float>(value))); }
  Value& exactly(double value) const { return graph_.add_constant(Tensor::scalar(value)); }  ///< float64
  Value& ints(const Ints& values) const { return list<std::int64_t>(values); }
  template <class T>
  Value& list(const std::vector<T>& values) const {
    const Dims dims = {static_cast<std::int64_t>(values.size())};
    return graph_.add_constant(Tensor::of<T>(dims, std::span<const T>(values)));
  }
  Value* cast(Value* x, DType to) const { return op("Cast", {x}, {{"to", Attr(static_cast<std::int64_t>(to))}}); }

 private:
  Graph& graph_;
};

}  // namespace modelflow
