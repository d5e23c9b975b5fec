// What works on rows: reductions, normalizations, softmax, embeddings, rotary positions.
#include <limits>

#include "backends/ops/pointwise_program.h"
#include "tests/domains/domain.h"

namespace modelflow::domains {
namespace {

const std::vector<Special> kAll = {Special::nan, Special::infinite, Special::huge, Special::tiny};

/// Lines around a reduction; `r` stands for it. Inputs behind x0 are those of `shapes`.
bool reduce(const Chosen& c, Operands& made) {
  std::string program = c.word("program");
  program.replace(program.find('@'), 1, c.word("reduction"));
  const Dims x = c.list("x");
  const std::int64_t from_end = -c.number("axis"), axes = c.number("axes");
  if (from_end > std::ssize(x) || axes > from_end) return false;
  // ONNX Runtime keeps a NaN where it comes first and drops it elsewhere; here it stays.
  const std::string op = c.word("reduction");
  if (made.special() == Special::nan && (op == "ReduceMax" || op == "ReduceMin")) return false;
  made.call.attrs.set("program", program);
  const std::size_t inputs = program.find("x2") != std::string::npos   ? 3
                             : program.find("x1") != std::string::npos ? 2
                                                                       : 1;
  const std::string second = c.word("second");
  Dims beside = x;
  if (second == "number") beside = {};
  if (second == "row") beside = {x.back()};
  if (second == "column" && !x.empty()) beside.back() = 1;
  made.feed("x0", made.uniform(x, -2, 2));
  if (inputs > 1) made.feed_as_is("x1", made.uniform(beside, 0.5, 2));
  if (inputs > 2) made.feed_as_is("x2", made.uniform({}, 0.5, 2));
  return true;
}

bool layer_norm(const Chosen& c, Operands& made) {
  const Dims x = c.list("x");
  const auto axes = static_cast<std::size_t>(-c.number("axis"));
  Dims other = x;
  const std::string residual = c.word("other");
  const bool before = residual != "none" && residual != "after";
  made.call.attrs.set("residual", before ? "before" : residual);
  if (!before && c.is("keep_sum")) return false;
  if (residual == "repeats" && !x.empty()) other[0] = 1;
  if (residual == "wider") other.insert(other.begin(), 2);
  if (axes > x.size()) return false;
  const Dims scale(x.end() - static_cast<std::ptrdiff_t>(axes), x.end());
  made.feed("x", made.normal(x));
  made.constant("scale", made.uniform(scale, 0.5, 2), c.is("constant"));
  if (!c.is("rms")) made.constant("bias", made.uniform(scale, -1, 1), c.is("constant"));
  if (residual != "none") made.feed("residual", made.normal(other));
  return true;
}

Tensor mask_numbers(const Dims& dims, Operands& made) {
  const Tensor noise = made.normal(dims);
  return Tensor::make(DType::f32, dims, [&](std::byte* bytes) {
    for (std::int64_t i = 0; i < noise.elements(); ++i)
      reinterpret_cast<float*>(bytes)[i] =
          made.chance(0.2) ? std::numeric_limits<float>::lowest() : noise.as<float>()[static_cast<std::size_t>(i)];
  });
}

bool softmax(const Chosen& c, Operands& made) {
  const Dims x = c.list("x");
  const std::string kind = c.word("mask"), shape = c.word("mask_shape");
  const std::int64_t from_end = -c.number("axis");
  if (from_end > std::ssize(x) || (kind != "none" && from_end != 1)) return false;
  made.feed("x", made.normal(x, c.real("size")));
  made.call.attrs.set("has_mask", kind == "none" ? 0 : 1).set("boolean_mask", kind == "flags" ? 1 : 0);
  if (kind != "flags") made.call.attrs.set("replaces", "none");
  if (kind == "none") return true;
  Dims mask = x;
  if (shape == "number") mask = {};
  if (shape == "row") mask = {x.back()};
  if (shape == "column") mask.back() = 1;
  if (shape == "first" && x.size() > 1) mask[0] = 1;
  if (kind == "numbers") return made.constant("mask", mask_numbers(mask, made), c.is("constant")), true;
  const bool first = c.word("replaces") == "true";
  made.call.attrs.set("mask_true", first ? -1e4f : 0.5f);
  made.call.attrs.set("mask_false", first ? 0.25f : std::numeric_limits<float>::lowest());
  made.constant("mask", made.flags(mask, 0.7), c.is("constant"));
  return true;
}

bool embedding(const Chosen& c, Operands& made) {
  const std::int64_t tables = c.number("tables"), width = c.number("width");
  const std::string shapes = c.word("ids");
  if (c.is("keep_sum") && !c.is("norm")) return false;
  const Dims first = Chosen::numbers_in(shapes.substr(0, shapes.find('|'))),
             others = Chosen::numbers_in(shapes.substr(shapes.find('|') + 1));
  if (c.is("in_order") && (tables < 2 || first.empty())) return false;
  const std::int64_t with_ids = tables - (c.is("in_order") ? 1 : 0);
  for (std::int64_t i = 0; i < with_ids; ++i) {
    const std::int64_t rows = 1 + made.below(40);
    const std::string number = std::to_string(i);
    made.constant(("ids" + number).c_str(), made.ids(i ? others : first, rows, c.is("narrow")), c.is("constant"));
    made.constant(("table" + number).c_str(), made.normal({rows, width}), made.chance(0.7));
  }
  if (c.is("in_order")) {
    const std::int64_t rows = std::max<std::int64_t>(first.back(), 2) + made.below(3);
    made.constant("rows", made.normal({rows, width}), made.chance(0.7));
  }
  if (!c.is("norm")) return true;
  made.constant("scale", made.uniform({width}, 0.5, 2));
  made.constant("bias", made.uniform({width}, -1, 1));
  return true;
}

bool column_embedding(const Chosen& c, Operands& made) {
  const std::int64_t tables = c.number("tables"), all = tables + c.number("beside"), width = c.number("width");
  const std::int64_t rows = 1 + made.below(40);
  Ints columns;
  for (std::int64_t i = 0; i < tables; ++i) columns.push_back(c.is("twice") ? 0 : c.is("turned") ? all - 1 - i : i);
  made.call.attrs.set("columns", columns);
  made.constant("ids", made.ids({c.number("batch"), all}, rows, c.is("narrow")), c.is("constant"));
  for (std::int64_t i = 0; i < tables; ++i) {
    const std::int64_t wide = c.is("alike") ? width : width + made.below(20);
    made.constant(("table" + std::to_string(i)).c_str(), made.normal({rows + made.below(5), wide}), made.chance(0.7));
  }
  return true;
}

bool scatter_add(const Chosen& c, Operands& made) {
  const Dims data = c.list("data");
  const std::int64_t count = c.number("updates");
  Dims updates = data, indices(data.size(), 1);
  updates[0] = count;
  indices[0] = c.is("one") ? 1 : count;
  made.feed("data", made.normal(data));
  made.constant("indices", made.ids(indices, data[0], c.is("narrow")), c.is("constant"));
  made.feed("updates", made.normal(updates));
  return true;
}

bool rotary(const Chosen& c, Operands& made) {
  const std::int64_t batch = c.number("batch"), heads = c.number("num_heads"), rows = c.number("rows"),
                     half = c.number("half"), rest = c.is("partial") ? c.number("rest") : 0;
  const std::int64_t size = 2 * half + rest;
  const bool flat = c.word("x_layout") == "BSH";
  made.feed("x", made.normal(flat ? Dims{batch, rows, heads * size} : Dims{batch, heads, rows, size}));
  const std::int64_t width = c.is("half_width") ? half : 2 * half;
  const auto angles = [&](const std::string& kind) {
    if (kind == "rows") return Dims{rows, width};
    if (kind == "one row") return Dims{width};
    if (kind == "batches") return Dims{batch, 1, rows, width};
    return Dims{1, heads, rows, width};
  };
  const Dims dims = angles(c.word("angles"));
  made.feed("cos", made.uniform(dims, -1, 1));
  made.feed("sin", made.uniform(c.is("alike") ? dims : Dims{rows, width}, -1, 1));
  return true;
}

}  // namespace

std::vector<Domain> row_domains() {
  return {
      {"Reduce",
       {words("reduction", {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSumSquare"}),
        words("program", {"@ x0; Neg t0", "Abs x0; @ t0", "@ x0; Mul t0 x0", "Mul x0 x1; @ t0; Add t1 x2",
                          "Sub x0 x1; @ t0; Add t1 x2; Sigmoid t2; Mul t0 t3", "Add x0 x1; @ t0; Tanh t1",
                          "@ x0; Sub x0 t0; Abs t1", "Sub x0 x1; Mul t0 t0; @ t1; Add t2 x2; Div t1 t3"}),
        words("x", {"1", "7", "3,16", "2,17", "5,33", "3,600", "2,3,31", "4,1,64", "0,4", "3,5,6,7", "70,3", "2,65,2",
                    "2,300,40", "1,1030"}),
        numbers("axis", {-1, -1, -2, -3}), numbers("axes", {1, 1, 2}), flag("keepdims"),
        words("second", {"whole", "number", "row", "column"})},
       reduce,
       kAll},
      {"LayerNorm",
       {words("x",
              {"1", "5", "3,15", "7,16", "2,17", "4,31", "3,64", "2,3,65", "2,2,130", "5,2,3,18", "0,8", "33,384"}),
        numbers("axis", {-1, -1, -2, -3}), flag("rms"), flag("keep_sum"), flag("constant"),
        words("other", {"none", "same", "repeats", "wider", "after"}), reals("epsilon", {1e-5f, 1e-12f, 0.1f})},
       layer_norm,
       {Special::nan, Special::infinite, Special::tiny}},
      {"Softmax",
       {words("x", {"1", "7", "3,1", "2,15", "5,16", "3,17", "2,33", "4,64", "2,3,65", "2,3,5,40", "0,4", "2,0,3",
                    "7,130", "3,200,9"}),
        numbers("axis", {-1, -1, -2, -3}), reals("scale", {1, 0.125, -3}), flag("log"),
        words("mask", {"none", "numbers", "flags"}), words("replaces", {"none", "true", "false"}),
        words("mask_shape", {"whole", "number", "row", "column", "first"}), reals("size", {1, 30}), flag("constant")},
       softmax,
       {Special::nan, Special::infinite, Special::huge, Special::tiny}},
      {"Embedding",
       {numbers("tables", {1, 2, 3}), flag("in_order"), flag("norm"), flag("keep_sum"), flag("narrow"),
        flag("constant"), words("ids", {"2,7|2,7", "2,7|7", "1|4,9", "4,9|4,1", "|", "0,4|4", "3,5|1,5", "1,1|1,1"}),
        numbers("width", {1, 3, 15, 16, 17, 33, 64, 100}), reals("epsilon", {1e-5f, 1e-12f})},
       embedding,
       kAll,
       {"axis"}},
      {"ColumnEmbedding",
       {numbers("batch", {0, 1, 2, 9, 100, 700}), numbers("tables", {1, 2, 3, 17}), numbers("beside", {0, 1, 3}),
        numbers("width", {0, 1, 3, 16, 33}), flag("alike"), flag("turned"), flag("twice"), flag("narrow"),
        flag("constant")},
       column_embedding,
       kAll,
       {"columns"}},
      {"ScatterAdd",
       {words("data", {"1", "30", "5,1", "7,3", "40,8", "9,33", "2,64", "3,2,17", "1,0", "300,100", "4,150"}),
        numbers("updates", {0, 1, 2, 9, 100, 1000}), flag("one"), flag("narrow"), flag("constant")},
       scatter_add,
       kAll},
      {"Rotary",
       {numbers("batch", {0, 1, 2, 3}), numbers("num_heads", {1, 2, 3}), numbers("rows", {0, 1, 2, 9, 17}),
        numbers("half", {1, 2, 7, 8, 15, 16, 20, 33}), numbers("rest", {0, 1, 2, 17, 32}),
        words("x_layout", {"BSH", "BNSH"}), flag("interleaved"), flag("half_width"), flag("partial"), flag("alike"),
        words("angles", {"rows", "one row", "batches", "heads"})},
       rotary,
       kAll},
  };
}

}  // namespace modelflow::domains
