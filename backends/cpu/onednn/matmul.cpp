// The kernel of MatMul by oneDNN.
#include <algorithm>
#include <array>
#include <optional>

#include "backends/cpu/gemm/epilogue.h"
#include "backends/cpu/gemm/matmul_problem.h"
#include "backends/cpu/onednn/kernels.h"
#include "backends/cpu/onednn/moderate.h"
#include "backends/cpu/onednn/product.h"

namespace modelflow::cpu {
namespace {

using dnnl::memory;
using ops::MatMulAttrs;
using tag = memory::format_tag;

/// A primitive for one set of extents. Constant weights are packed as it likes them.
struct Prepared {
  dnnl::matmul::primitive_desc desc;
  dnnl::matmul primitive;
  std::shared_ptr<const std::byte> packed;
};

memory::dims strides(const memory::dims& dims, bool transposed) {
  const auto rows = std::max<memory::dim>(dims[1], 1), columns = std::max<memory::dim>(dims[2], 1);
  if (transposed) return {rows * columns, 1, rows};
  return {rows * columns, columns, 1};
}

class OnednnMatMul : public Implementation {
 public:
  explicit OnednnMatMul(const Call& call) : attrs_(call), activation_(activation_of(call)) {
    const Tensor* b = call.in(1).constant;
    if (!b || b->rank() < 2 || b->elements() == 0) return;
    plain_ = moderate(*b);
    const Dims& dims = b->dims();
    if (dims[dims.size() - 1] * dims[dims.size() - 2] == b->elements()) weights_ = *b;
  }

  // One product at a time when there are several: the generic path is about being right on every machine.
  void run(Invocation& call) const override {
    const MatMulProblem p(attrs_, call);
    auto* y = static_cast<float*>(call.output(0, p.y));
    if (p.batch == 0 || p.m == 0 || p.n == 0) return;
    if (p.k == 0 || !moderate_operands(call) || !moderate_weights(call)) return by_definition(p, y, call);
    onednn_guard("MatMul", [&] {
      const std::shared_ptr<const Prepared> ready = prepare(p, call.threads());
      OnednnStream stream(call);
      std::byte* scratch = call.scratch(ready->desc.scratchpad_desc().get_size() + 64);
      for (std::size_t i = 0; i < p.batch; ++i) execute(p, *ready, i, y, scratch, stream.stream());
    });
  }

 private:
  bool moderate_weights(Invocation& call) const { return plain_ ? *plain_ : moderate(call.input(1), call); }

  // Of depth 0 oneDNN would leave the memory as it is.
  void by_definition(const MatMulProblem& p, float* y, Invocation& call) const {
    const ProductEpilogue rest{y, p.n, p.bias, p.residual, attrs_.residual, activation_};
    const std::size_t a_row = attrs_.trans_a ? 1 : p.k, a_step = attrs_.trans_a ? p.m : 1;
    const std::size_t b_row = attrs_.trans_b ? 1 : p.n, b_step = attrs_.trans_b ? p.k : 1;
    call.parallel(p.batch * p.m, [&](std::size_t row) {
      const float *a = p.a + p.offsets[row / p.m].first + row % p.m * a_row, *b = p.b + p.offsets[row / p.m].second;
      float* c = y + row * p.n;
      std::fill_n(c, p.n, 0.0f);
      for (std::size_t i = 0; i < p.k; ++i)
        for (std::size_t j = 0; j < p.n; ++j) c[j] += a[i * a_step] * b[i * b_row + j * b_step];
      for (std::size_t j = 0; attrs_.scale != 1 && j < p.n; ++j) c[j] *= attrs_.scale;
      finish_row(rest, row);
    });
  }

