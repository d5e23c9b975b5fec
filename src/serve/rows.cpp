// Inputs of several rows, and whether a model treats each row by itself.
#include "src/serve/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace modelflow {
namespace {

/// Rows that mix are off by as much as their values; what rounding makes of another order of sums is far less.
constexpr double kTolerance = 1e-3;

/// One row of a tensor of two.
Tensor row_of(const Tensor& tensor, std::size_t row) {
  Dims dims = tensor.dims();
  dims[0] = 1;
  const std::size_t size = byte_count(tensor.dtype(), dims);
  return Tensor::make(tensor.dtype(), dims,
                      [&](std::byte* out) { std::memcpy(out, tensor.data() + row * size, size); });
}

bool can_be_cut(const Tensor& tensor) {
  return tensor.rank() > 0 && tensor.dims()[0] == 2 && tensor.dtype() != DType::string && bits(tensor.dtype()) % 8 == 0;
}

bool agree(const Tensor& together, const Tensor& alone) {
  if (together.dims() != alone.dims() || together.dtype() != alone.dtype()) return false;
  if (!is_float(together.dtype())) return together.same_content(alone);
  const std::vector<double> a = together.to_doubles(), b = alone.to_doubles();
  double largest = 0, off = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(a[i]) != std::isfinite(b[i])) return false;
    if (!std::isfinite(a[i])) continue;
    largest = std::max(largest, std::abs(a[i]));
    off = std::max(off, std::abs(a[i] - b[i]));
  }
  return off <= kTolerance * largest;
}

}  // namespace

std::string why_no_rows(const Model& model) {
  const auto why = [&](const std::vector<Value*>& values) -> std::string {
    for (const Value* value : values) {
      if (value->is_initializer()) continue;  // an input with a default
      const Type& type = value->type;
      const bool rows = type.is_tensor() && type.shape.has_rank() && type.shape.rank() > 0 && !type.shape[0].known();
      if (!rows) return fmt::format("'{}' does not begin with an axis of any extent", value->name());
    }
    return "";
  };
  const std::string inputs = why(model.graph().inputs());
  return !inputs.empty() ? inputs : why(model.graph().outputs());
}

Feeds with_rows(Session& session, const Model& model, const Feeds& like, std::int64_t rows) {
  Options options;
  for (const auto& [input, tensor] : like) {
    Dims dims = tensor.dims();
    if (!dims.empty()) dims[0] = rows;
    options.input_shapes[input] = dims;
  }
  return typical_feeds(session, model, options);
}

bool rows_are_independent(Session& session, const Feeds& two) {
  for (const auto& [input, tensor] : two)
    if (!can_be_cut(tensor)) return false;
  const std::vector<Tensor> together = session.run(two);
  for (std::size_t row = 0; row < 2; ++row) {
    Feeds one;
    for (const auto& [input, tensor] : two) one[input] = row_of(tensor, row);
    const std::vector<Tensor> alone = session.run(one);
    for (std::size_t i = 0; i < together.size(); ++i)
      if (!can_be_cut(together[i]) || !agree(row_of(together[i], row), alone[i])) return false;
  }
  return true;
}

}  // namespace modelflow
