// The fused op Embedding: rows of tables by ids, their sum and its layer normalization.
#include <algorithm>

#include "backends/call_attrs.h"
#include "backends/ops/broadcast.h"
#include "backends/ops/embedding_attrs.h"
#include "backends/ops/layer_norm_text.h"
#include "backends/ops/read_attrs.h"
#include "backends/ops/sample_weights.h"

namespace modelflow::ops {

EmbeddingAttrs::EmbeddingAttrs(const CallAttrs& attrs)
    : tables(static_cast<std::size_t>(std::max<std::int64_t>(attrs.integer("tables"), 0))),
      in_order(attrs.flag("in_order")),
      norm(attrs.flag("norm")),
      keep_sum(attrs.flag("keep_sum")),
      epsilon(attrs.number("epsilon")) {
  if (tables < 1 || tables > kTables) throw Error(ErrorKind::invalid_input, "takes one to three tables");
  if (in_order && tables < 2) throw Error(ErrorKind::invalid_input, "rows in order need ids of another table");
  if (keep_sum && !norm) throw Error(ErrorKind::invalid_input, "keep_sum needs norm");
}

namespace {

std::vector<std::string> inputs(const Call& call) {
  const EmbeddingAttrs embedding(call);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < embedding.tables; ++i) {
    if (i < embedding.with_ids()) names.push_back("ids" + std::to_string(i));
    names.push_back("table" + std::to_string(i));
  }
  if (embedding.norm) names.insert(names.end(), {"scale", "bias"});
  return names;
}

/// As many rows as the first ids have along their last axis.
std::string first_rows(const std::string& rows, const std::string& table) {
  return "extents = Shape (ids0)\nfrom = Constant <value = int64[1] {-1}> ()\n"
         "to = Constant <value = int64[1] {2147483647}> ()\nzero = Constant <value = int64[1] {0}> ()\n"
         "count = Slice (extents, from, to)\n" +
         rows + " = Slice (" + table + ", zero, count, zero)\n";
}

std::string body(const Call& call, int opset) {
  const EmbeddingAttrs embedding(call);
  const std::string result = !embedding.norm ? "y" : embedding.keep_sum ? "y1" : "sum";
  std::string text = "{\n", sum;
  for (std::size_t i = 0; i < embedding.tables; ++i) {
    const std::string number = std::to_string(i), last = i + 1 == embedding.tables ? result : "sum" + number;
    const std::string rows = i == 0 ? (embedding.tables == 1 ? result : "sum0") : "rows" + number;
    text += i < embedding.with_ids() ? rows + " = Gather <axis = 0> (table" + number + ", ids" + number + ")\n"
                                     : first_rows(rows, "table" + number);
    if (i > 0) text += last + " = Add (" + sum + ", " + rows + ")\n";
    sum = last;
  }
  if (embedding.norm) text += layer_norm_text(false, 1, result, embedding.epsilon, opset);
  return text + "}";
}

std::vector<std::string> attributes(const Call& call, int opset) {
  if (!EmbeddingAttrs(call).norm) return {};
  return layer_norm_attributes(false, opset);
}

/// A table is [rows, width], scale and bias are [width].
Verdict fits(const Operand& operand, std::size_t rank, Dim& width) {
  if (!operand.shape.has_rank()) return yes();
  if (operand.shape.rank() != rank) return no("is not of rank " + std::to_string(rank), operand.name);
  const Dim& found = operand.shape.back();
  if (found.known() && width.known() && !(found == width))
    return no("has rows of " + found.str() + ", not of " + width.str(), operand.name);
  if (!width.known()) width = found;
  return yes();
}

/// Extents of ids broadcast; nothing is known when the rank of one is not.
Verdict join(const Operand& ids, bool& known, std::vector<Dim>& from_end) {
  known &= ids.shape.has_rank();
  for (std::size_t i = 0; known && i < ids.shape.rank(); ++i) {
    const Dim& dim = ids.shape[ids.shape.rank() - 1 - i];
    if (i >= from_end.size()) from_end.emplace_back(1);
    const std::optional<Dim> both = broadcast(from_end[i], dim);
    if (!both) return no("extents do not broadcast: " + from_end[i].str() + " and " + dim.str(), ids.name);
    from_end[i] = *both;
  }
  return yes();
}

/// For the last axis of the first ids. One row alone would be repeated.
Verdict enough_rows(const Operand& table, const Operand& ids) {
  if (!ids.shape.has_rank() || ids.shape.rank() == 0) return no("has no axis to take rows along", ids.name);
  if (!table.shape.has_rank()) return yes();
  const Dim &rows = table.shape[0], &wanted = ids.shape.back();
  if (rows.number() == 1) return no("has one row, which would be repeated", table.name);
  if (rows.known() && wanted.known() && wanted.value() > rows.value())
    return no("has " + rows.str() + " rows for " + wanted.str() + " ids", table.name);
  return yes();
}

Verdict infer(Call& call) {
  Verdict why;
  const std::optional<EmbeddingAttrs> embedding = read_attrs<EmbeddingAttrs>(call, why);
  if (!embedding) return why;
  if (embedding->norm && CallAttrs(call).integer("axis") != -1) return no("axis is not -1");
  Dim width;
  std::vector<Dim> dims;
  bool known = true;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const std::size_t rank = i < embedding->scale() ? 2 : 1;
    const bool ids = embedding->is_ids(i);
    if (Verdict v = ids ? join(call.in(i), known, dims) : fits(call.in(i), rank, width); !v) return v;
  }
  if (embedding->in_order) {
    const Operand& table = call.in(embedding->table(embedding->tables - 1));
    if (Verdict v = enough_rows(table, call.in(0)); !v) return v;
    const Operand place{table.name, DType::i64, Shape({call.in(0).shape.back()})};
    if (Verdict v = join(place, known, dims); !v) return v;
  }
  std::reverse(dims.begin(), dims.end());
  dims.push_back(width);
  call.outputs.resize(embedding->keep_sum ? 2 : 1);
  for (Operand& output : call.outputs) {
    output.dtype = float_type(call);
    output.shape = known ? Shape(dims) : Shape();
  }
  return yes();
}

