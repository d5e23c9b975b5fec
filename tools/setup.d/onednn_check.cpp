// Proves that the cut-down oneDNN links and computes: a matmul, a convolution and a reorder, against known results.
#include <cstdio>
#include <oneapi/dnnl/dnnl.hpp>
#include <oneapi/dnnl/dnnl_ukernel.hpp>
#include <vector>

using namespace dnnl;
using dims = memory::dims;
using tag = memory::format_tag;
using type = memory::data_type;

static memory::desc plain(dims d, tag t) { return {d, type::f32, t}; }

static bool all_equal(const std::vector<float>& values, float expected) {
  for (float v : values)
    if (v != expected) return false;
  return true;
}

static bool matmul_works(engine& cpu, stream& s) {
  std::vector<float> a(16 * 32, 1.f), b(32 * 48, 2.f), c(16 * 48);
  memory ma(plain({16, 32}, tag::ab), cpu, a.data()), mb(plain({32, 48}, tag::ab), cpu, b.data()),
      mc(plain({16, 48}, tag::ab), cpu, c.data());
  matmul(matmul::primitive_desc(cpu, ma.get_desc(), mb.get_desc(), mc.get_desc()))
      .execute(s, {{DNNL_ARG_SRC, ma}, {DNNL_ARG_WEIGHTS, mb}, {DNNL_ARG_DST, mc}});
  s.wait();
  return all_equal(c, 64.f);
}

static bool convolution_works(engine& cpu, stream& s) {
  std::vector<float> x(1 * 16 * 4 * 4, 1.f), w(16 * 16, 0.5f), y(1 * 16 * 4 * 4);
  memory mx(plain({1, 16, 4, 4}, tag::nchw), cpu, x.data()), mw(plain({16, 16, 1, 1}, tag::oihw), cpu, w.data()),
      my(plain({1, 16, 4, 4}, tag::nhwc), cpu, y.data());
  convolution_forward::primitive_desc conv(cpu, prop_kind::forward_inference, algorithm::convolution_direct,
                                           plain({1, 16, 4, 4}, tag::nhwc), plain({16, 16, 1, 1}, tag::any),
                                           my.get_desc(), {1, 1}, {0, 0}, {0, 0});
  memory nhwc(conv.src_desc(), cpu), packed(conv.weights_desc(), cpu);
  reorder(mx, nhwc).execute(s, mx, nhwc);
  reorder(mw, packed).execute(s, mw, packed);
  convolution_forward(conv).execute(s, {{DNNL_ARG_SRC, nhwc}, {DNNL_ARG_WEIGHTS, packed}, {DNNL_ARG_DST, my}});
  s.wait();
  return all_equal(y, 8.f);
}

// The ukernel needs AVX2 or newer; a machine without it still passes, as the kernels then take another way.
static bool ukernel_works() {
  try {
    ukernel::brgemm kernel(4, 16, 8, 1, 8, 16, 16, type::f32, type::f32, type::f32);
    kernel.finalize();
    kernel.generate();
    std::vector<float> a(4 * 8, 1.f), b(8 * 16, 3.f), c(4 * 16);
    std::vector<char> scratch(kernel.get_scratchpad_size() + 1);
    kernel.execute(a.data(), b.data(), {{0, 0}}, c.data(), scratch.data());
    return all_equal(c, 24.f);
  } catch (const error& e) {
    return e.status == dnnl_unimplemented;
  }
}

int main() {
  engine cpu(engine::kind::cpu, 0);
  stream s(cpu);
  const bool matmul_ok = matmul_works(cpu, s), convolution_ok = convolution_works(cpu, s), ukernel_ok = ukernel_works();
  std::printf("matmul %d convolution %d ukernel %d\n", matmul_ok, convolution_ok, ukernel_ok);
  return matmul_ok && convolution_ok && ukernel_ok ? 0 : 1;
}
