// The products and constants that make up a gate of a recurrent cell, read from its body.
#include "passes/normalize/gate_sum.h"

#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

class Reader {
 public:
  Reader(std::int64_t columns, const Iteration& iteration, GateSum& sum, const Value* memory)
      : columns_(columns), it_(iteration), sum_(sum), memory_(memory) {}

  bool read(Value* value, std::int64_t first) {
    value = it_.resolve(value);
    if (!value) return false;
    if (value->constant() || is_row(value)) return bias(value, first, sum_.biases);
    Node* node = value->producer();
    if (!node || !node->domain().empty() || &node->graph() != it_.body) return false;
    if (node->is("Add")) return read(node->input(0), first) && read(node->input(1), first);
    if (node->is("Mul")) return first == 0 && peephole(*node);
    if (node->is("MatMul")) return product(node->input(0), *node, false, first);
    if (node->is("Gemm")) return gemm(*node, first);
    const std::optional<std::int64_t> start = columns_before(*node, value);
    return start && is_wide(*value, first + columns_) && read(node->input(0), first + *start);
  }

 private:
  /// So many columns or more: what has one for all of a gate is no part of a product.
  static bool is_wide(const Value& value, std::int64_t columns) {
    return rank_of(&value) == 2 && value.shape()[1].number().value_or(0) >= columns;
  }

  /// Numbers along the last axis alone.
  static bool is_along_columns(const Value& value) {
    const std::optional<std::size_t> rank = rank_of(&value);
    for (std::size_t i = 0; rank && i + 1 < *rank; ++i)
      if (value.shape()[i].number() != 1) return false;
    return rank.has_value();
  }

  /// A view of a constant, or one part of it.
  bool is_row(const Value* value) const {
    while (value && !value->constant()) {
      const Node* node = value->producer();
      if (!node || !(node->is("Squeeze") || node->is("Unsqueeze") || node->is("Reshape") || node->is("Split")))
        return false;
      value = it_.resolve(node->input(0));
    }
    return value != nullptr;
  }

  /// Of a constant, a view of one, or one row of one.
  bool bias(Value* value, std::int64_t first, std::vector<GateSum::Bias>& to) const {
    std::int64_t skipped = 0, length = -1;
    if (!value->constant() && !is_along_columns(*value)) return false;
    while (!value->constant()) {
      const Node* node = value->producer();
      if (!node || !node->input(0)) return false;
      if (node->is("Split")) {
        // Equal parts of the first axis, one row each.
        const Value* from = it_.resolve(node->input(0));
        if (node->attrs.integer("axis") != 0 || length >= 0 || !from->constant()) return false;
        const Dims& dims = from->constant()->dims();
        if (dims.size() != 2 || dims[0] != static_cast<std::int64_t>(node->outputs().size())) return false;
        length = dims[1];
        skipped = static_cast<std::int64_t>(value->output_index()) * length;
      } else if (!node->is("Squeeze") && !node->is("Unsqueeze") && !node->is("Reshape")) {
        return false;
      }
      value = it_.resolve(node->input(0));
      if (!value) return false;
    }
    const Tensor& tensor = *value->constant();
    if (tensor.dtype() != DType::f32 || tensor.elements() < 1) return false;
    if (length < 0) length = tensor.elements();
    if (tensor.elements() == 1) first = skipped = 0;
    if (length > 1 && (tensor.dims().empty() || length != tensor.dims().back() || first + columns_ > length))
      return false;
    to.push_back({&tensor, skipped + first});
    return true;
  }

  /// The memory of the cell times a constant.
  bool peephole(const Node& node) {
    for (const std::size_t i : {0, 1}) {
      Value* factor = it_.resolve(node.input(1 - i));
      if (memory_ && factor && it_.resolve(node.input(i)) == memory_ && (factor->constant() || is_row(factor)))
        return bias(factor, 0, sum_.peepholes);
    }
    return false;
  }

  bool product(Value* x, const Node& node, bool transposed, std::int64_t first) {
    x = it_.resolve(x);
    const Value* w = it_.resolve(node.input(1));
    const Tensor* weight = w ? w->constant() : nullptr;
    if (!x || !weight || weight->rank() != 2 || weight->dtype() != DType::f32) return false;
    const std::int64_t rows = weight->dims()[transposed ? 1 : 0], width = weight->dims()[transposed ? 0 : 1];
    if (first < 0 || first + columns_ > width) return false;
    return parts(x, {x, weight, transposed, 0, rows, first});
  }

