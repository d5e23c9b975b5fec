// Attention on a GPU: scores never leave the chip; queries, keys and values are read in the layouts that they have.
#include <algorithm>
#include <cmath>
#include <optional>

#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"
#include "backends/cuda/work.h"
#include "backends/ops/attention_attrs.h"

namespace modelflow::cuda {
namespace {

using ops::AttentionAttrs;

constexpr const char* kOp = "Attention";
constexpr std::int64_t kMostTensor = 128, kMostWidth = 512;

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorKind::invalid_input, std::string(kOp) + ": " + message);
}

/// Heads that tensor cores multiply; longer ones take plain arithmetic.
bool fits_tensor_cores(std::int64_t depth, std::int64_t width) { return std::max(depth, width) <= kMostTensor; }

/// One of q, k and v: its extents and where its heads lie.
struct Heads {
  HeadPlace place = {};
  std::int64_t batches = 1, rows = 0, size = 0;

  Heads(const View& view, AttentionAttrs::Layout layout, std::int64_t count) {
    const bool flat = layout == AttentionAttrs::Layout::bsh;
    const std::span<const std::int64_t> d = view.dims;
    if (d.size() != (flat ? 3U : 4U) || (flat ? d[2] % count : d[1] - count) != 0)
      fail("an operand does not fit the heads");
    batches = d[0];
    rows = d[flat ? 1 : 2];
    size = flat ? d[2] / count : d[3];
    place = {view.data, rows * count * size, flat ? size : rows * size, flat ? count * size : size};
  }
};

class Attention : public Implementation {
 public:
  Attention(const Call& call, const DeviceLibrary& library, const Target& target)
      : library_(library), target_(target), attrs_(call) {}

  void run(Invocation& call) const override {
    if (call.inputs() != attrs_.inputs()) fail("takes " + std::to_string(attrs_.inputs()) + " inputs");
    AttentionLaunch a = options();
    a.number = *number_of(call.input(0).dtype);
    if (attrs_.packed) {
      read_packed(call.input(0), a);
    } else {
      read_separate(call, a);
    }
    if (attrs_.has_mask) a.mask = score_place(call, attrs_.mask_index(), a);
    if (attrs_.has_bias) a.bias = score_place(call, attrs_.bias_index(), a);
    const bool flat = attrs_.y == AttentionAttrs::Layout::bsh;
    const Dims y = flat ? Dims{a.batch, a.queries, a.heads * a.width} : Dims{a.batch, a.heads, a.queries, a.width};
    void* const data = call.output(0, y);
    if (element_count(y) == 0) return;
    a.y = {data, a.queries * a.heads * a.width, flat ? a.width : a.queries * a.width,
           flat ? static_cast<std::int64_t>(a.heads) * a.width : a.width};
    if (a.width > kMostWidth) fail("heads of values are longer than " + std::to_string(kMostWidth));
    a.tensor_cores = a.number != Number::f32 && target_.sm >= kTensorCores && fits_tensor_cores(a.depth, a.width);
    check(kOp, library_.attention(a, call.stream()));
  }

 private:
  AttentionLaunch options() const {
    AttentionLaunch a = {};
    a.heads = static_cast<std::int32_t>(attrs_.heads);
    a.group = static_cast<std::int32_t>(attrs_.heads / attrs_.kv_heads);
    a.scale = attrs_.scale;
    a.softcap = attrs_.softcap;
    a.causal = attrs_.causal;
    a.causal_adds = attrs_.causal_adds;
    a.causal_first = attrs_.causal_first;
    a.causal_number = attrs_.causal_number;
    a.boolean_mask = attrs_.boolean_mask;
    a.true_replaces = attrs_.true_replaces;
    a.false_replaces = attrs_.false_replaces;
    a.bias_last = attrs_.bias_last;
    a.mask_true = attrs_.mask_true;
    a.mask_false = attrs_.mask_false;
    a.nan_guard = attrs_.nan_guard;
    const bool shown_again = attrs_.causal_first && (attrs_.true_replaces || attrs_.false_replaces);
    a.stops = attrs_.causal && attrs_.causal_number == -INFINITY && !shown_again;
    return a;
  }

  /// One batch serves all: the stride of one that is alone is 0.
  static void join(std::int64_t& batch, std::int64_t found) {
    if (batch != found && batch != 1 && found != 1) fail("batches differ");
    if (batch == 1) batch = found;
  }

