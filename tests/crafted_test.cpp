// Models that say what no exporter would: axes beyond the rank, lists of nothing. Some of them even run, in branches
// that nobody takes or for inputs of no elements; no pass may die of them.
#include <gtest/gtest.h>

#include "backends/host_invocation.h"
#include "modelflow/modelflow.h"
#include "tests/call_model.h"

namespace modelflow {
namespace {

class Crafted : public testing::TestWithParam<const char*> {};

TEST_P(Crafted, DoesNotKillAPass) {
  Options options;
  options.measure = options.verify = false;
  options.target = Target::parse("cpu:avx512_vnni");
  try {
    optimize(Model::from_text(std::string("<ir_version: 8, opset_import: [\"\" : 17]> test ") + GetParam()), options);
  } catch (const Error&) {  // may be said as well
  }
}

const char* const kModels[] = {
    // negative extents, which ONNX Runtime takes, to die of what it reads them with
    R"((float[N,2] x) => (float[N,2] y) <float[4,1] a = {1, 2, 3, 4}, int64[2] d = {4, -8}, int64[1] first = {0}, int64[1] two = {2}, int64[1] axis = {1}> {
      e = Expand(a, d)  s = Slice(e, first, two, axis)  m = ReduceMax(s)  y = Add(x, m)
    })",
    // a transpose of more axes than there are, behind a norm whose scale a constant goes into
    R"((float[H,W,2] x) => (float[] y) <float[2] w = {1, 2}, float[2] b = {2, 1}, float[2,1,1] k = {3, 5}> {
      n = LayerNormalization(x, w, b)  t = Transpose<perm = [0, 3, 1, 2]>(n)  y = Mul(t, k)
    })",
    // indices of more numbers than there are axes in front of them
    R"((float[2,1,3] a, float[2,1,3] b) => (float[] y) <float[2,2,3] blank = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, int64[2,1,3] i = {0, 0, 0, 1, 0, 0}, int64[2,1,3] j = {0, 1, 0, 1, 1, 0}> {
      p = ScatterND(blank, i, a)  y = ScatterND(p, j, b)
    })",
    // a number among rows
    R"((float x) => (float[] y) <float[1,1,2] token = {1, 2}, float[1,2,2] positions = {10, 20, 30, 40}> {
      c = Concat<axis = 1>(token, x)  y = Add(c, positions)
    })",
    // weights of a GRU that are a number
    R"((float[2,3,1] x) => (float[2,3,1,4] y) <float w = {-0.25}, float[1,12,4] r = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48}> {
      s = Transpose<perm = [1, 0, 2]>(x)  a = GRU<hidden_size = 4>(s, w, r)  y = Transpose<perm = [2, 0, 1, 3]>(a)
    })",
    // an axis of 2^63 - 1
    R"((float[B,2,8,8] x) => (float[B,8] y) <float[2,2,1,1] w = {1, 2, 3, 4}, int64[1] far = {9223372036854775807}> {
      c = Conv(x, w)  y = ReduceSum<keepdims = 0>(c, far)
    })",
    R"((float[B,2,8,8] x) => (int64[B,8] y) <float[2,2,1,1] w = {1, 2, 3, 4}> { c = Conv(x, w)  y = ArgMax<axis = 77>(c) })",
    // an axis behind those of a number
    R"((float[N,S,8] x) => (float[N,S,2,4] y) <int64 zero = {0}, int64 one = {1}, int64[1] axis = {1}, int64[1] two = {2}, int64[1] four = {4}> {
      s = Shape(x)  a = Gather(s, zero)  b = Gather(s, one)  c = Unsqueeze(a, axis)  d = Unsqueeze(b, axis)
      t = Concat<axis = 0>(c, d, two, four)  y = Reshape(x, t)
    })",
    // the end of a slice along no axis, a transpose without an order, a target of nothing
    R"((float[2,9] x) => (float[2,3,3,1] y) <int64 step = {2}, int64 n = {4}, int64[1] zero = {0}, int64[0] none = {}, int64[1] last = {-1}> {
      z = STFT(x, step, , n)  re = Slice(z, zero, none, last)  y = Neg(re)
    })",
    R"((float[2,9] x) => (float[2,3,3,2] y, float w) <int64 step = {2}, int64 n = {4}, int64[0] none = {}> {
      z = STFT(x, step, , n)  y = Transpose(z)  w = Reshape(z, none)
    })",
    // strides for one axis of two, an image without axes
    R"((float[N,2,8,8] x, float z) => (float[N,2,4,4] y, float[1,2,1,1] v) <float[2,2,1,1] w = {1, 2, 3, 4}> {
      a = Conv<strides = [2]>(x, w)  y = Conv(a, w)  v = Conv<auto_pad = "SAME_UPPER", strides = [2, 2]>(z, w)
    })",
    // strides for one axis of two, behind a convolution that may take them over
    R"((float[N,2,8,8] x) => (float[N,2,8,8] y) <float[2,2,1,1] w = {1, 2, 3, 4}> {
      a = Conv(x, w)  r = Relu(a)  y = Conv<strides = [2]>(r, w)
    })",
    // a product of no channels
    R"((float[N,0] x) => (float[N,0] y) <float[0,0] w = {}, float[0] b = {}, float half = {0.5}> {
      m = MatMul(x, w)  a = Add(b, m)  y = Div(a, half)
    })",
    // weights of rank 1
    R"((uint8[N,2,3,4] x) => (float[N,2,6,8] y) <float xs = {0.05}, uint8 xz = {120}, int8[1] w = {1}, float ws = {0.02}, int8 wz = {0}> {
      xf = DequantizeLinear(x, xs, xz)  wf = DequantizeLinear(w, ws, wz)  y = ConvTranspose<strides = [2, 2]>(xf, wf)
    })",
    // a result of no elements behind a recurrent op
    R"((float[1,S,2] x) => (float[1,S,1] y) <float[1,3,2] w = {0.5, -0.25, 0.75, 1, -0.5, 0.25}, float[1,3,1] r = {0.5, -0.25, 0.75}, int64[3] flat = {1, -1, 0}> {
      t = Transpose<perm = [1, 0, 2]>(x)  f = GRU<hidden_size = 1>(t, w, r)  g = Reshape(f, flat)  y = Concat<axis = 2>(g, g)
    })",
    // rows that became one number in front of a linear layer, between Transposes
    R"((float[N,2,5,3] c) => (float[5,N,2] y) <float[2,6] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, int64[0] flat = {}, int64[3] rows = {5, -1, 2}> {
      t = Transpose<perm = [2, 0, 1, 3]>(c)  x = Reshape(t, flat)  g = Gemm<transB = 1>(x, w)  r = Reshape(g, rows)
      y = Transpose<perm = [1, 0, 2]>(r)
    })",
    // a recurrent layer whose weights are one number, beside one with weights
    R"((float[S,N,2] x) => (float[S,2,N,1] y) <float[1,1,2] w = {0.5, -0.25}, float[1,1,1] r = {0.5}, float v = {0.25}, float[1,1,1] q = {-0.25}> {
      f = RNN<hidden_size = 1>(x, w, r)  g = RNN<hidden_size = 1, direction = "reverse">(x, v, q)  y = Concat<axis = 1>(f, g)
    })",
    // two directions that are joined only where nobody reads it
    R"((float[S,N,2] x) => (float[S,1,N,1] y) <float[1,1,2] w = {0.5, -0.25}, float[1,1,1] r = {0.5}, float[1,1,2] v = {0.25, 0.75}, float[1,1,1] q = {-0.25}> {
      y = RNN<hidden_size = 1>(x, w, r)  g = RNN<hidden_size = 1, direction = "reverse">(x, v, q)
      f = Concat<axis = 1>(y, g)  d = Relu(f)
    })",
    // a transpose that takes axes twice
    R"((float[N,2,8,8] x) => (float[N,8,4,4] y) <int64[6] cut = {0, 2, 4, 2, 4, 2}, int64[4] join = {0, 8, 4, 4}, float[1,8,1,1] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
      a = Reshape(x, cut)  t = Transpose<perm = [0, 1, 3, 1, 2, 4]>(a)  j = Reshape(t, join)  y = Conv(j, w)
    })"};

