// Shape arithmetic as exporters write it. A nullopt result means "not understood"; an unknown Dim means "this element".
#include "src/onnx/shape_ops.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "src/onnx/derived.h"
#include "src/onnx/floor.h"

namespace modelflow {
namespace {

using Result = std::optional<DimList>;

Result same(const ShapeArgs& args) {
  const DimList* list = args.in(0);
  return list ? Result(*list) : std::nullopt;
}

bool is_wide(DType type) {
  return type == DType::i64 || type == DType::i32 || type == DType::f32 || type == DType::f64;
}

// Only whole numbers are in the list, so rounding changes nothing. What the new type does not hold goes afterwards.
Result cast(const ShapeArgs& args) {
  const auto to = static_cast<DType>(args.node.attrs.integer("to"));
  if (is_wide(to)) return same(args);
  const DimList* list = args.in(0);
  if (to != DType::boolean || !list) return {};
  DimList flags;
  for (const Dim& dim : *list) flags.push_back(dim.known() ? Dim(dim.value() != 0) : Dim());
  return flags;
}

Result reshape(const ShapeArgs& args) {
  const Value* output = args.node.output();
  auto target = args.values.numbers(args.node.input(1));
  bool flat = (target && target->size() <= 1) || (output->shape().has_rank() && output->shape().rank() <= 1);
  return flat ? same(args) : std::nullopt;
}

// Lists stand for scalars and vectors: only a scalar may get an axis.
Result unsqueeze(const ShapeArgs& args) {
  const Value* x = args.node.input(0);
  const DimList* list = args.in(0);
  if (!x || !list || list->size() != 1) return {};
  return x->shape().has_rank() && x->shape().rank() != 0 ? std::nullopt : Result(*list);
}

std::int64_t clamped(std::int64_t index, std::int64_t size) {
  if (index < 0) index += size;
  return std::clamp<std::int64_t>(index, 0, size);
}

Result shape(const ShapeArgs& args) {
  const Value* x = args.node.input(0);
  if (!x || !x->shape().has_rank()) return {};
  const auto& dims = x->shape().dims();
  auto rank = static_cast<std::int64_t>(dims.size());
  std::int64_t start = clamped(args.node.attrs.integer("start", 0), rank);
  std::int64_t end = clamped(args.node.attrs.integer("end", rank), rank);
  if (start >= end) return DimList();
  return DimList(dims.begin() + start, dims.begin() + end);
}

Result size(const ShapeArgs& args) {
  const Value* x = args.node.input(0);
  return x ? Result(DimList{x->shape().elements()}) : std::nullopt;
}

// Elements of a Range, first and last ones mostly: where they were not there, the run would fail.
Result gather_counted(const ShapeArgs& args, const std::vector<std::int64_t>& indices) {
  const auto producer = [](const Value* value) { return value ? value->producer() : nullptr; };
  const Node* range = producer(args.node.input(0));
  while (range && (range->is("Identity") || (range->is("Cast") && is_wide(range->output()->dtype()))))
    range = producer(range->input(0));
  if (!range || !range->is("Range")) return {};
  const DimList *start = args.values.of(range->input(0)), *step = args.values.of(range->input(2));
  const Shape& shape = range->output()->shape();
  if (!start || !step || start->size() != 1 || step->size() != 1) return {};
  DimList result;
  for (const std::int64_t index : indices) {
    const Dim count = index >= 0 ? Dim(0) : shape.has_rank() && shape.rank() == 1 ? shape[0] : Dim();
    result.push_back(start->front() + (count + Dim(index)) * step->front());
  }
  return result;
}

Result gather(const ShapeArgs& args) {
  const DimList* data = args.in(0);
  auto indices = args.values.numbers(args.node.input(1));
  if (!data && indices) return gather_counted(args, *indices);
  if (!data || !indices) return {};
  DimList result;
  auto length = static_cast<std::int64_t>(data->size());
  for (std::int64_t index : *indices) {
    if (index < 0) index += length;
    if (index < 0 || index >= length) return {};
    result.push_back((*data)[static_cast<std::size_t>(index)]);
  }
  return result;
}

struct Range {
  std::int64_t start = 0, end = std::numeric_limits<std::int64_t>::max(), step = 1;
};

std::optional<Range> slice_range(const ShapeArgs& args) {
  auto first = [](const Ints& list) { return list.size() == 1 ? std::optional(list[0]) : std::nullopt; };
  std::optional<std::int64_t> start, end, step = 1;
  if (args.node.attrs.has("starts")) {
    start = first(args.node.attrs.ints("starts"));
    end = first(args.node.attrs.ints("ends"));
  } else {
    auto input = [&](std::size_t i) {
      auto numbers = args.values.numbers(args.node.input(i));
      return numbers ? first(*numbers) : std::nullopt;
    };
    start = input(1);
    end = input(2);
    if (args.node.input(4)) step = input(4);
  }
  if (!start || !end || !step || *step == 0) return {};
  // ONNX Runtime reads these as "all of it" also backwards, where others cut them to the last element.
  if (*step < 0 && (*end == std::numeric_limits<std::int32_t>::max() || *end == Range().end)) return {};
  return Range{*start, *end, *step};
}

Result slice(const ShapeArgs& args) {
  const DimList* data = args.in(0);
  auto range = data ? slice_range(args) : std::nullopt;
  if (!range) return {};
  auto length = static_cast<std::int64_t>(data->size());
  const std::int64_t step = std::clamp(range->step, -length - 1, length + 1);  // a longer one takes one element as well
  auto bound = [&](std::int64_t index, std::int64_t low, std::int64_t high) {
    if (index < 0) index = index < -length ? -1 - length : index + length;
    return std::clamp(index, low, high);
  };
  DimList result;
  if (step > 0) {
    std::int64_t end = bound(range->end, 0, length);
    for (std::int64_t i = bound(range->start, 0, length); i < end; i += step) {
      result.push_back((*data)[static_cast<std::size_t>(i)]);
    }
  } else {
    std::int64_t end = bound(range->end, -1, length - 1);
    for (std::int64_t i = bound(range->start, -1, length - 1); i > end; i += step) {
      result.push_back((*data)[static_cast<std::size_t>(i)]);
    }
  }
  return result;
}

Result concat(const ShapeArgs& args) {
  DimList result;
  for (std::size_t i = 0; i < args.node.inputs().size(); ++i) {
    const DimList* part = args.in(i);
    if (!part) return {};
    result.insert(result.end(), part->begin(), part->end());
  }
  return result;
}

Result split(const ShapeArgs& args) {
  const DimList* data = args.in(0);
  if (!data) return {};
  auto outputs = static_cast<std::int64_t>(args.node.outputs().size());
  auto length = static_cast<std::int64_t>(data->size());
  Ints sizes = args.node.attrs.ints("split");
  if (const Value* input = args.node.input(1)) {
    auto numbers = args.values.numbers(input);
    if (!numbers) return {};
    sizes = *numbers;
  }
  if (sizes.empty() && outputs > 0) {
    const bool unequal = args.node.attrs.integer("num_outputs") == outputs;  // the last one is the shorter
    const std::int64_t each = unequal ? (length + outputs - 1) / outputs : length / outputs;
    sizes.assign(static_cast<std::size_t>(outputs), each);
    if (unequal) sizes.back() = length - each * (outputs - 1);
  }
  if (args.output >= sizes.size()) return {};
  std::int64_t begin = 0, total = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || sizes[i] > length) return {};
    if (i < args.output) begin += sizes[i];
    total += sizes[i];
  }
  if (total != length) return {};
  return DimList(data->begin() + begin, data->begin() + begin + sizes[args.output]);
}