  /// A product with several values side by side is one with each of them.
  bool parts(Value* x, GateSum::Product all) {
    const Node* node = x->producer();
    const bool joined = node && node->is("Concat") && &node->graph() == it_.body &&
                        (node->attrs.integer("axis") == -1 || node->attrs.integer("axis") == 1);
    if (!joined) {
      sum_.products.push_back(all);
      return true;
    }
    std::int64_t row = 0;
    for (Value* input : node->inputs()) {
      if (rank_of(input) != 2 || !input->shape()[1].known()) return false;
      GateSum::Product part = all;
      part.x = it_.resolve(input);
      part.row = row;
      part.rows = input->shape()[1].value();
      row += part.rows;
      sum_.products.push_back(part);
    }
    return row == all.rows;
  }

  bool gemm(const Node& node, std::int64_t first) {
    if (node.attrs.integer("transA") != 0 || node.attrs.number("alpha", 1) != 1) return false;
    if (node.input(2) && (node.attrs.number("beta", 1) != 1 || !read(node.input(2), first))) return false;
    return product(node.input(0), node, node.attrs.integer("transB") != 0, first);
  }

  /// Where in the last axis of its input a part of it begins; nothing for other nodes.
  std::optional<std::int64_t> columns_before(const Node& node, const Value* value) const {
    const auto rank = static_cast<std::int64_t>(rank_of(node.input(0)).value_or(0));
    if (rank != 2) return {};
    if (node.is("Split")) {
      const std::int64_t axis = node.attrs.integer("axis");
      if ((axis != -1 && axis != 1) || !value->shape().has_rank()) return {};
      std::int64_t start = 0;
      for (std::size_t i = 0; i < value->output_index(); ++i) {
        const Value* part = node.output(i);
        if (!part || rank_of(part) != 2 || !part->shape()[1].known()) return {};
        start += part->shape()[1].value();
      }
      return start;
    }
    return node.is("Slice") ? slice_start(node) : std::nullopt;
  }

  static std::optional<std::int64_t> slice_start(const Node& node) {
    const std::optional<Ints> starts = setting(node, "starts", 1), ends = setting(node, "ends", 2);
    const std::optional<Ints> axes = setting(node, "axes", 3, Ints{0, 1}),
                              steps = setting(node, "steps", 4, Ints{1, 1});
    if (!starts || !ends || !axes || !steps || starts->size() > axes->size() || ends->size() != starts->size())
      return {};
    std::optional<std::int64_t> start = 0;
    for (std::size_t i = 0; i < starts->size(); ++i) {
      const bool last = (*axes)[i] == 1 || (*axes)[i] == -1;
      const bool whole = (*starts)[i] == 0 && (*ends)[i] >= (std::int64_t{1} << 31) - 1;
      if ((i < steps->size() && (*steps)[i] != 1) || (*starts)[i] < 0 || (!last && !whole)) return {};
      if (last) start = (*starts)[i];
    }
    return start;
  }

  std::int64_t columns_;
  const Iteration& it_;
  GateSum& sum_;
  const Value* memory_;
};

/// Of each column, of all constants added up.
std::vector<float> added(const std::vector<GateSum::Bias>& parts, std::int64_t columns) {
  std::vector<float> out(static_cast<std::size_t>(columns));
  for (const GateSum::Bias& part : parts) {
    const auto from = part.tensor->as<float>();
    for (std::size_t c = 0; c < out.size(); ++c)
      out[c] += from.size() == 1 ? from[0] : from[static_cast<std::size_t>(part.first) + c];
  }
  return out;
}

}  // namespace

std::vector<float> GateSum::weights_of(const Value* x, std::int64_t columns) const {
  std::vector<float> out;
  for (const Product& part : products) {
    if (part.x != x) continue;
    out.resize(static_cast<std::size_t>(columns * part.rows));
    const auto w = part.weight->as<float>();
    const std::int64_t step = part.weight->dims()[1];
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t r = 0; r < part.rows; ++r) {
        const std::int64_t row = part.row + r, column = part.column + c;
        out[static_cast<std::size_t>(c * part.rows + r)] +=
            w[static_cast<std::size_t>(part.transposed ? column * step + row : row * step + column)];
      }
    }
  }
  return out;
}

std::vector<float> GateSum::bias(std::int64_t columns) const { return added(biases, columns); }
std::vector<float> GateSum::peephole(std::int64_t columns) const { return added(peepholes, columns); }

bool read_gate_sum(Value& value, std::int64_t columns, const Iteration& iteration, GateSum& sum, const Value* memory) {
  return Reader(columns, iteration, sum, memory).read(&value, 0);
}

}  // namespace modelflow::passes
