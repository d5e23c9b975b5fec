// Reads and checks calls of Attention, and estimates their work.
#include "backends/cpu/attention/problem.h"

#include <algorithm>

#include "backends/cpu/frame/typed_input.h"

namespace modelflow::cpu {
namespace {

using ops::AttentionAttrs;
using Layout = AttentionAttrs::Layout;

[[noreturn]] void fail(const std::string& message) { throw Error(ErrorKind::invalid_input, "Attention: " + message); }

const float* floats(const View& view, const char* what) {
  if (view.dtype != DType::f32) fail(std::string(what) + " is " + std::string(name(view.dtype)) + ", not float32");
  return static_cast<const float*>(view.data);
}

constexpr std::size_t kUnset = static_cast<std::size_t>(-1);

/// Of a sequence whose length is only known at run time.
constexpr double kTypicalLength = 128;

double extent(const Dim& dim) { return dim.known() ? static_cast<double>(dim.value()) : 1; }

}  // namespace

// A batch of 1 serves all batches.
void AttentionProblem::join(std::size_t batches, const char* what) {
  if (batch == kUnset || batch == 1) batch = batches;
  if (batches != 1 && batches != batch)
    fail(std::string(what) + " has " + std::to_string(batches) + " batches, the operands before it " +
         std::to_string(batch));
}

// Sizes that an earlier operand has set must be met.
AttentionProblem::Place AttentionProblem::read(const View& view, Layout layout, const char* what, std::size_t count,
                                               std::size_t& sequence, std::size_t& size) {
  Place place;
  place.data = floats(view, what);
  const bool flat = layout == Layout::bsh;
  if (view.dims.size() != (flat ? 3u : 4u)) fail(std::string(what) + " is " + text(view.dims) + ", not of its rank");
  const auto at = [&](std::size_t axis) { return static_cast<std::size_t>(view.dims[axis]); };
  const std::size_t length = at(flat ? 1 : 2), last = at(flat ? 2 : 3);
  if (flat ? last % count != 0 : at(1) != count)
    fail(std::string(what) + " is " + text(view.dims) + ", not of " + std::to_string(count) + " heads");
  const auto take = [&](std::size_t& value, std::size_t found) {
    if (value != kUnset && value != found) fail(std::string(what) + " is " + text(view.dims) + " and does not fit");
    value = found;
  };
  join(at(0), what);
  take(sequence, length);
  take(size, flat ? last / count : last);
  place.row = flat ? last : size;
  place.head = flat ? size : length * size;
  place.batch = at(0) == 1 ? 0 : length * (flat ? last : count * size);
  return place;
}

void AttentionProblem::read_packed(const Invocation& call) {
  q_ = read(call.input(0), Layout::bsh, "qkv", heads + 2 * kv_heads, rows, depth);
  keys = rows;
  width = depth;
  k_ = v_ = q_;
  k_.data += heads * depth;
  v_.data += (heads + kv_heads) * depth;
}

void AttentionProblem::read_separate(const Invocation& call) {
  q_ = read(call.input(0), attrs_.q, "q", heads, rows, depth);
  k_ = read(call.input(1), attrs_.k, "k", kv_heads, keys, depth);
  const bool one = keys == 1 && attrs_.has_mask && !attrs_.causal;
  if (one) keys = kUnset;  // a mask of more columns repeats the scores of one key
  v_ = read(call.input(2), attrs_.v, "v", kv_heads, keys, width);
  repeats_key_ = one && keys != 1;
  if (repeats_key_) k_.row = 0;
}

void AttentionProblem::read_masks(const Invocation& call) {
  const auto read_numbers = [&](const View& view) {
    mask_.numbers = floats(view, "mask");
    numbers_ = read_strides(view, mask_.stride);
  };
  const View mask = call.input(attrs_.mask_index());
  const auto columns = [&](std::size_t input) {
    const View view = call.input(input);
    return view.dims.empty() ? 1 : static_cast<std::size_t>(view.dims.back());
  };
  if (repeats_key_ && columns(attrs_.mask_index()) != keys &&
      (!attrs_.has_bias || columns(attrs_.bias_index()) != keys))
    fail("v is " + text(call.input(2).dims) + " and does not fit one key");
  if (!attrs_.boolean_mask) return read_numbers(mask);
  if (mask.dtype != DType::boolean) fail("the mask is " + std::string(name(mask.dtype)) + ", not boolean");
  mask_.flags = static_cast<const std::uint8_t*>(mask.data);
  flags_ = read_strides(mask, mask_.flag_stride);
  mask_.on = attrs_.mask_true;
  mask_.off = attrs_.mask_false;
  mask_.on_replaces = attrs_.true_replaces;
  mask_.off_replaces = attrs_.false_replaces;
  mask_.numbers_last = attrs_.bias_last;
  if (attrs_.has_bias) read_numbers(call.input(attrs_.bias_index()));
}

void AttentionProblem::read_grid(const Invocation& call) {
  std::size_t sides[2];
  const float* data[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const View side = call.input(attrs_.grid_index() + i);
    data[i] = floats(side, "the grid");
    const std::size_t wanted[] = {batch, heads, rows};
    if (side.dims.size() != 4 || !std::equal(wanted, wanted + 3, side.dims.begin(), [](std::size_t a, std::int64_t b) {
          return static_cast<std::int64_t>(a) == b;
        }))
      fail("a side of the grid is " + text(side.dims) + " and does not fit");
    sides[i] = static_cast<std::size_t>(side.dims[3]);
  }
  if (sides[0] * sides[1] != keys) fail("the grid has " + std::to_string(sides[0] * sides[1]) + " places");
  grid_ = {data[0], data[1], sides[0], sides[1]};
}

// A mask of more batches than queries, keys and values, or of more rows than one query, makes as many of them.
AttentionProblem::MaskStrides AttentionProblem::read_strides(const View& view, AttentionMask::Strides& inner) {
  const std::size_t rank = view.dims.size();
  if (rank < 2 || rank > 4) fail("the mask is " + text(view.dims) + ", not of rank 2 to 4");
  if (rank == 4 && !attrs_.windows) join(static_cast<std::size_t>(view.dims[0]), "the mask");
  MaskStrides found;
  std::size_t* const full[] = {&batch, &heads, &rows, &keys};
  std::size_t* const strides[] = {&found.batch, &found.head, &inner.row, &inner.column};
  std::size_t step = 1;
  for (std::size_t i = 4; i-- > 0;) {
    const auto dim = i + rank < 4 ? std::size_t{1} : static_cast<std::size_t>(view.dims[i + rank - 4]);
    const bool repeats = attrs_.windows && i == 0 && dim != 0 && batch % dim == 0;
    if (i == 2 && rows == 1 && dim != 1 && !attrs_.causal) {
      rows = dim;
      q_.row = 0;
    }
    if (dim != 1 && dim != *full[i] && !repeats) fail("the mask is " + text(view.dims) + " and does not broadcast");
    if (i == 0) found.batches = std::max<std::size_t>(dim, 1);
    *strides[i] = dim == 1 ? 0 : step;
    step *= dim;
  }
  return found;
}

AttentionProblem::AttentionProblem(const AttentionAttrs& attrs, const Invocation& call)
    : heads(static_cast<std::size_t>(attrs.heads)), kv_heads(static_cast<std::size_t>(attrs.kv_heads)), attrs_(attrs) {
  if (call.inputs() != attrs.inputs()) fail("takes " + std::to_string(attrs.inputs()) + " inputs");
  batch = rows = keys = depth = width = kUnset;
  attrs.packed ? read_packed(call) : read_separate(call);
  if (attrs.has_mask) read_masks(call);
  if (attrs.has_grid) read_grid(call);
  const auto number = [](std::size_t size) { return static_cast<std::int64_t>(size); };
  if (attrs.y == Layout::bsh) {
    y = {number(batch), number(rows), number(heads * width)};
    y_ = {nullptr, rows * heads * width, width, heads * width};
  } else {
    y = {number(batch), number(heads), number(rows), number(width)};
    y_ = {nullptr, rows * heads * width, rows * width, width};
  }
}

AttentionHead AttentionProblem::head(std::size_t b, std::size_t n, float* out) const {
  const std::size_t kv = n / group();
  AttentionHead h;
  h.rows = rows;
  h.keys = keys;
  h.depth = depth;
  h.width = width;
  h.q = q_.data + b * q_.batch + n * q_.head;
  h.k = k_.data + b * k_.batch + kv * k_.head;
  h.v = v_.data + b * v_.batch + kv * v_.head;
  h.y = out + b * y_.batch + n * y_.head;
  h.q_row = q_.row;
  h.k_row = k_.row;
  h.v_row = v_.row;
  h.y_row = y_.row;
  h.mask = mask_;
  const auto first = [&](const MaskStrides& steps) { return b % steps.batches * steps.batch + n * steps.head; };
  if (h.mask.numbers) h.mask.numbers += first(numbers_);
  if (h.mask.flags) h.mask.flags += first(flags_);
  h.grid = grid_;
  if (h.grid) {
    h.grid.rows += (b * heads + n) * rows * h.grid.high;
    h.grid.columns += (b * heads + n) * rows * h.grid.wide;
  }
  h.scale = attrs_.scale;
  h.cap = attrs_.softcap;
  h.causal = {attrs_.causal, attrs_.causal_number, attrs_.causal_adds, attrs_.causal_first};
  h.guard = attrs_.nan_guard;
  h.near = near;
  return h;
}

double AttentionProblem::head_flops() const {
  const double seen = attrs_.causal ? 0.5 : 1;
  return 2 * seen * static_cast<double>(rows) * static_cast<double>(keys) * static_cast<double>(depth + width);
}

Verdict accepts_attention(const Call& call, const Target&) {
  if (call.inputs.empty()) return no("needs an input");
  try {
    const AttentionAttrs attrs(call);
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      const Operand& operand = call.in(i);
      const DType type = attrs.type_of(i);
      if (operand.dtype != type)
        return no("is " + std::string(name(operand.dtype)) + ", not " + std::string(name(type)), operand.name);
    }
    if (call.inputs.size() != attrs.inputs())
      return no("the attributes ask for " + std::to_string(attrs.inputs()) + " inputs");
    ops::AttentionDims dims;
    return ops::read_dims(call, attrs, dims);
  } catch (const Error& error) {
    return no(error.what());
  }
}