  void read_packed(const View& view, AttentionLaunch& a) const {
    const Heads all(view, AttentionAttrs::Layout::bsh, attrs_.heads + 2 * attrs_.kv_heads);
    a.batch = all.batches;
    a.queries = a.keys = all.rows;
    a.depth = a.width = static_cast<std::int32_t>(all.size);
    a.q = a.k = a.v = all.place;
    if (all.batches == 1) a.q.batch = a.k.batch = a.v.batch = 0;  // a mask may have more
    const auto behind = [&](std::int64_t heads) {
      const std::size_t bytes = bytes_of(a.number) * static_cast<std::size_t>(heads * all.size);
      return static_cast<const std::byte*>(view.data) + bytes;
    };
    a.k.data = behind(attrs_.heads);
    a.v.data = behind(attrs_.heads + attrs_.kv_heads);
  }

  void read_separate(const Invocation& call, AttentionLaunch& a) const {
    const Heads q(call.input(0), attrs_.q, attrs_.heads), k(call.input(1), attrs_.k, attrs_.kv_heads);
    const Heads v(call.input(2), attrs_.v, attrs_.kv_heads);
    if (q.size != k.size) fail("heads of q and k differ in size");
    if (k.rows != v.rows && k.rows != 1) fail("k and v differ in length");
    a.batch = 1;
    for (const Heads* one : {&q, &k, &v}) join(a.batch, one->batches);
    a.q = q.place, a.k = k.place, a.v = v.place;
    if (q.batches == 1) a.q.batch = 0;
    if (k.batches == 1) a.k.batch = 0;
    if (v.batches == 1) a.v.batch = 0;
    if (k.rows != v.rows) a.k.row = 0;  // the mask has as many columns as there are values, of one key
    a.queries = q.rows, a.keys = v.rows;
    a.depth = static_cast<std::int32_t>(q.size), a.width = static_cast<std::int32_t>(v.size);
  }

  /// The strides of a mask or bias of rank 2 to 4, and the batches, queries and keys that it adds.
  ScorePlace score_place(const Invocation& call, std::size_t index, AttentionLaunch& a) const {
    const View view = call.input(index);
    const bool flags = attrs_.boolean_mask && index == attrs_.mask_index();
    if (view.dtype != (flags ? DType::boolean : call.input(0).dtype)) fail("a mask is of another type");
    if (view.dims.size() < 2 || view.dims.size() > 4) fail("a mask is not of rank 2 to 4");
    Dims d(4 - view.dims.size(), 1);
    d.insert(d.end(), view.dims.begin(), view.dims.end());
    ScorePlace place = {view.data, std::max<std::int64_t>(d[0], 1), 0, 0, 0, 0};
    if (!attrs_.windows) join(a.batch, d[0]);
    if (attrs_.windows && d[0] != 0 && a.batch % d[0] != 0) fail("the windows of the mask do not divide the batch");
    if (a.queries == 1 && d[2] != 1 && !attrs_.causal) {  // one query for all rows of the mask
      a.queries = d[2];
      a.q.row = 0;
    }
    if ((d[1] != 1 && d[1] != a.heads) || (d[2] != 1 && d[2] != a.queries) || (d[3] != 1 && d[3] != a.keys))
      fail("a mask does not broadcast to the scores");
    if (d[0] != 1) place.batch = d[1] * d[2] * d[3];
    if (d[1] != 1) place.head = d[2] * d[3];
    if (d[2] != 1) place.row = d[3];
    if (d[3] != 1) place.column = 1;
    return place;
  }

  const DeviceLibrary& library_;
  Target target_;
  AttentionAttrs attrs_;
};

Verdict accepts(const Call& call, const Target&) {
  const AttentionAttrs attrs(call);
  if (attrs.has_grid) return no("its keys lie in a grid");
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Operand& operand = call.in(i);
    const DType wanted = attrs.type_of(i) == DType::boolean ? DType::boolean : call.in(0).dtype;
    if (!number_of(call.in(0).dtype)) return no("is not float32, float16 or bfloat16", call.in(0).name);
    if (operand.dtype != wanted) return no("is of another type than q", operand.name);
  }
  ops::AttentionDims dims;
  if (Verdict verdict = read_dims(call, attrs, dims); !verdict) return verdict;
  if (!dims.value_dim.known()) return no("the size of heads is unknown", call.in(0).name);
  return dims.value_dim.value() <= kMostWidth ? yes() : no("heads are longer than 512", call.in(0).name);
}

double cost(const Call& call, const Target& target) {
  ops::AttentionDims dims;
  const bool tensor = read_dims(call, AttentionAttrs(call), dims) &&
                      fits_tensor_cores(dims.head_dim.number().value_or(1), dims.value_dim.number().value_or(1));
  return product_seconds_in(tensor ? call.in(0).dtype : DType::f32, 0, call, target);
}

}  // namespace

const Kernel attention = {
    .op = "Attention",
    .name = "cuda.attention",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = cost,
    .create = create<Attention>,
};

}  // namespace modelflow::cuda
