// LSTM and GRU where the conformance walk and the text cases cannot go: nothing to do, operands that do not fit, and
// the layout that ONNX Runtime itself does not run.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/host_invocation.h"
#include "modelflow/modelflow.h"
#include "passes/fuse/fuse.h"
#include "src/emit/emit.h"

namespace modelflow {
namespace {

Tensor numbers(const Dims& dims, float step) {
  return Tensor::make(DType::f32, dims, [&](std::byte* bytes) {
    for (std::int64_t i = 0; i < element_count(dims); ++i)
      reinterpret_cast<float*>(bytes)[i] = std::sin(step * static_cast<float>(i));
  });
}

struct Layer {
  Tensor w, r;
  Call call;
};

/// A GRU or LSTM in both directions that gives Y and Y_h, without its first operand.
Layer layer(const std::string& op) {
  const std::int64_t gates = op == "LSTM" ? 4 : 3, hidden = 5, input = 3;
  Layer made{numbers({2, gates * hidden, input}, 0.7f), numbers({2, gates * hidden, hidden}, 0.3f), {op, {}, {}, {}}};
  made.call.attrs = find_fused_op(op)->defaults;
  made.call.attrs.set("hidden_size", hidden).set("direction", "bidirectional").set("outputs", "Y Y_h");
  made.call.inputs = {{"x", DType::f32, Shape()},
                      {"w", DType::f32, Shape::of(made.w.dims())},
                      {"r", DType::f32, Shape::of(made.r.dims())}};
  return made;
}

/// Runs it on x and whatever operands follow the weights.
std::vector<Tensor> run(Layer& layer, const Tensor& x, const std::vector<Tensor>& more = {}) {
  layer.call.inputs[0].shape = Shape::of(x.dims());
  layer.call.inputs[1].constant = &layer.w;
  layer.call.inputs[2].constant = &layer.r;
  if (const Verdict verdict = find_fused_op(layer.call.op)->infer(layer.call); !verdict)
    throw Error(ErrorKind::internal, verdict.reason);
  std::vector<Tensor> operands = {x, layer.w, layer.r};
  operands.insert(operands.end(), more.begin(), more.end());
  HostThreads threads(2);
  HostInvocation invocation(threads, std::move(operands));
  choose_kernel(layer.call, Target::host()).kernel->create(layer.call, Target::host())->run(invocation);
  return {invocation.result(0), invocation.result(1)};
}

class RecurrentTest : public testing::TestWithParam<const char*> {};

TEST_P(RecurrentTest, NothingToDo) {
  Layer made = layer(GetParam());
  const std::vector<Tensor> no_rows = run(made, numbers({4, 0, 3}, 1));
  EXPECT_EQ(no_rows[0].dims(), (Dims{4, 2, 0, 5}));
  EXPECT_EQ(no_rows[1].dims(), (Dims{2, 0, 5}));
  const std::vector<Tensor> no_steps = run(made, numbers({0, 2, 3}, 1));
  EXPECT_EQ(no_steps[0].dims(), (Dims{0, 2, 2, 5}));
  ASSERT_EQ(no_steps[1].dims(), (Dims{2, 2, 5}));
  for (const float h : no_steps[1].as<float>()) EXPECT_EQ(h, 0);  // the state that it began with
}

TEST_P(RecurrentTest, SizesBeyondAllMemoryAreRefused) {
  Layer made = layer(GetParam());
  made.call.attrs.set("hidden_size", std::numeric_limits<std::int64_t>::max());
  EXPECT_FALSE(find_fused_op(made.call.op)->infer(made.call));
}

TEST_P(RecurrentTest, OperandsThatDoNotFit) {
  Layer made = layer(GetParam());
  run(made, numbers({2, 2, 3}, 1));
  const Choice choice = choose_kernel(made.call, Target::host());
  const std::unique_ptr<Implementation> ready = choice.kernel->create(made.call, Target::host());
  HostThreads threads(1);
  for (const Dims& dims : {Dims{2, 2, 4}, Dims{2, 3}, Dims{2, 2, 3, 1}}) {
    HostInvocation invocation(threads, {numbers(dims, 1), made.w, made.r});
    EXPECT_THROW(ready->run(invocation), Error);
  }
  made.call.inputs[1].constant = nullptr;
  EXPECT_NE(choose_kernel(made.call, Target::host()).reason.find("is not constant"), std::string::npos);
}

TEST_P(RecurrentTest, LengthsFromNothingToTheWholeSequence) {
  Layer made = layer(GetParam());
  made.call.attrs.set("has_lengths", 1);
  made.call.inputs.push_back({"lengths", DType::f32, Shape::of({2})});
  const Tensor x = numbers({3, 2, 3}, 1);
  const auto lengths = [](float a, float b) { return std::vector{Tensor::of<float>({2}, std::vector{a, b})}; };
  const std::vector<Tensor> got = run(made, x, lengths(0, 3));
  for (std::size_t i = 0; i < 60; ++i) {  // [3, 2, 2, 5]
    const float y = got[0].as<float>()[i];
    EXPECT_EQ(i / 5 % 2 == 0, y == 0) << i;
  }
  for (const float wrong : {-1.0f, 4.0f, std::nanf("")}) EXPECT_THROW(run(made, x, lengths(3, wrong)), Error) << wrong;
}

/// ONNX Runtime has no layout 1: what comes out is compared with a model that swaps the axes itself.
TEST_P(RecurrentTest, TheBatchFirst) {
  std::string why;
  const std::shared_ptr<Runtime> runtime = Runtime::find(&why);
  if (!runtime) GTEST_SKIP() << why;
  const bool lstm = std::string(GetParam()) == "LSTM";
  const std::string weights = lstm ? "<float[1,4,1] w = {0.5, -0.25, 0.75, 1}, float[1,4,1] r = {0.5, 1, -1, 0.25}>"
                                   : "<float[1,3,1] w = {0.5, -0.25, 0.75}, float[1,3,1] r = {0.5, 1, -1}>";
  const auto model = [&](const std::string& nodes) {
    return Model::from_text(
        "<ir_version: 8, opset_import: [\"\" : 17]>\n"
        "test (float[2,4,1] x, float[2,1,1] h) => (float[2,4,1,1] y, float[2,1,1] y_h) " +
        weights + " {" + nodes + "}");
  };
  const std::string op = GetParam(), c = lstm ? ", h" : "", c_swapped = lstm ? ", g" : "";
  Model first = model("y, y_h = " + op + "<hidden_size = 1, layout = 1>(x, w, r, \"\", \"\", h" + c + ")");
  const Model plain = model("t = Transpose<perm = [1, 0, 2]>(x)  g = Transpose<perm = [1, 0, 2]>(h)  z, z_h = " + op +
                            "<hidden_size = 1>(t, w, r, \"\", \"\", g" + c_swapped +
                            ")  y = Transpose<perm = [2, 0, 1, 3]>(z)  y_h = Transpose<perm = [1, 0, 2]>(z_h)");
  Options options;
  StepReport report;
  Context context{first, options, Target::host(), runtime, &report, nullptr};
  infer_types(first);
  ASSERT_EQ(passes::fuse_recurrent().run(first.graph(), context), 1);
  emit_functions(first);
  const Feeds feeds = {{"x", numbers({2, 4, 1}, 1)}, {"h", numbers({2, 1, 1}, 2)}};
  const auto outputs = [&](const Model& some, const std::filesystem::path& plugin) {
    const std::string bytes = some.to_bytes();
    return runtime->load_bytes(std::as_bytes(std::span(bytes)), {.plugin = plugin})->run(feeds);
  };
  const std::vector<Tensor> want = outputs(plain, "");
  for (const std::filesystem::path& plugin : {std::filesystem::path(), plugin_path()}) {
    const std::vector<Tensor> got = outputs(first, plugin);
    for (std::size_t i = 0; i < 2; ++i) {
      ASSERT_EQ(got[i].dims(), want[i].dims());
      for (std::size_t j = 0; j < static_cast<std::size_t>(want[i].elements()); ++j)
        EXPECT_NEAR(got[i].as<float>()[j], want[i].as<float>()[j], 2e-6f) << plugin << " " << i << " " << j;
    }
  }
}

/// Its first output is null: what reads the state must not look at it.
TEST(Recurrent, MayHaveAStateAlone) {
  Model model = Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]>\n"
      "test (float[4,N,2] x) => (float[1,N,2] y) <float[2] b = {1, 2}, float[1,6,2] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, "
      "2, "
      "3}> { s, h = GRU<hidden_size = 2>(x, w, w)  y = Add(h, b) }");
  Node& gru = *model.graph().find("h")->producer();
  model.graph().set_output(gru, 0, nullptr);
  Options options;
  options.measure = false;
  const Result result = optimize(model, options);
  EXPECT_TRUE(result.report.verified) << result.report.text();
}

INSTANTIATE_TEST_SUITE_P(Ops, RecurrentTest, testing::Values("LSTM", "GRU"));

}  // namespace
}  // namespace modelflow
