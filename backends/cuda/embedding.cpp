// Embeddings on a GPU: the sum of rows that ids name, and its layer normalization.
#include <algorithm>

#include "backends/cuda/kernels.h"
#include "backends/cuda/launches/shared_memory.h"
#include "backends/cuda/places.h"
#include "backends/ops/embedding_attrs.h"
#include "backends/ops/read_attrs.h"

namespace modelflow::cuda {
namespace {

constexpr const char* kOp = "Embedding";
[[noreturn]] void fail(const char* what) { throw Error(ErrorKind::invalid_input, std::string("Embedding: ") + what); }

class Embedding : public Implementation {
 public:
  Embedding(const Call& call, const DeviceLibrary& library) : library_(library), embedding_(call) {}

  void run(Invocation& call) const override {
    if (call.inputs() != embedding_.inputs()) fail("wrong number of inputs");
    EmbeddingLaunch launch = {};
    const View first = call.input(1);
    const std::optional<Number> number = number_of(first.dtype);
    if (!number || first.dims.size() != 2) fail("a table is not of floats and rank 2");
    launch.number = *number;
    launch.n = first.dims[1];
    launch.tables = static_cast<std::int32_t>(embedding_.tables);
    launch.epsilon = embedding_.epsilon;
    std::vector<std::span<const std::int64_t>> ids;
    for (std::size_t i = 0; i < embedding_.tables; ++i) launch.table[i] = table_of(call, i);
    for (std::size_t i = 0; i < embedding_.with_ids(); ++i) ids.push_back(call.input(2 * i).dims);
    std::int64_t length = 0;
    if (embedding_.in_order) {
      length = length_in_order(ids[0], launch.table[embedding_.with_ids()].count);
      ids.emplace_back(&length, 1);
    }
    if (embedding_.norm) {
      launch.scale = vector_of(call, embedding_.scale());
      launch.bias = vector_of(call, embedding_.scale() + 1);
    }
    const Broadcast shape(kOp, ids);
    launch.rows = static_cast<std::int64_t>(shape.elements());
    launch.places = places_of(kOp, shape, ids.size());
    Dims result = shape.dims();
    result.push_back(launch.n);
    launch.y = call.output(0, result);
    if (embedding_.keep_sum) launch.sum = call.output(1, result);
    if (element_count(result) > 0) check(kOp, library_.embedding(launch, call.stream()));
  }

 private:
  /// Along the last axis of the first ids.
  static std::int64_t length_in_order(std::span<const std::int64_t> ids, std::int64_t rows) {
    if (ids.empty()) fail("ids of rank 0 beside rows in order");
    if (ids.back() > rows || rows == 1) fail("there are more ids than rows in order");
    return ids.back();
  }

  EmbeddingLaunch::Table table_of(const Invocation& call, std::size_t i) const {
    const View rows = call.input(embedding_.table(i)), first = call.input(1);
    const View ids = i < embedding_.with_ids() ? call.input(2 * i) : View();
    if (ids.data && ids.dtype != DType::i64 && ids.dtype != DType::i32) fail("ids are neither int32 nor int64");
    if (rows.dtype != first.dtype || rows.dims.size() != 2 || rows.dims[1] != first.dims[1])
      fail("the tables are not of one type and width");
    return {ids.data, rows.data, rows.dims[0], ids.dtype == DType::i32};
  }
  static const void* vector_of(const Invocation& call, std::size_t i) {
    const View view = call.input(i), first = call.input(1);
    if (view.dtype != first.dtype || view.dims.size() != 1 || view.dims[0] != first.dims[1])
      fail("scale or bias does not fit the tables");
    return view.data;
  }

  const DeviceLibrary& library_;
  ops::EmbeddingAttrs embedding_;
};

/// A block keeps a row that it normalizes in the memory that its threads share.
Verdict accepts(const Call& call, const Target& target) {
  Verdict why;
  const std::optional<ops::EmbeddingAttrs> embedding = ops::read_attrs<ops::EmbeddingAttrs>(call, why);
  if (!embedding) return why;
  if (Verdict verdict = accepts_axes(call); !verdict) return verdict;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Operand& operand = call.in(i);
    const bool ids = embedding->is_ids(i);
    if (ids && operand.dtype != DType::i64 && operand.dtype != DType::i32)
      return no("is neither int32 nor int64", operand.name);
    if (!ids && !number_of(operand.dtype)) return no("is not float32, float16 or bfloat16", operand.name);
    if (!ids && operand.dtype != call.in(1).dtype) return no("is of another type than the first table", operand.name);
  }
  if (!embedding->norm) return yes();
  const Shape& table = call.in(1).shape;
  if (!table.has_rank() || !table.back().known()) return no("the length of a row is unknown", call.in(1).name);
  constexpr std::int64_t kMore = 1 << 13;  // where the threads of a block do not divide a row
  if (fits_shared(4 * table.back().value() + kMore, target.l1)) return yes();
  return no("a row does not fit into shared memory", call.in(1).name);
}

double cost(const Call& call, const Target& target) {
  const double bytes = call.in(1).dtype == DType::f32 ? 4 : 2;
  double passes = static_cast<double>(ops::EmbeddingAttrs(call).tables);
  for (std::size_t i = 0; i < call.outputs.size(); ++i) ++passes;
  return target.launch + target.stream(bytes * passes * call.outputs.at(0).shape.known_elements());
}

}  // namespace

const Kernel embedding = {
    .op = kOp,
    .name = "cuda.embedding",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = cost,
    .create = create<Embedding>,
};

}  // namespace modelflow::cuda