template <class Combine>
Result elementwise(const ShapeArgs& args, Combine combine) {
  const DimList *a = args.in(0), *b = args.in(1);
  if (!a || !b || a->empty() || b->empty()) return {};
  std::size_t count = std::max(a->size(), b->size());
  if ((a->size() != count && a->size() != 1) || (b->size() != count && b->size() != 1)) return {};
  DimList result;
  for (std::size_t i = 0; i < count; ++i) {
    result.push_back(combine((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]));
  }
  return result;
}

Result add(const ShapeArgs& args) { return elementwise(args, std::plus<Dim>()); }
Result subtract(const ShapeArgs& args) { return elementwise(args, std::minus<Dim>()); }
Result multiply(const ShapeArgs& args) { return elementwise(args, std::multiplies<Dim>()); }

Result divide(const ShapeArgs& args) {
  const Value* output = args.node.output();
  bool whole = output->dtype() == DType::i64 || output->dtype() == DType::i32;
  const Value* x = args.node.input(0);
  whole = whole || (x && (x->dtype() == DType::i64 || x->dtype() == DType::i32));
  return elementwise(args, [&](const Dim& a, const Dim& b) {
    if (b.known() && b.value() == 0) return Dim();
    Dim exact = a.divided_by(b);
    return exact.unknown() && whole && b.known() && b.value() > 0 ? truncated_div(a, b.value()) : exact;
  });
}