Verdict accepts_low_attention(const Call& call, const Target& target) {
  if (CallAttrs(call).flag("has_grid")) return no("its keys lie in a grid");
  ops::AttentionDims dims;
  if (call.op == "QAttention" && ops::read_dims(call, AttentionAttrs(call), dims) && dims.keys.known() &&
      dims.keys.value() > static_cast<std::int64_t>(kMostStepKeys))
    return no("more keys than sums of products in 32 bits can hold", call.in(1).name);
  return accepts_attention(call, target);
}

double attention_flops(const Call& call, double products) {
  const AttentionAttrs attrs(call);
  ops::AttentionDims dims;
  if (!ops::read_dims(call, attrs, dims)) return 0;
  const auto length = [](const Dim& dim) { return dim.known() ? static_cast<double>(dim.value()) : kTypicalLength; };
  const double scores =
      extent(dims.batch) * static_cast<double>(attrs.heads) * length(dims.queries) * length(dims.keys);
  constexpr double kSoftmax = 24;  // operations per score: exponential, largest, sum
  const double depth = extent(dims.head_dim) + extent(dims.value_dim);
  return scores * (attrs.causal ? 0.5 : 1) * (2 * depth / products + kSoftmax);
}

double attention_bytes(const Call& call) {
  double sum = 0;
  for (const Operand& operand : call.inputs) sum += operand.shape.known_elements();
  for (const Operand& operand : call.outputs) sum += operand.shape.known_elements();
  return 4 * sum;
}

}  // namespace modelflow::cpu
