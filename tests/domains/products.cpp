// Matrix products: float32, bfloat16, 8 and 4 bits.
#include "src/core/bf16.h"
#include "tests/domains/domain.h"

namespace modelflow::domains {
namespace {

const Axis kRows = numbers("m", {0, 1, 2, 3, 6, 15, 17, 31, 64, 97});
const Axis kDepth = numbers("k", {1, 2, 3, 15, 16, 17, 33, 64, 65, 130, 601});
const Axis kColumns = numbers("n", {0, 1, 3, 15, 16, 17, 31, 33, 65, 130, 200, 333});
const Axis kResidual = words("residual", {"none", "before", "after", "times"});

std::vector<Axis> axes(std::vector<Axis> own) {
  for (const Axis& axis : {kRows, kDepth, kColumns, kResidual, flag("has_bias"), numbers("constant", {1, 1, 1, 0})})
    own.push_back(axis);
  for (Axis& axis : activations()) own.push_back(std::move(axis));
  return own;
}

Dims joined(Dims batch, std::int64_t a, std::int64_t b) {
  batch.push_back(a), batch.push_back(b);
  return batch;
}

/// What follows the product in all of them. `y`: batch dims and rows.
void epilogue(const Chosen& c, Dims y, Operands& made) {
  const std::int64_t n = c.number("n");
  const Dims bias = c.is("has_bias") && c.is("row_bias") ? Dims{y.back(), 1} : Dims{n};
  if (c.is("has_bias")) made.constant("bias", made.uniform(bias, -1, 1), c.is("constant"));
  y.push_back(n);
  if (c.word("residual") != "none") made.feed("residual", made.normal(y));
}

bool matmul(const Chosen& c, Operands& made) {
  // ONNX Runtime leaves the results of several products of depth 0 as it finds the memory.
  const bool empty = c.number("k") == 1 && c.number("m") == 2 && c.word("batches") == "|";
  const std::int64_t m = c.number("m"), k = empty ? 0 : c.number("k"), n = c.number("n");
  const std::string batches = c.word("batches");  // of a, of b
  const std::size_t bar = batches.find('|');
  // Nor does it repeat an operand for an empty batch: the body does for weights on the left.
  if (batches == "|0" && !c.is("row_bias")) return false;
  const Dims left = Chosen::numbers_in(batches.substr(0, bar)), right = Chosen::numbers_in(batches.substr(bar + 1));
  const bool turned_a = c.is("trans_a"), turned_b = c.is("trans_b");
  made.feed("a", made.normal(turned_a ? joined(left, k, m) : joined(left, m, k)));
  const Dims b = turned_b ? joined(right, n, k) : joined(right, k, n);
  c.is("constant") ? made.constant("b", made.weights(b, k)) : made.feed("b", made.weights(b, k));
  Dims y(std::max(left.size(), right.size()), 1);
  for (const Dims& dims : {left, right})
    for (std::size_t i = 0; i < dims.size(); ++i) {
      std::int64_t& at = y[y.size() - dims.size() + i];
      at = at == 1 ? dims[i] : at;
    }
  y.push_back(m);
  epilogue(c, y, made);
  return true;
}

Dims rows_of(const Chosen& c) {
  Dims rows = c.list("batch");
  rows.push_back(c.number("m"));
  return rows;
}

void feed_a(const Chosen& c, Operands& made, bool narrow = false) {
  Dims dims = rows_of(c);
  dims.push_back(c.number("k"));
  const Tensor a = made.normal(dims);
  made.feed("a", narrow ? to_bf16(a) : a);
}

bool matmul_bf16(const Chosen& c, Operands& made) {
  const std::int64_t k = c.number("k"), n = c.number("n");
  const bool narrow = c.word("a_type") == "bf16";
  made.call.attrs.set("round_a", narrow || c.word("a_type") == "rounded" ? 1 : 0);
  feed_a(c, made, narrow);
  made.constant("b", to_bf16(made.weights(c.is("trans_b") ? Dims{n, k} : Dims{k, n}, k)), c.is("constant"));
  epilogue(c, rows_of(c), made);
  return true;
}

bool qmatmul(const Chosen& c, Operands& made) {
  const std::int64_t k = c.number("k"), n = c.number("n");
  const std::string steps = c.word("steps");
  made.call.attrs.set("a_per_tensor", steps == "tensor" ? 1 : 0).set("a_scale", steps == "known" ? 0.02f : 0.0f);
  // What tensors in 8 bits make of NaN and infinity is not said by their body: the casts of integers are undefined.
  const bool none = made.special() == Special::nan || made.special() == Special::infinite;
  if (none && steps != "rows") return false;
  if (steps == "known") made.call.attrs.set("a_zero_point", made.below(256));
  feed_a(c, made);
  // Weights of at most 64 are bounded in pairs (src/core/bounded_pairs.h).
  const auto largest = static_cast<int>(c.number("largest"));
  made.constant("b", made.steps(c.is("trans_b") ? Dims{n, k} : Dims{k, n}, largest), c.is("constant"));
  made.constant("b_scale", made.weights({n}, 5000 * k), c.is("constant"));  // the mean square of the steps
  if (c.is("has_zero_point")) {
    const Tensor zeros = made.steps({n});
    made.constant("b_zero_point",
                  Tensor::make(DType::f32, {n},
                               [&](std::byte* bytes) {
                                 std::ranges::copy(zeros.as<std::int8_t>(), reinterpret_cast<float*>(bytes));
                               }),
                  c.is("constant"));
  }
  epilogue(c, rows_of(c), made);
  return true;
}

bool qmatmul4(const Chosen& c, Operands& made) {
  const std::int64_t block = c.number("block"), blocks = c.number("blocks"), n = c.number("n");
  Dims dims = rows_of(c);
  dims.push_back(block * blocks);
  made.feed("a", made.normal(dims));
  made.constant("b", made.bytes({n, blocks, block / 2}), c.is("constant"));
  made.constant("b_scale", made.weights({n, blocks}, 20 * block * blocks), c.is("constant"));
  if (c.is("has_zero_point")) {
    made.constant("b_zero_point",
                  Tensor::make(DType::f32, {n, blocks},
                               [&](std::byte* bytes) {
                                 for (std::int64_t i = 0; i < n * blocks; ++i)
                                   reinterpret_cast<float*>(bytes)[i] = static_cast<float>(made.below(16));
                               }),
                  c.is("constant"));
  }
  epilogue(c, rows_of(c), made);
  return true;
}

bool matmul_nbits(const Chosen& c, Operands& made) {
  const std::int64_t block = c.number("block"), blocks = c.number("blocks"), n = c.number("n"), bits = c.number("bits");
  if (n == 0) return false;
  Dims dims = rows_of(c);
  dims.push_back(block * blocks);
  made.feed("a", made.normal(dims));
  made.constant("b", made.bytes({n, blocks, block * bits / 8}));
  made.constant("b_scale", made.weights({n, blocks}, (bits == 4 ? 20 : 5400) * block * blocks));
  epilogue(c, rows_of(c), made);
  return true;
}

}  // namespace

std::vector<Domain> product_domains() {
  const std::vector<Special> all = {Special::nan, Special::infinite, Special::huge, Special::tiny};
  // Steps of numbers close to the largest overflow in one order of their scales and not in another.
  const std::vector<Special> rounded = {Special::nan, Special::infinite, Special::tiny};
  const Axis batch = words("batch", {"", "", "2", "3,1", "0"});
  const std::vector<Axis> narrow = axes({flag("trans_b"), batch, words("a_type", {"f32", "rounded", "bf16"})});
  const std::vector<Axis> floats =
      axes({flag("trans_a"), flag("trans_b"), flag("row_bias"), reals("scale", {1, 1, 0.125, -2}),
            words("batches", {"|", "|", "2|2", "2|", "|3", "2,1|3", "0|", "1|4", "|0", "5|1", "2,3|1,1", "3|3"})});
  const std::vector<Axis> many =
      narrowed(floats, {numbers("trans_a", {0}), numbers("row_bias", {0}), words("batches", {"|", "2|"}),
                        numbers("m", {64, 97, 290}), numbers("k", {130, 192, 800}), numbers("n", {100, 128, 333}),
                        numbers("constant", {1}), words("activation", {"None", "Relu", "Gelu"})});
  return {
      {"MatMul", floats, matmul, all},
      {"MatMul", many, matmul, all},
      {"MatMulBf16", narrow, matmul_bf16, all},
      {"MatMulToBf16", narrow, matmul_bf16, all},
      {"QMatMul",
       axes({flag("trans_b"), flag("has_zero_point"), batch, words("steps", {"rows", "tensor", "known"}),
             numbers("largest", {127, 64})}),
       qmatmul, rounded},
      {"QMatMul4",
       axes({numbers("block", {16, 32, 64, 128, 256}), numbers("blocks", {1, 2, 3}), flag("has_zero_point"), batch}),
       qmatmul4, rounded},
      {"MatMulNBits",
       axes({numbers("bits", {4, 8}), numbers("block", {32, 64, 128, 256}), numbers("blocks", {1, 2, 3}), batch}),
       matmul_nbits, all},
  };
}

}  // namespace modelflow::domains