// The rest has the sign of the divisor, with fmod that of the dividend.
Result modulo(const ShapeArgs& args) {
  const bool of_dividend = args.node.attrs.integer("fmod") != 0;
  return elementwise(args, [&](const Dim& a, const Dim& b) {
    if (!b.known() || b.value() <= 0 || (of_dividend && !never_negative(a))) return Dim();
    return a - floor_div(a, b.value()) * b;
  });
}

Result equal_to(const ShapeArgs& args) {
  return elementwise(args, [](const Dim& a, const Dim& b) {
    if (a == b) return Dim(1);
    if (a.known() && b.known()) return Dim(0);
    if (never_negative(a) && b.known() && b.value() < 0) return Dim(0);
    if (never_negative(b) && a.known() && a.value() < 0) return Dim(0);
    return Dim();
  });
}

Result where(const ShapeArgs& args) {
  const DimList *condition = args.in(0), *yes = args.in(1), *no = args.in(2);
  if (!condition || !yes || !no || condition->empty() || yes->empty() || no->empty()) return {};
  std::size_t count = std::max({condition->size(), yes->size(), no->size()});
  auto at = [&](const DimList& list, std::size_t i) { return list.size() == 1 ? list[0] : list[i]; };
  for (const DimList* list : {condition, yes, no}) {
    if (list->size() != count && list->size() != 1) return {};
  }
  DimList result;
  for (std::size_t i = 0; i < count; ++i) {
    Dim chosen = at(*condition, i);
    result.push_back(chosen.known() ? at(chosen.value() ? *yes : *no, i) : Dim());
  }
  return result;
}

Result extreme(const ShapeArgs& args, Dim (*pick)(const Dim&, const Dim&)) {
  if (args.node.inputs().size() == 1) return same(args);
  if (args.node.inputs().size() != 2) return {};
  return elementwise(args, pick);
}

Result minimum(const ShapeArgs& args) { return extreme(args, smaller); }
Result maximum(const ShapeArgs& args) { return extreme(args, larger); }

Result negate(const ShapeArgs& args) {
  const DimList* list = args.in(0);
  if (!list) return {};
  DimList result;
  for (const Dim& dim : *list) result.push_back(Dim(0) - dim);
  return result;
}

Result product(const ShapeArgs& args) {
  const DimList* list = args.in(0);
  if (!list || args.node.attrs.integer("noop_with_empty_axes") != 0) return {};
  Dim total = 1;
  for (const Dim& dim : *list) total = total * dim;
  return DimList{total};
}

Result filled(const ShapeArgs& args) {
  auto count = args.values.numbers(args.node.input(0));
  constexpr std::int64_t kMost = 256;
  if (!count || count->size() > 1) return {};
  std::int64_t length = count->empty() ? 1 : (*count)[0];
  if (length < 0 || length > kMost) return {};
  const Tensor* value = args.node.attrs.tensor("value");
  if (value && (is_float(value->dtype()) || value->elements() != 1)) return {};
  return DimList(static_cast<std::size_t>(length), Dim(value ? value->to_ints()[0] : 0));
}

constexpr ShapeOp kOps[] = {
    {"Identity", same},
    {"Cast", cast},
    {"Floor", same},
    {"Ceil", same},
    {"Round", same},
    {"Squeeze", same},
    {"Unsqueeze", unsqueeze},
    {"Reshape", reshape},
    {"Shape", shape},
    {"Size", size},
    {"Gather", gather},
    {"Slice", slice},
    {"Concat", concat},
    {"Split", split},
    {"Add", add},
    {"Sub", subtract},
    {"Mul", multiply},
    {"Div", divide},
    {"Mod", modulo},
    {"Equal", equal_to},
    {"Where", where},
    {"Min", minimum},
    {"Max", maximum},
    {"Neg", negate},
    {"ReduceProd", product},
    {"ConstantOfShape", filled},
};

}  // namespace

const ShapeOp* find_shape_op(std::string_view op) {
  for (const ShapeOp& candidate : kOps) {
    if (candidate.name == op) return &candidate;
  }
  return nullptr;
}

}  // namespace modelflow
