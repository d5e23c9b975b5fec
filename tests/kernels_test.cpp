// The conformance walk: every fused op x its sample calls. The reference is the op's body, run by ONNX Runtime with
// optimisation off; against it stand every kernel of the table that takes the call and the plugin in a session.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <thread>

#include "backends/host_invocation.h"
#include "modelflow/kernel.h"
#include "modelflow/modelflow.h"
#include "src/core/bf16.h"
#include "src/emit/emit.h"
#include "src/verify/exact_products.h"
#include "src/verify/reference.h"
#include "tests/call_model.h"
#include "tests/close.h"
#include "tests/vector_state.h"

namespace modelflow {
namespace {

Tensor random(const Dims& dims, unsigned seed, DType dtype = DType::f32) {
  std::mt19937 engine(seed);
  if (dtype == DType::u8) {
    return Tensor::make(dtype, dims, [&](std::byte* bytes) {
      for (std::int64_t i = 0; i < element_count(dims); ++i) bytes[i] = static_cast<std::byte>(engine() % 256);
    });
  }
  std::normal_distribution<float> normal;
  Tensor made = Tensor::make(DType::f32, dims, [&](std::byte* bytes) {
    for (std::int64_t i = 0; i < element_count(dims); ++i) reinterpret_cast<float*>(bytes)[i] = normal(engine);
  });
  return dtype == DType::bf16 ? to_bf16(made) : made;
}

class KernelsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    runtime_ = Runtime::find(&why);
    if (!runtime_) GTEST_SKIP() << why;
  }

  std::vector<Tensor> run_all(const Model& model, const Feeds& feeds, const SessionOptions& options) {
    const std::unique_ptr<Session> session = open_session(*runtime_, model, options);
    std::vector<Tensor> results = session->run(feeds);
    EXPECT_FALSE(upper_halves_in_use()) << model.graph().nodes().front()->op();
    return results;
  }
  Tensor run(const Model& model, const Feeds& feeds, const SessionOptions& options) {
    return run_all(model, feeds, options).at(0);
  }

  static Feeds feeds_of(const Call& call) {
    Feeds feeds;
    unsigned seed = 1;
    for (const Operand& in : call.inputs) {
      if (!in.constant) feeds[in.name] = random(in.shape.values(), seed++, in.dtype);
    }
    return feeds;
  }

  static void expect_near(const Tensor& want, const Tensor& got, const std::string& what, float tolerance = 2e-5f) {
    const std::string apart = difference(want, got, tolerance);
    ASSERT_TRUE(apart.empty()) << what << ": " << apart;
  }

  static void expect_all_near(const std::vector<Tensor>& want, const std::vector<Tensor>& got, const std::string& what,
                              float tolerance) {
    ASSERT_EQ(want.size(), got.size()) << what;
    for (std::size_t i = 0; i < want.size(); ++i)
      ASSERT_NO_FATAL_FAILURE(expect_near(want[i], got[i], what, tolerance));
  }

  /// The op's kernels without a runtime: all that this machine can run, made with and without constants.
  static void walk_kernels(const Call& call, const Feeds& feeds, const std::vector<Tensor>& want,
                           HostThreads& threads) {
    std::vector<Tensor> operands;
    for (const Operand& in : call.inputs) operands.push_back(in.constant ? *in.constant : feeds.at(in.name));
    const Target host = Target::host();
    int accepted = 0;
    for (const Kernel* kernel : kernels()) {
      if (!kernel->takes(call, host)) continue;
      ++accepted;
      const std::unique_ptr<Implementation> ready = kernel->create(call, host);
      ASSERT_NE(ready, nullptr) << kernel->name;
      HostInvocation invocation(threads, operands);
      for (int repeat = 0; repeat < 2; ++repeat) {  // what a kernel keeps from the first run must serve the second
        invocation.restart();
        ready->run(invocation);
        std::vector<Tensor> got;
        for (std::size_t i = 0; i < want.size(); ++i) got.push_back(invocation.result(i, want[i].dtype()));
        ASSERT_NO_FATAL_FAILURE(
            expect_all_near(want, got, std::string(kernel->name) + " " + describe(call), tolerance_of(call.op)));
      }
      EXPECT_GE(kernel->cost(call, host), 0) << kernel->name;
    }
    EXPECT_GT(accepted, 0) << "no kernel takes " << describe(call);
  }