  void execute(const MatMulProblem& p, const Prepared& ready, std::size_t i, float* y, std::byte* scratch,
               dnnl::stream& stream) const {
    const dnnl::engine& engine = onednn_engine();
    const auto at = [&](const memory::desc& desc, const void* data) {
      return memory(desc, engine, const_cast<void*>(data));  // oneDNN does not write to its inputs
    };
    const std::size_t size = p.m * p.n;
    const void* b = ready.packed ? static_cast<const void*>(ready.packed.get()) : p.b + p.offsets[i].second;
    std::unordered_map<int, memory> args = {{DNNL_ARG_SRC, at(ready.desc.src_desc(), p.a + p.offsets[i].first)},
                                            {DNNL_ARG_WEIGHTS, at(ready.desc.weights_desc(), b)},
                                            {DNNL_ARG_DST, at(ready.desc.dst_desc(), y + i * size)},
                                            {DNNL_ARG_SCRATCHPAD, at(ready.desc.scratchpad_desc(), scratch)}};
    if (p.bias) args.emplace(DNNL_ARG_BIAS, at(ready.desc.query_md(dnnl::query::weights_md, 1), p.bias));
    if (p.residual) {
      args.emplace(
          DNNL_ARG_ATTR_MULTIPLE_POST_OP(residual_position(attrs_.residual == ops::Residual::before, activation_)) |
              DNNL_ARG_SRC_1,
          at(ready.desc.dst_desc(), p.residual + i * size));
    }
    const float scale = attrs_.scale;
    if (scale != 1) {
      const memory::desc one({1}, memory::data_type::f32, tag::a);
      args.emplace(DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC, at(one, &scale));
    }
    ready.primitive.execute(stream, args);
  }

  std::shared_ptr<const Prepared> prepare(const MatMulProblem& p, std::size_t threads) const {
    return prepared_.get({p.m, p.n, p.k}, [&] { return make(p, threads); });
  }

  std::shared_ptr<const Prepared> make(const MatMulProblem& p, std::size_t threads) const {
    plan_for_threads(threads);
    const auto f32 = memory::data_type::f32;
    const auto m = static_cast<memory::dim>(p.m), n = static_cast<memory::dim>(p.n), k = static_cast<memory::dim>(p.k);
    const memory::dims a = {1, m, k}, b = {1, k, n}, y = {1, m, n};
    const memory::desc plain_b(b, f32, strides(b, attrs_.trans_b));
    const bool pack = weights_.elements() > 0 && weights_.rank() > 1;
    const memory::desc any_b(b, f32, tag::any), y_desc(y, f32, tag::abc);
    const memory::desc bias = p.bias ? memory::desc({1, 1, n}, f32, tag::abc) : memory::desc();
    const dnnl::matmul::primitive_desc desc(onednn_engine(), memory::desc(a, f32, strides(a, attrs_.trans_a)),
                                            pack ? any_b : plain_b, bias, y_desc, primitive_attr(y_desc));
    auto made = std::make_shared<Prepared>(Prepared{desc, dnnl::matmul(desc), nullptr});
    if (pack && desc.weights_desc() != plain_b) made->packed = onednn_packed(weights_, plain_b, desc.weights_desc());
    return made;
  }

  dnnl::primitive_attr primitive_attr(const memory::desc& y) const {
    dnnl::primitive_attr attr = product_attr(attrs_.residual, activation_, y);
    if (attrs_.scale != 1) attr.set_scales_mask(DNNL_ARG_SRC, 0);
    return attr;
  }

  MatMulAttrs attrs_;
  ActivationSpec activation_;
  Tensor weights_;
  std::optional<bool> plain_;  ///< constant weights: they are moderate
  mutable PreparedFor<std::array<std::size_t, 3>, Prepared> prepared_;
};

Verdict accepts(const Call& call, const Target& target) {
  if (Verdict v = accepts_matmul(call, target); !v) return v;
  return MatMulAttrs(call).row_bias ? no("is a bias of rows", call.in(2).name) : yes();
}

double cost(const Call& call, const Target& target) {
  return std::max(target.compute(matmul_flops(call), 0.6), target.stream(matmul_bytes(call)));
}

}  // namespace

const Kernel onednn_matmul = {
    .op = "MatMul",
    .name = "cpu.onednn_matmul",
    .needs = Isa::avx2,
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target&) -> std::unique_ptr<Implementation> {
      return std::make_unique<OnednnMatMul>(call);
    },
};

}  // namespace modelflow::cpu