INSTANTIATE_TEST_SUITE_P(Models, Crafted, testing::ValuesIn(kModels));

/// Throws on every kernel of the op: what it says no model holds, and 64 bits do not either.
void expect_refused(Call call, Tensor x) {
  call.inputs = {{.name = "x", .dtype = DType::f32, .shape = Shape::of(x.dims())}};
  EXPECT_FALSE(find_fused_op(call.op)->infer(call)) << describe(call);
  call.inputs[0].shape = Shape();  // known at run time only
  HostThreads threads(1);
  for (const Kernel* kernel : kernels()) {
    if (kernel->op != call.op || !kernel->fits(Target::host())) continue;
    HostInvocation invocation(threads, {x});
    EXPECT_THROW(kernel->create(call, Target::host())->run(invocation), Error) << kernel->name << " " << describe(call);
  }
}

TEST(CraftedCall, FactorsBeyond64BitsAreAnError) {
  for (const char* op : {"Concat", "Upsample"}) {
    for (const Ints& factors : {Ints{1, (std::int64_t{1} << 61) + 1}, Ints{(std::int64_t{1} << 62) + 1, 1}}) {
      Call call{op, find_fused_op(op)->defaults, {}, {}};
      call.attrs.set("factors", factors);
      expect_refused(call, Tensor::of<float>({1, 4, 8, 1}, std::vector<float>(32)));
    }
  }
}

TEST(CraftedCall, HeadsBeyond64BitsAreAnError) {
  for (const char* op : {"Attention", "ChannelAttention", "TalkingHeads"}) {
    constexpr std::int64_t heads = 6148914691236517206;  // three times as many are 2 in 64 bits
    Call call{op, find_fused_op(op)->defaults, {}, {}};
    call.attrs.set("packed", std::int64_t{1}).set("num_heads", heads);
    if (std::string_view(op) == "Attention") call.attrs.set("kv_heads", heads);
    expect_refused(call, Tensor::of<float>({1, 2, 8}, std::vector<float>(16)));
  }
}

}  // namespace
}  // namespace modelflow