  /// Where no kernel of the op fits this machine its names are not registered, and the body runs.
  static bool runs_here(const FusedOp& op) {
    return std::ranges::any_of(
        kernels(), [&](const Kernel* kernel) { return kernel->op == op.kind && kernel->fits(Target::host()); });
  }

  void walk(const FusedOp& op, std::int64_t opset) {
    if (!runs_here(op)) return;
    HostThreads threads(3);
    for (const Call& call : op.samples()) {
      const Model model = model_of(call, opset);
      const Feeds feeds = feeds_of(call);
      const std::vector<Tensor> want = run_all(model, feeds, {.optimize = false});
      ASSERT_NO_FATAL_FAILURE(walk_kernels(call, feeds, want, threads));
      for (const char* target : {"", "cpu:avx2"}) {
        SessionOptions options{.threads = 2, .plugin = plugin_path()};
        if (*target) options.config["modelflow.target"] = target;
        if (*target && !host_isas().has(Isa::avx2)) continue;
        const std::vector<Tensor> got = run_all(model, feeds, options);
        ASSERT_NO_FATAL_FAILURE(
            expect_all_near(want, got, std::string("plugin ") + target + " " + describe(call), tolerance_of(call.op)));
      }
    }
  }

  std::shared_ptr<Runtime> runtime_;
};

TEST_F(KernelsTest, TheTablesHoldTogether) {
  int names = 0;  // each costs every session about 33 us
  for (const FusedOp* op : fused_ops()) {
    EXPECT_FALSE(op->doc.empty()) << op->kind;
    EXPECT_FALSE(op->samples().empty()) << op->kind;
    const FusedOp& owner = pool_of(*op);
    Attrs attrs;
    if (&owner != op) attrs.set(kPrecision, std::string(name(op->form)));
    EXPECT_EQ(kind_of(pool_name(owner.kind, owner.names - 1), attrs), op->kind);
    EXPECT_EQ(kind_of(pool_name(owner.kind, owner.names), attrs), "") << op->kind;
    EXPECT_EQ(find_fused_op(pool_name(owner.kind, 0)), nullptr) << "ONNX Runtime takes Conv of any domain for its own";
    EXPECT_EQ(owner.in_place, op->in_place) << op->kind;
    const bool type_of_input = op->max_inputs == 1 && op->output_type == op->input_types[0];
    EXPECT_TRUE(owner.output_type == op->output_type || type_of_input) << op->kind << " cannot share names";
    names += op->names;
    EXPECT_TRUE(!op->defaults.has(kPrecision)) << op->kind;
    for (const Call& call : op->samples()) {
      Call copy = call;
      copy.outputs.clear();
      const Verdict verdict = op->infer(copy);
      ASSERT_TRUE(verdict) << verdict.reason << " " << describe(call);
      ASSERT_EQ(copy.outputs.size(), call.outputs.size()) << describe(call);
      for (std::size_t i = 0; i < copy.outputs.size(); ++i)
        EXPECT_EQ(copy.outputs[i].shape, call.outputs[i].shape) << describe(call);
      for (const auto& [name, value] : call.attrs) EXPECT_TRUE(op->defaults.has(name)) << op->kind << "." << name;
      EXPECT_EQ(op->inputs(call).size(), call.inputs.size()) << describe(call);
      const std::vector<std::string> roles = op->roles ? op->roles(call) : op->inputs(call);
      EXPECT_EQ(roles.size(), call.inputs.size()) << describe(call);
      EXPECT_TRUE(op->weights.empty() || std::ranges::count(roles, op->weights) == 1) << describe(call);
      EXPECT_LE(call.outputs.size(), static_cast<std::size_t>(op->max_outputs)) << describe(call);
    }
  }
  EXPECT_LE(names, 80);
  for (const Kernel* kernel : kernels()) EXPECT_NE(find_fused_op(kernel->op), nullptr) << kernel->name;
}

