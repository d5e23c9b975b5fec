// ColumnEmbedding: rows of tables side by side, named by the ids of a column each.
#include <algorithm>

#include "backends/call_attrs.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/frame/typed_input.h"
#include "backends/cpu/rows/kernels.h"
#include "backends/cpu/rows/row_indices.h"

namespace modelflow::cpu {
namespace {

constexpr const char* kOp = "ColumnEmbedding";
[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorKind::invalid_input, std::string(kOp) + ": " + what);
}

struct Column {
  RowIndices named;
  const float* rows = nullptr;
  std::size_t width = 0;
};

class ColumnEmbedding : public Implementation {
 public:
  explicit ColumnEmbedding(const Call& call) : columns_(CallAttrs(call).ints("columns")) {}

  void run(Invocation& call) const override {
    if (call.inputs() != columns_.size() + 1) fail("wrong number of inputs");
    const std::int64_t batch = ids_of(call).dims[0];
    std::vector<Column> columns;
    std::size_t width = 0;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      columns.push_back(read(call, i));
      width += columns.back().width;
    }
    auto* y = static_cast<float*>(call.output(0, Dims{batch, static_cast<std::int64_t>(width)}));
    const auto rows = static_cast<std::size_t>(batch);
    if (rows * width == 0) return;
    share(call, rows, std::min(tasks_for(rows * width, call), rows),
          [&](std::size_t begin, std::size_t end, std::size_t) {
            float* to = y + begin * width;
            for (std::size_t r = begin; r < end; ++r)
              for (const Column& column : columns) {
                const auto row = static_cast<std::size_t>(column.named[static_cast<std::int64_t>(r)]);
                to = std::copy_n(column.rows + row * column.width, column.width, to);
              }
          });
  }

 private:
  View ids_of(const Invocation& call) const {
    const View ids = call.input(0);
    if (ids.dims.size() != 2) fail("ids are not of rank 2");
    const auto [least, most] = std::ranges::minmax(columns_);
    if (least < 0) fail("column " + std::to_string(least));
    if (most >= ids.dims[1]) fail("no column " + std::to_string(most) + " in " + std::to_string(ids.dims[1]));
    return ids;
  }

  /// Every id is checked here, once: nothing may fail on another thread.
  Column read(const Invocation& call, std::size_t i) const {
    const View ids = call.input(0), table = call.input(i + 1);
    if (table.dims.size() != 2) fail("a table is not of rank 2");
    const RowIndices named(ids, table.dims[0], columns_[i], ids.dims[1]);
    if (!named.whole()) fail("ids are neither int32 nor int64");
    if (const std::string wrong = named.wrong(ids.dims[0]); !wrong.empty())
      fail("id " + wrong + " (column " + std::to_string(columns_[i]) + ")");
    return {named, typed_input<float>(call, kOp, i + 1, {{table.dims[0], table.dims[1]}}),
            static_cast<std::size_t>(table.dims[1])};
  }

  Ints columns_;
};

Verdict accepts(const Call& call, const Target&) {
  const DType type = call.in(0).dtype;
  if (type != DType::i64 && type != DType::i32) return no("is neither int32 nor int64", call.in(0).name);
  for (std::size_t i = 1; i < call.inputs.size(); ++i)
    if (call.in(i).dtype != DType::f32) return no("is not float32", call.in(i).name);
  return yes();
}

double cost(const Call& call, const Target& target) {
  return target.stream(8 * call.outputs.at(0).shape.known_elements());
}

}  // namespace

const Kernel column_embedding = {
    .op = "ColumnEmbedding",
    .name = "cpu.column_embedding",
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target&) -> std::unique_ptr<Implementation> {
      return std::make_unique<ColumnEmbedding>(call);
    },
};

}  // namespace modelflow::cpu