/// Ids from -rows to rows - 1.
Tensor ids_of(const Dims& dims, std::int64_t rows, bool narrow) {
  return Tensor::make(narrow ? DType::i32 : DType::i64, dims, [&](std::byte* bytes) {
    for (std::int64_t i = 0; i < element_count(dims); ++i) {
      const std::int64_t id = (i * 7 + 3) % (2 * rows) - rows;
      if (narrow) {
        reinterpret_cast<std::int32_t*>(bytes)[i] = static_cast<std::int32_t>(id);
      } else {
        reinterpret_cast<std::int64_t*>(bytes)[i] = id;
      }
    }
  });
}

struct Sample {
  std::vector<Dims> ids;
  std::int64_t width = 0;
  bool norm = false, keep_sum = false, narrow = false;
  std::int64_t in_order = 0;  ///< rows of one more table
};

void add(Samples& all, const Sample& sample) {
  Attrs attrs{{"tables", static_cast<std::int64_t>(sample.ids.size())}, {"axis", std::int64_t{-1}}};
  attrs.set("epsilon", Attr(1e-5f)).set("norm", sample.norm ? 1 : 0).set("keep_sum", sample.keep_sum ? 1 : 0);
  Call call{"Embedding", std::move(attrs), {}, {}};
  std::int64_t rows = 30;
  for (const Dims& dims : sample.ids) {
    const std::string number = std::to_string(call.inputs.size() / 2);
    all.weights.push_back(ids_of(dims, rows, sample.narrow));
    call.inputs.push_back(constant_operand(("ids" + number).c_str(), all.weights.back()));
    call.inputs.push_back(all.operand(("table" + number).c_str(), {rows, sample.width}, 4));
    rows = rows > 10 ? rows - 10 : 2;
  }
  if (sample.in_order) {
    call.attrs.set("in_order", 1).set("tables", static_cast<std::int64_t>(sample.ids.size()) + 1);
    call.inputs.push_back(
        all.operand(("table" + std::to_string(sample.ids.size())).c_str(), {sample.in_order, sample.width}, 4));
  }
  if (sample.norm) {
    call.inputs.push_back(all.operand("scale", {sample.width}, 4));
    call.inputs.push_back(all.operand("bias", {sample.width}, 4));
  }
  if (!infer(call)) throw Error(ErrorKind::internal, "a sample of Embedding contradicts itself");
  call.outputs[0].name = "y";
  if (sample.keep_sum) call.outputs[1].name = "sum";
  all.calls.push_back(std::move(call));
}

std::vector<Call> samples() {
  static const Samples made = [] {
    Samples all;
    add(all, {.ids = {{2, 7}}, .width = 33, .norm = true});
    add(all, {.ids = {{2, 7}, {1, 7}}, .width = 48});
    add(all, {.ids = {{2, 7}, {7}}, .width = 100, .norm = true, .keep_sum = true});
    add(all, {.ids = {{3, 128}, {3, 128}, {1, 128}}, .width = 384, .norm = true});
    add(all, {.ids = {{1}, {4, 9}, {4, 1}}, .width = 17, .norm = true, .keep_sum = true, .narrow = true});
    add(all, {.ids = {{1, 1}, {5, 3}, {5, 3}}, .width = 1, .narrow = true});
    add(all, {.ids = {{}, {}}, .width = 6, .norm = true});
    add(all, {.ids = {{0, 4}, {4}}, .width = 8, .norm = true});
    add(all, {.ids = {{2, 4}}, .width = 0});
    add(all, {.ids = {{3, 128}, {3, 128}}, .width = 384, .norm = true, .in_order = 512});
    add(all, {.ids = {{2, 1, 7}}, .width = 33, .norm = true, .keep_sum = true, .in_order = 7});
    add(all, {.ids = {{5, 1}}, .width = 16, .narrow = true, .in_order = 2});
    add(all, {.ids = {{2, 0}}, .width = 8, .norm = true, .in_order = 3});
    return all;
  }();
  return made.calls;
}

}  // namespace

extern const FusedOp embedding_op = {
    .kind = "Embedding",
    .doc =
        "Sum of the rows that ids of one to three kinds name in their tables, the last of which may be rows in order; "
        "layer normalization of it.",
    .names = 1,
    .min_inputs = 2,
    .max_inputs = 8,
    .max_outputs = 2,
    // Ids are int32 or int64. Where there are fewer tables, scale and bias stand at their place.
    .input_types = {DType::undefined, DType::f32, DType::undefined, DType::f32, DType::undefined, DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = samples,
    .defaults = {{"tables", std::int64_t{1}},
                 {"in_order", std::int64_t{0}},
                 {"norm", std::int64_t{0}},
                 {"keep_sum", std::int64_t{0}},
                 {"axis", std::int64_t{-1}},
                 {"epsilon", 1e-5f}},
};

}  // namespace modelflow::ops