/// Where one op of a pool had no kernel on a machine, the names of the others could not be registered there.
TEST_F(KernelsTest, OpsThatShareNamesRunOnTheSameMachines) {
  for (const char* machine : {"baseline", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"}) {
    const Target target = Target::parse(std::string("cpu:") + machine);
    const auto runs = [&](const FusedOp& op) {
      return std::ranges::any_of(kernels(), [&](const Kernel* kernel) {
        return kernel->op == op.kind && kernel->create && kernel->fits(target);
      });
    };
    for (const FusedOp* op : fused_ops()) EXPECT_EQ(runs(*op), runs(pool_of(*op))) << op->kind << " on " << machine;
  }
}

TEST_F(KernelsTest, EveryKernelEqualsTheBody) {
  for (const FusedOp* op : fused_ops()) ASSERT_NO_FATAL_FAILURE(walk(*op, 17)) << op->kind;
}

/// oneDNN takes bfloat16 on every CPU with AVX-512 (by its reference code where there are no instructions for it), so
/// that the calls of machines with the arithmetic are tested here; they alone are offered these kernels.
TEST_F(KernelsTest, Bfloat16KernelsForMachinesWithTheArithmetic) {
  if (!host_isas().has(Isa::avx512)) GTEST_SKIP() << "needs AVX-512";
  HostThreads threads(3);
  std::map<std::string_view, int> taken;
  for (const Kernel* kernel : kernels()) {
    if (!kernel->needs.has(Isa::avx512_bf16) || !kernel->name.starts_with("cpu.onednn_")) continue;
    for (Call call : find_fused_op(kernel->op)->samples()) {
      if (call.attrs.has("round_a")) call.attrs.set("round_a", 1);
      constexpr std::int64_t kMost = 100'000;  // weights: the reference code takes its time
      if (!kernel->accepts(call, Target::host()) || call.in(1).constant->elements() > kMost) continue;
      ++taken[kernel->name];
      const Feeds feeds = feeds_of(call);
      const Tensor want = run(model_of(call, 17), feeds, {.optimize = false});
      std::vector<Tensor> operands;
      for (const Operand& in : call.inputs) operands.push_back(in.constant ? *in.constant : feeds.at(in.name));
      HostInvocation invocation(threads, operands);
      kernel->create(call, Target::host())->run(invocation);
      ASSERT_NO_FATAL_FAILURE(expect_near(want, invocation.result(0, want.dtype()), describe(call)));
    }
  }
  EXPECT_EQ(taken.size(), 4u);
  for (const auto& [name, samples] : taken) EXPECT_GE(samples, 7) << name;
}

TEST_F(KernelsTest, BodiesOfOldAndNewOpsets) {
  // With the first opset that can say what the op means.
  constexpr std::pair<const char*, std::int64_t> kFirst[] = {
      {"Activation", 11},   {"MatMul", 11},     {"Pointwise", 11},  {"LayerNorm", 11},  {"GroupNorm", 12},
      {"Attention", 13},    {"Rotary", 13},     {"LSTM", 11},       {"GRU", 11},        {"QConv", 13},
      {"QMatMul", 11},      {"QMatMul4", 13},   {"QPool", 13},      {"QUpsample", 13},  {"QSqueezeExcite", 13},
      {"Quantize", 13},     {"Dequantize", 13}, {"MatMulBf16", 13}, {"ConvBf16", 13},   {"QConvTranspose", 13},
      {"MatMulToBf16", 13}, {"ConvToBf16", 13}, {"PoolBf16", 13},   {"QAttention", 13}, {"AttentionBf16", 13},
      {"Softmax", 13},      {"Embedding", 11},  {"Reduce", 11},     {"MatMulNBits", 13}};
  for (const auto& [kind, first] : kFirst) {
    for (const Call& call : find_fused_op(kind)->samples()) {
      if (call.outputs[0].shape.elements() == Dim(0)) continue;
      const Feeds feeds = feeds_of(call);
      const Tensor want = run(model_of(call, 17), feeds, {.optimize = false});
      for (const std::int64_t opset : {11, 13, 16, 18, 20, 23}) {
        if (opset < first) continue;
        const Tensor got = run(model_of(call, opset), feeds, {.optimize = multiplies_bytes_exactly()});
        ASSERT_NO_FATAL_FAILURE(expect_near(want, got, std::to_string(opset) + " " + describe(call)));
      }
    }
  }
}

TEST_F(KernelsTest, ABodyThatFindsNoNameLeftIsWrittenOut) {
  const int names = find_fused_op("Pointwise")->names;
  Model model = Model::from_text("(float[4] x) => (float[4] y) { y = Abs(x) }");
  Graph& graph = model.graph();
  Value* value = graph.outputs()[0];
  Value* const x = graph.inputs()[0];
  std::string program = "Add x0 x1";
  for (int i = 0; i <= names; ++i, program += "; Tanh t" + std::to_string(i - 1)) {
    Node& node = graph.add("modelflow.Pointwise", {value, x}, {.attrs = {{"program", program}}});
    infer_types(node, model);
    value = node.output();
  }
  graph.add_output(*value);
  emit_functions(model);
  EXPECT_EQ(model.functions.size(), static_cast<std::size_t>(names));
  const auto standard = [](const auto& node) { return node->is("Tanh"); };
  EXPECT_EQ(std::ranges::count_if(graph.nodes(), standard), names);  // the last program, the longest
  const Feeds feeds = {{"x", random({4}, 1)}};
  const std::vector<Tensor> want = run_all(model, feeds, {.optimize = false});
  expect_all_near(want, run_all(model, feeds, {.plugin = plugin_path()}), "names", 2e-5F);
}

TEST_F(KernelsTest, AnIdOutsideOfItsTableIsAnError) {
  const FusedOp& op = *find_fused_op("Embedding");
  HostThreads threads(2);
  for (const std::int64_t id : {-31, 30}) {
    const Call call = op.samples().front();  // a table of 30 rows
    std::vector<Tensor> operands;
    for (const Operand& in : call.inputs) operands.push_back(*in.constant);
    operands[0] = Tensor::make(DType::i64, {2, 7}, [&](std::byte* bytes) {
      std::fill_n(reinterpret_cast<std::int64_t*>(bytes), 14, 0);
      reinterpret_cast<std::int64_t*>(bytes)[9] = id;
    });
    HostInvocation invocation(threads, operands);
    EXPECT_THROW(choose_kernel(call, Target::host()).kernel->create(call, Target::host())->run(invocation), Error);
  }
}

TEST_F(KernelsTest, AShapeThatDoesNotFitIsAnError) {
  const FusedOp& op = *find_fused_op("MatMul");
  for (const Call& call : op.samples()) {
    if (call.inputs.size() < 2 || call.inputs[1].constant) continue;
    Feeds feeds = feeds_of(call);
    Dims dims = feeds.at("b").dims();
    for (std::int64_t& dim : dims) dim += 3;
    feeds["b"] = random(dims, 5);
    EXPECT_THROW(run(model_of(call, 17), feeds, {.plugin = plugin_path()}), Error) << describe(call);
  }
}

TEST_F(KernelsTest, ManyThreadsShareOneSession) {
  const std::vector<Call> samples = find_fused_op("MatMul")->samples();
  const Call& call = samples.at(1);
  const Feeds feeds = feeds_of(call);
  const Model model = model_of(call, 17);
  const Tensor want = run(model, feeds, {.optimize = false});
  const std::string bytes = model.to_bytes();
  const auto load = [&] {
    return runtime_->load_bytes(std::as_bytes(std::span(bytes)), {.threads = 2, .plugin = plugin_path()});
  };
  const std::shared_ptr<Session> shared = load();
  std::vector<Tensor> results(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < results.size(); ++i) {
    // Half of them on a session of their own: they share the packed weights.
    threads.emplace_back(
        [&, i] { results[i] = (i % 2 ? std::shared_ptr<Session>(load()) : shared)->run(feeds).at(0); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Tensor& result : results) ASSERT_NO_FATAL_FAILURE(expect_near(want, result, "threads"));
}

}  // namespace
}  // namespace modelflow
