// Embedding: rows of tables by their ids, their sum and its layer normalization. A row stays in the first cache until
// it is written.
#include <algorithm>
#include <array>

#include "backends/broadcast.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/frame/typed_input.h"
#include "backends/cpu/loops/vector_code.h"
#include "backends/cpu/rows/kernels.h"
#include "backends/cpu/rows/row_indices.h"
#include "backends/ops/embedding_attrs.h"
#include "backends/ops/read_attrs.h"

namespace modelflow::cpu {
namespace {

constexpr const char* kOp = "Embedding";
[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorKind::invalid_input, std::string(kOp) + ": " + what);
}

class Embedding : public Implementation {
 public:
  Embedding(const Call& call, const VectorCode& code) : embedding_(call), code_(code) {}

  void run(Invocation& call) const override {
    if (call.inputs() != embedding_.inputs()) fail("wrong number of inputs");
    std::array<Table, ops::EmbeddingAttrs::kTables> tables;
    std::vector<std::span<const std::int64_t>> dims;
    const std::int64_t width = read(call, tables);
    for (std::size_t i = 0; i < embedding_.with_ids(); ++i) dims.push_back(tables[i].ids.dims);
    std::int64_t length = 0;
    if (embedding_.in_order) {
      length = length_in_order(dims[0], tables[embedding_.with_ids()].count);
      dims.emplace_back(&length, 1);
    }
    const Broadcast shape(kOp, dims);
    std::vector<std::int64_t> result = shape.dims();
    result.push_back(width);
    NormRows first;
    first.n = static_cast<std::size_t>(width);
    first.epsilon = embedding_.epsilon;
    if (embedding_.norm) {
      first.scale = typed_input<float>(call, kOp, embedding_.scale(), {{width}});
      first.bias = typed_input<float>(call, kOp, embedding_.scale() + 1, {{width}});
    }
    first.y = static_cast<float*>(call.output(0, result));
    if (embedding_.keep_sum) first.sum = static_cast<float*>(call.output(1, result));
    const std::size_t rows = shape.elements();
    if (rows * first.n == 0) return;
    share(call, rows, std::min(tasks_for(rows * first.n * embedding_.tables, call), rows),
          [&](std::size_t begin, std::size_t end, std::size_t) {
            for (std::size_t r = begin; r < end; ++r) write(shape, tables, first, r);
          });
  }

 private:
  struct Table {
    View ids;
    RowIndices named;  ///< by these
    const float* rows = nullptr;
    std::int64_t count = 0;
    std::int64_t id(std::size_t i) const {
      return ids.data ? named[static_cast<std::int64_t>(i)] : static_cast<std::int64_t>(i);
    }
  };
  using Tables = std::array<Table, ops::EmbeddingAttrs::kTables>;

  /// Along the last axis of the first ids.
  static std::int64_t length_in_order(std::span<const std::int64_t> ids, std::int64_t rows) {
    if (ids.empty()) fail("ids of rank 0 beside rows in order");
    if (ids.back() > rows || rows == 1)
      fail(std::to_string(rows) + " rows in order for " + std::to_string(ids.back()) + " ids");
    return ids.back();
  }

  /// The width of all tables. Every id is checked here, once: nothing may fail on another thread.
  std::int64_t read(const Invocation& call, Tables& tables) const {
    const std::span<const std::int64_t> first = call.input(1).dims;
    if (first.size() != 2) fail("a table is not of rank 2");
    for (std::size_t i = 0; i < embedding_.tables; ++i) {
      Table& table = tables[i];
      const View rows = call.input(embedding_.table(i));
      if (rows.dims.size() != 2) fail("a table is not of rank 2");
      table.count = rows.dims[0];
      table.rows = typed_input<float>(call, kOp, embedding_.table(i), {{table.count, first[1]}});
      if (i >= embedding_.with_ids()) continue;
      table.ids = call.input(2 * i);
      table.named = RowIndices(table.ids, table.count);
      if (!table.named.whole()) fail("ids are neither int32 nor int64");
      if (const std::string wrong = table.named.wrong(table.named.count()); !wrong.empty()) fail("id " + wrong);
    }
    return first[1];
  }

  void write(const Broadcast& shape, const Tables& tables, const NormRows& first, std::size_t r) const {
    const std::size_t n = first.n, last = embedding_.tables - 1;
    const auto row_of = [&](std::size_t i) {
      return tables[i].rows + static_cast<std::size_t>(tables[i].id(shape.offset(i, r))) * n;
    };
    NormRows row = first;
    row.y += r * n;
    if (row.sum) row.sum += r * n;
    row.x = row_of(0);
    // The normalization adds the last row itself.
    const std::size_t before = embedding_.norm ? last : last + 1;
    if (before > 1 || !embedding_.norm) row.x = std::copy_n(row.x, n, row.y) - n;
    for (std::size_t i = 1; i < before; ++i) code_.channels.add_rows(row_of(i), 1, n, row.y);
    if (!embedding_.norm) return;
    if (last > 0) row.residual = row_of(last);
    code_.norm.layer_norm(row);
  }

  ops::EmbeddingAttrs embedding_;
  const VectorCode& code_;
};

Verdict accepts(const Call& call, const Target&) {
  Verdict why;
  const std::optional<ops::EmbeddingAttrs> embedding = ops::read_attrs<ops::EmbeddingAttrs>(call, why);
  if (!embedding) return why;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Operand& operand = call.in(i);
    if (!embedding->is_ids(i)) {
      if (operand.dtype != DType::f32) return no("is not float32", operand.name);
    } else if (operand.dtype != DType::i64 && operand.dtype != DType::i32) {
      return no("is neither int32 nor int64", operand.name);
    }
  }
  return yes();
}

double cost(const Call& call, const Target& target) {
  const double passes = 1 + static_cast<double>(ops::EmbeddingAttrs(call).tables);
  return target.stream(4 * passes * call.outputs.at(0).shape.known_elements());
}

}  // namespace

const Kernel embedding = {
    .op = "Embedding",
    .name = "cpu.embedding",
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<Embedding>(call, vector_code(target));
    },
};

}  // namespace modelflow::cpu
