// Eight threads that optimize at the same time, then eight that run the same kernels on tensors of changing shapes:
// equal results, and nothing that ThreadSanitizer (preset "tsan") would call a race. No runtime takes part: what it
// does between its own threads cannot be seen from here.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "backends/host_invocation.h"
#include "modelflow/kernel.h"
#include "modelflow/modelflow.h"
#include "src/pipeline.h"

namespace {

using namespace modelflow;

constexpr int kThreads = 8, kTurns = 3;
std::atomic<int> failures{0};

void fail(const std::string& what) {
  ++failures;
  fmt::print(stderr, "threads: {}\n", what);
}

void side_by_side(const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&work, i] {
      try {
        work(i);
      } catch (const std::exception& error) {
        fail(error.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
}

constexpr const char* kModels[] = {
    R"((float[N,4,8,8] x) => (float[N,8] y) <float[8,4,3,3] w, float[8] b, float[8,8] v> {
         c = Conv<pads = [1, 1, 1, 1]>(x, w, b)  s = Sigmoid(c)  m = Mul(c, s)  p = GlobalAveragePool(m)
         f = Flatten(p)  y = MatMul(f, v) })",
    R"((float[N,S,16] x) => (float[N,S,16] y) <float[16,16] w, float[16] b, float half = {0.5}, float one = {1}, float r = {1.4142135}> {
         m = MatMul(x, w)  a = Add(m, b)  d = Div(a, r)  e = Erf(d)  p = Add(e, one)  h = Mul(a, half)  g = Mul(h, p)
         y = Add(g, x) })",
    R"((float[N,S,16] x) => (float[N,S,16] y) <float[16] s, float[16] t, float two = {2}, float eps = {0.00001}> {
         m = ReduceMean<axes = [-1]>(x)  d = Sub(x, m)  q = Pow(d, two)  v = ReduceMean<axes = [-1]>(q)  e = Add(v, eps)
         r = Sqrt(e)  n = Div(d, r)  u = Mul(n, s)  y = Add(u, t) })",
};

/// Constants that the texts name and leave open.
std::string completed(std::string text) {
  for (const auto& [open, count] : {std::pair<std::string, int>{"[8,4,3,3] w", 288},
                                    {"[8] b", 8},
                                    {"[8,8] v", 64},
                                    {"[16,16] w", 256},
                                    {"[16] b", 16},
                                    {"[16] s", 16},
                                    {"[16] t", 16}}) {
    const std::size_t at = text.find(open);
    if (at == std::string::npos) continue;
    std::string numbers;
    for (int i = 0; i < count; ++i) numbers += fmt::format("{}0.{}", i ? ", " : "", (i * 37) % 91 + 1);
    text.insert(at + open.size(), " = {" + numbers + "}");
  }
  return text;
}

std::string optimized(const std::string& text) {
  Options options;
  options.measure = options.verify = false;
  const Pipeline pipeline(options, nullptr);
  Report report;
  const Pipeline::Forms forms = pipeline.fuse(Model::from_text(text), {}, report);
  return Pipeline::emit(pipeline.lay_out(forms.whole(), {}, report)).to_bytes();
}

void optimize_side_by_side() {
  for (const char* model : kModels) {
    const std::string text = completed(model), expected = optimized(text);
    side_by_side([&](int) {
      for (int turn = 0; turn < kTurns; ++turn)
        if (optimized(text) != expected) fail("another thread's model came out differently");
    });
  }
}

Tensor filled(DType dtype, const Dims& dims, unsigned seed) {
  const std::size_t size = byte_count(dtype, dims);
  return Tensor::make(dtype, dims, [&](std::byte* out) {
    for (std::size_t i = 0; i < size; ++i)
      out[i] = static_cast<std::byte>((i * 31 + seed * 17) % 61);  // no NaN in any type
  });
}

/// Tensors for a call; `turn` cuts the first axis of the first one, where the call leaves it open.
std::vector<Tensor> operands_of(const Call& call, unsigned turn) {
  std::vector<Tensor> operands;
  for (const Operand& in : call.inputs) {
    Dims dims = in.shape.values();
    const bool first = operands.empty() && !dims.empty() && call.inputs.size() <= 2;
    if (first && dims[0] > 1 && turn % 2 == 1) --dims[0];
    operands.push_back(in.constant ? *in.constant : filled(in.dtype, dims, turn));
  }
  return operands;
}

std::string result_of(const Implementation& kernel, const Call& call, HostThreads& threads, unsigned turn) {
  HostInvocation invocation(threads, operands_of(call, turn));
  try {
    kernel.run(invocation);
  } catch (const Error& error) {
    return error.what();
  }
  const Tensor result = invocation.result(0, call.outputs.at(0).dtype);
  return {reinterpret_cast<const char*>(result.data()), result.bytes()};
}

bool small(const Call& call) {
  return std::all_of(call.inputs.begin(), call.inputs.end(),
                     [](const Operand& in) { return in.shape.known() && in.shape.known_elements() <= 1 << 16; });
}

void run_side_by_side(const Kernel& kernel, const Call& call) {
  std::vector<std::string> expected;
  HostThreads two(2);
  const auto shared = kernel.create(call, Target::host());
  for (unsigned turn = 0; turn < kTurns; ++turn) expected.push_back(result_of(*shared, call, two, turn));
  side_by_side([&](int) {
    HostThreads threads(2);
    const auto own = kernel.create(call, Target::host());  // packs the weights that the others have packed
    for (unsigned turn = 0; turn < kTurns; ++turn) {
      if (result_of(*shared, call, threads, turn) != expected[turn])
        fail(fmt::format("{} differs, shared", kernel.name));
      if (result_of(*own, call, threads, turn) != expected[turn]) fail(fmt::format("{} differs", kernel.name));
    }
  });
}

int run_kernels() {
  int calls = 0;
  for (const FusedOp* op : fused_ops())
    for (const Kernel* kernel : kernels()) {
      int taken = 0;
      for (const Call& call : op->samples()) {
        if (taken == 4 || !small(call) || !kernel->takes(call, Target::host())) continue;
        run_side_by_side(*kernel, call);
        ++taken, ++calls;
      }
    }
  return calls;
}

}  // namespace

int main() {
  optimize_side_by_side();
  const int calls = run_kernels();
  fmt::print("{} models and {} calls by {} threads, {} failures\n", std::size(kModels), calls, kThreads,
             failures.load());
  return failures == 0 && calls > 50 ? 0 : 1;
}
