// The kernels of MatMulBf16 by oneDNN, where the CPU has vdpbf16ps and no AMX.
#include "backends/cpu/gemm/kernels.h"
#include "backends/cpu/gemm/low_precision_problem.h"
#include "backends/cpu/onednn/kernels.h"
#include "backends/cpu/onednn/moderate.h"
#include "backends/cpu/onednn/product.h"

namespace modelflow::cpu {
namespace {

using dnnl::memory;
using ops::MatMulAttrs;
using ops::MatMulBf16Attrs;
using tag = memory::format_tag;

/// A primitive for one number of rows, what rounds them for it, and the weights as it likes them.
struct Prepared {
  dnnl::matmul::primitive_desc desc;
  dnnl::matmul primitive;
  memory::desc given, residual;
  dnnl::reorder rounding;
  std::shared_ptr<const std::byte> packed;
};

class OnednnMatMulBf16 : public ModerateOnly {
 public:
  OnednnMatMulBf16(const Call& call, const Target& target)
      : ModerateOnly(call, target),
        attrs_(call),
        activation_(activation_of(call)),
        to_bf16_(call.outputs.at(0).dtype == DType::bf16) {}

  void run(Invocation& call) const override {
    const MatMulBf16Problem p(attrs_, call);
    const bool empty = p.m == 0 || p.n == 0;
    // What oneDNN cannot take: as on CPUs that have no products of bfloat16.
    if (!empty && !takes(call)) return run_by(to_bf16_ ? matmul_to_bf16_widened : matmul_bf16_widened, call);
    void* y = call.output(0, p.y);
    if (empty) return;
    onednn_guard("MatMulBf16", [&] { execute(p, *prepare(p, call.threads()), y, call); });
  }

 private:
  void execute(const MatMulBf16Problem& p, const Prepared& ready, void* y, Invocation& call) const {
    const auto at = [&](const memory::desc& desc, const void* data) {
      return memory(desc, onednn_engine(), const_cast<void*>(data));  // oneDNN does not write to its inputs
    };
    OnednnStream stream(call);
    memory a = at(ready.desc.src_desc(), p.a.data);
    if (p.a.dtype != DType::bf16) {
      a.set_data_handle(call.scratch(ready.desc.src_desc().get_size()));
      ready.rounding.execute(stream.stream(), {{DNNL_ARG_FROM, at(ready.given, p.a.data)}, {DNNL_ARG_TO, a}});
    }
    const void* b = ready.packed ? static_cast<const void*>(ready.packed.get()) : p.b;
    std::unordered_map<int, memory> args = {{DNNL_ARG_SRC, a},
                                            {DNNL_ARG_WEIGHTS, at(ready.desc.weights_desc(), b)},
                                            {DNNL_ARG_DST, at(ready.desc.dst_desc(), y)}};
    if (p.bias) args.emplace(DNNL_ARG_BIAS, at(ready.desc.query_md(dnnl::query::weights_md, 1), p.bias));
    const bool before = attrs_.residual == ops::Residual::before;
    const int position = residual_position(before, activation_);
    if (p.residual)
      args.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1, at(ready.residual, p.residual));
    stream.execute(ready.primitive, ready.desc.scratchpad_desc(), std::move(args));
  }

  std::shared_ptr<const Prepared> prepare(const MatMulBf16Problem& p, std::size_t threads) const {
    return prepared_.get(p.m, [&] { return make(p, threads); });
  }

  std::shared_ptr<const Prepared> make(const MatMulBf16Problem& p, std::size_t threads) const {
    plan_for_threads(threads);
    const auto bf16 = memory::data_type::bf16, f32 = memory::data_type::f32;
    const auto m = static_cast<memory::dim>(p.m), n = static_cast<memory::dim>(p.n), k = static_cast<memory::dim>(p.k);
    const memory::desc y({m, n}, to_bf16_ ? bf16 : f32, tag::ab), added({m, n}, f32, tag::ab);
    const memory::desc plain({k, n}, bf16, attrs_.trans_b ? tag::ba : tag::ab);
    const memory::desc given({m, k}, f32, tag::ab), a({m, k}, bf16, tag::ab);
    const dnnl::matmul::primitive_desc desc(onednn_engine(), a, memory::desc({k, n}, bf16, tag::any),
                                            p.bias ? memory::desc({1, n}, f32, tag::ab) : memory::desc(), y,
                                            product_attr(attrs_.residual, activation_, added));
    const dnnl::reorder rounding({onednn_engine(), given, onednn_engine(), a});
    auto made = std::make_shared<Prepared>(Prepared{desc, dnnl::matmul(desc), given, added, rounding, nullptr});
    if (desc.weights_desc() != plain) made->packed = onednn_packed(weights_, plain, desc.weights_desc());
    return made;
  }

  MatMulBf16Attrs attrs_;
  ActivationSpec activation_;
  bool to_bf16_;
  mutable PreparedFor<std::size_t, Prepared> prepared_;
};

std::unique_ptr<Implementation> create(const Call& call, const Target& target) {
  return std::make_unique<OnednnMatMulBf16>(call, target);
}

}  // namespace

const Kernel onednn_matmul_bf16 = {
    .op = "MatMulBf16",
    .name = "cpu.onednn_matmul_bf16",
    .needs = Isa::avx512_bf16,
    .accepts = accepts_rounded_product,
    .cost = rounded_product_cost,
    .create = create,
};

const Kernel onednn_matmul_to_bf16 = {
    .op = "MatMulToBf16",
    .name = "cpu.onednn_matmul_to_bf16",
    .needs = Isa::avx512_bf16,
    .accepts = accepts_rounded_product,
    .cost = rounded_product_cost,
    .create = create,
};

}  // namespace modelflow::cpu
