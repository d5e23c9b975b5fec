// The fused op ColumnEmbedding: each column of ids names rows of a table of its own, side by side (categorical features
// of tables: entity embeddings, arXiv 1604.06737; DLRM, arXiv 1906.00091).
#include <algorithm>

#include "backends/call_attrs.h"
#include "backends/ops/fits.h"
#include "backends/ops/sample_weights.h"

namespace modelflow::ops {
namespace {

std::vector<std::string> inputs(const Call& call) {
  std::vector<std::string> names = {"ids"};
  for (std::size_t i = 0; i < CallAttrs(call).ints("columns").size(); ++i) names.push_back("table" + std::to_string(i));
  return names;
}

std::string body(const Call& call, int) {
  const Ints columns = CallAttrs(call).ints("columns");
  std::string text = "{\n", rows;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string number = std::to_string(i);
    text += "column" + number + " = Constant <value = int64 {" + std::to_string(columns[i]) + "}> ()\n" + "ids" +
            number + " = Gather <axis = 1> (ids, column" + number + ")\n" + "rows" + number +
            " = Gather <axis = 0> (table" + number + ", ids" + number + ")\n";
    rows += (i ? ", rows" : "rows") + number;
  }
  return text + "y = Concat <axis = 1> (" + rows + ")\n}";
}

Verdict infer(Call& call) {
  const Ints columns = CallAttrs(call).ints("columns");
  const Operand& ids = call.in(0);
  if (columns.empty() || call.inputs.size() != columns.size() + 1) return no("columns do not fit the inputs");
  if (ids.dtype != DType::i64 && ids.dtype != DType::i32 && ids.dtype != DType::undefined)
    return no("is neither int32 nor int64", ids.name);
  if (Verdict v = fits(ids, {Dim(), Dim()}); !v) return v;
  Dim width(0);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Operand& table = call.in(i + 1);
    if (Verdict v = fits(table, {Dim(), Dim()}); !v) return v;
    width = width + (table.shape.has_rank() ? table.shape[1] : Dim());
    const std::optional<std::int64_t> most = ids.shape.has_rank() ? ids.shape[1].number() : std::nullopt;
    if (columns[i] < 0 || (most && columns[i] >= *most))
      return no("has no column " + std::to_string(columns[i]), ids.name);
  }
  call.outputs.resize(1);
  call.outputs[0].dtype = float_type(call);
  call.outputs[0].shape = Shape({ids.shape.has_rank() ? ids.shape[0] : Dim(), width});
  return yes();
}

/// Rows are copied twice, by Gather and by Concat; the ids of a column are read on their own.
double plain_bytes(const Call& call) {
  const double ids = call.in(0).shape.has_rank() ? call.in(0).shape[0].number().value_or(1) : 1;
  return 8 * call.outputs.at(0).shape.known_elements() + 16 * ids * static_cast<double>(call.inputs.size() - 1);
}

/// In each column that is for a table, rows of it are named from both ends; elsewhere nothing that any table has.
Tensor ids_of(std::int64_t batch, const std::vector<Dims>& tables, const Ints& columns, std::int64_t all) {
  return Tensor::make(DType::i64, {batch, all}, [&](std::byte* bytes) {
    auto* ids = reinterpret_cast<std::int64_t*>(bytes);
    std::fill_n(ids, batch * all, std::int64_t{1} << 40);
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::size_t i = 0; i < tables.size(); ++i)
        ids[b * all + columns[i]] = (b * 7 + 3) % (2 * tables[i][0]) - tables[i][0];
  });
}

std::vector<Call> samples() {
  static const Samples made = [] {
    Samples all;
    const auto add = [&](std::int64_t batch, const std::vector<Dims>& tables, Ints columns, std::int64_t of) {
      all.weights.push_back(ids_of(batch, tables, columns, of));
      Call call{"ColumnEmbedding", {{"columns", columns}}, {}, {}};
      call.inputs = {constant_operand("ids", all.weights.back())};
      for (std::size_t i = 0; i < tables.size(); ++i)
        call.inputs.push_back(all.operand(("table" + std::to_string(i)).c_str(), tables[i], 4));
      if (!infer(call)) throw Error(ErrorKind::internal, "a sample of ColumnEmbedding contradicts itself");
      call.outputs[0].name = "y";
      all.calls.push_back(std::move(call));
    };
    add(64, {{1000, 16}, {50, 16}, {7, 16}, {300, 16}}, {0, 1, 2, 3}, 4);
    add(5, {{3, 2}, {11, 33}, {4, 1}}, {4, 0, 2}, 6);
    add(1, {{9, 8}}, {1}, 2);
    add(0, {{3, 2}, {5, 4}}, {0, 1}, 2);
    add(3, {{3, 0}, {3, 4}}, {0, 0}, 1);
    add(2, std::vector<Dims>(70, {4, 3}), Ints(70, 1), 2);  // more than a kernel of a GPU takes at once
    return all;
  }();
  return made.calls;
}

}  // namespace

extern const FusedOp column_embedding_op = {
    .kind = "ColumnEmbedding",
    .doc = "Rows of tables side by side, each of which ids in a column of their own name.",
    .names = 1,
    .min_inputs = 2,
    .max_inputs = 257,
    .input_types = {DType::undefined, DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = [](const Call&, int) { return std::vector<std::string>(); },
    .infer = infer,
    .samples = samples,
    .defaults = {{"columns", Ints{}}},
    .plain_bytes = plain_bytes,
};

}  // namespace modelflow::ops
