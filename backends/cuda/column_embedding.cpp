// ColumnEmbedding on a GPU: copies of rows, of some tables at a time.
#include <algorithm>

#include "backends/call_attrs.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"

namespace modelflow::cuda {
namespace {

constexpr const char* kOp = "ColumnEmbedding";
[[noreturn]] void fail(const char* what) { throw Error(ErrorKind::invalid_input, std::string(kOp) + ": " + what); }

class ColumnEmbedding : public Implementation {
 public:
  ColumnEmbedding(const Call& call, const DeviceLibrary& library)
      : library_(library), columns_(CallAttrs(call).ints("columns")) {}

  void run(Invocation& call) const override {
    if (columns_.empty() || call.inputs() != columns_.size() + 1) fail("wrong number of inputs");
    const View ids = ids_of(call);
    const auto size = static_cast<std::int64_t>(byte_count(call.input(1).dtype, {}));
    std::int64_t width = 0;
    for (std::size_t i = 0; i < columns_.size(); ++i) width += table_of(call, i).width;
    ColumnEmbeddingLaunch a = {};
    a.narrow = ids.dtype == DType::i32;
    a.rows = ids.dims[0], a.step = ids.dims[1], a.row = width;
    a.ids = ids.data;
    a.y = call.output(0, Dims{a.rows, width / size});
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      a.table[a.tables++] = table_of(call, i);
      a.width += a.table[a.tables - 1].width;
      if (a.tables < ColumnEmbeddingLaunch::kTables && i + 1 < columns_.size()) continue;
      if (a.rows * a.width > 0) check(kOp, library_.column_embedding(a, call.stream()));
      a.y = static_cast<std::byte*>(a.y) + a.width;
      a.width = a.tables = 0;
    }
  }

 private:
  View ids_of(const Invocation& call) const {
    const View ids = call.input(0);
    if (ids.dims.size() != 2) fail("ids are not of rank 2");
    if (ids.dtype != DType::i64 && ids.dtype != DType::i32) fail("ids are neither int32 nor int64");
    const auto [least, most] = std::ranges::minmax(columns_);
    if (least < 0 || most >= ids.dims[1]) fail("the ids lack a column");
    return ids;
  }
  ColumnEmbeddingLaunch::Table table_of(const Invocation& call, std::size_t i) const {
    const View rows = call.input(i + 1);
    if (!number_of(rows.dtype) || rows.dtype != call.input(1).dtype || rows.dims.size() != 2)
      fail("the tables are not of floats of one type and rank 2");
    return {rows.data, rows.dims[0], static_cast<std::int64_t>(byte_count(rows.dtype, rows.dims.subspan(1))),
            columns_[i]};
  }

  const DeviceLibrary& library_;
  Ints columns_;
};

Verdict accepts(const Call& call, const Target&) {
  const DType ids = call.in(0).dtype;
  if (ids != DType::i64 && ids != DType::i32) return no("is neither int32 nor int64", call.in(0).name);
  for (std::size_t i = 1; i < call.inputs.size(); ++i) {
    if (!number_of(call.in(i).dtype)) return no("is not float32, float16 or bfloat16", call.in(i).name);
    if (call.in(i).dtype != call.in(1).dtype) return no("is of another type than the first table", call.in(i).name);
  }
  return yes();
}

/// Rows of tables are read and written; of the tables, others are not.
double cost(const Call& call, const Target& target) {
  constexpr auto kTables = static_cast<std::size_t>(ColumnEmbeddingLaunch::kTables);
  const auto launches = static_cast<double>((call.inputs.size() - 1 + kTables - 1) / kTables);
  const double bytes = call.in(1).dtype == DType::f32 ? 4 : 2;
  return launches * target.launch +
         target.stream(2 * bytes * call.outputs.at(0).shape.known_elements() + 8 * call.in(0).shape.known_elements());
}

}  // namespace

const Kernel column_embedding = {
    .op = kOp,
    .name = "cuda.column_embedding",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = cost,
    .create = create<ColumnEmbedding>,
};

}  // namespace modelflow::cuda
