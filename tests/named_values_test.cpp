// Values inside of a model that its annotations or training info name: passes leave them what they are, and do the rest
// of their work.
#include <gtest/gtest.h>

#include <algorithm>

#include "modelflow/random.h"
#include "src/emit/emit.h"
#include "src/verify/compare.h"
#include "src/verify/feeds.h"
#include "tests/pass_cases.h"

namespace modelflow {
namespace {

using Names = std::vector<std::string>;

/// Has the model name its inner values, each `step`th from `first` on.
Names name_values(Graph& graph, std::size_t first, std::size_t step) {
  Names names;
  std::size_t i = 0;
  for (const auto& node : graph.nodes())
    for (const Value* value : node->outputs())
      if (value && !value->is_graph_output() && i++ % step == first % step) names.push_back(value->name());
  graph.pinned.insert(names.begin(), names.end());
  return names;
}

/// Ready to run, with these values as its last outputs.
Model with_outputs(Model model, const Names& names) {
  for (const std::string& name : names) model.graph().add_output(*model.graph().find(name));
  emit_functions(model);
  return model;
}

/// Null where ONNX Runtime takes the model only as long as nobody asks for what is in it.
std::unique_ptr<Session> opened(Runtime& runtime, const Model& original) {
  try {
    return open_session(runtime, original, {.optimize = false});
  } catch (const Error&) {
    return nullptr;
  }
}

void expect_same_numbers(Runtime& runtime, const Model& before, const Model& after, const Names& names) {
  const auto session = opened(runtime, with_outputs(before, names));
  if (!session) return;
  const Feeds feeds = typical_feeds(*session, before, {});
  const std::vector<Tensor> expected = session->run(feeds);
  const auto other = open_session(runtime, with_outputs(after, names), {.optimize = false});
  const std::vector<Tensor> results = other->run(feeds);
  ASSERT_EQ(results.size(), expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const OutputDiff diff = difference(session->outputs()[i].first, expected[i], results[i], kTolerance);
    EXPECT_TRUE(diff.ok) << diff.output << " " << describe(diff);
  }
}

void expect_kept(const Case& c, std::size_t step, const std::shared_ptr<Runtime>& runtime) {
  SCOPED_TRACE(c.file.string() + ":" + std::to_string(c.line) + ", each " + std::to_string(step) + ". value");
  Model before = parse(c, c.before);
  infer_types(before);
  const Names names = name_values(before.graph(), static_cast<std::size_t>(c.line), step);
  if (names.empty()) return;
  const Options options = options_of(c);
  try {
    const Transformed after = transform(passes_of(c.passes, options), options, before, runtime);
    for (const std::string& name : names) {
      const Value* value = after.model.graph().find(name);
      ASSERT_TRUE(value && !value->is_graph_output()) << name;
      EXPECT_FALSE(contradict(before.graph().find(name)->type, value->type)) << name;
    }
    if (runtime && after.changes && c.precision == Precision::f32 && !draws(before.graph()))
      expect_same_numbers(*runtime, before, after.model, names);
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
}

TEST(NamedValues, StayInEveryCaseOfEveryPass) {
  const std::shared_ptr<Runtime> runtime = Runtime::find();
  for (const Case& c : all_cases())
    for (const std::size_t step : {1, 3}) expect_kept(c, step, runtime);
}

std::string weights() {
  std::string numbers;
  for (int i = 0; i < 64; ++i) numbers += (i ? ", " : "") + std::to_string(i * 7919 % 1000 / 1000.0 - 0.5);
  return "<float[8,8] w = {" + numbers + "}>";
}

Result optimized(Model model) {
  Options options;
  options.measure = false;
  return optimize(std::move(model), options);
}

TEST(NamedValues, TakeNoPassFromTheRestOfTheModel) {
  Model model = Model::from_text("(float[N,8] x) => (float[N,8] y) " + weights() +
                                 " { p = MatMul(x, w) q = Relu(p) r = MatMul(q, w) y = Relu(r) }");
  model.graph().pinned.insert("p");
  const Result result = optimized(std::move(model));
  EXPECT_TRUE(result.report.faults.empty()) << result.report.faults[0].what;
  EXPECT_EQ(result.report.after.ops, (std::map<std::string, int>{{"Relu", 1}, {"modelflow.MatMul", 2}}));
  EXPECT_TRUE(result.model.graph().find("p"));
}

TEST(NamedValues, LeaveTheirBranchAsItIs) {
  Model model = Model::from_text(
      "(float[N,8] x, bool c) => (float[N,8] y) " + weights() +
      " { a = Abs(x) y = If(c) <then_branch = t () => (float[N,8] r) { p = MatMul(a, w) r = Relu(p) }, "
      "else_branch = e () => (float[N,8] s) { q = MatMul(a, w) s = Relu(q) }> }");
  const auto branches = [](const Model& of) {
    return std::ranges::find_if(of.graph().nodes(), [](const auto& node) { return node->is("If"); })
        ->get()
        ->subgraphs();
  };
  const std::vector<Graph*> before = branches(model);
  const auto named = std::ranges::find_if(before, [](const Graph* graph) { return graph->find("p"); });
  (*named)->pinned.insert("p");
  const Result result = optimized(std::move(model));
  EXPECT_TRUE(result.report.faults.empty()) << result.report.faults[0].what;
  for (const Graph* branch : branches(result.model)) EXPECT_EQ(branch->nodes().size(), branch->find("p") ? 2U : 1U);
}

/// Training algorithms give a weight new numbers of the type that it has.
TEST(NamedValues, KeepWeightsInHalfPrecision) {
  for (const bool named : {false, true}) {
    Model model = Model::from_text(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float16[N,2] x) => (float16[N,2] y) "
        "<float16[2,2] w = {15360, 0, 0, 15360}> { y = MatMul(x, w) }");
    if (named) model.graph().pinned.insert("w");
    const Model result = optimized(std::move(model)).model;
    EXPECT_EQ(result.graph().find("w")->dtype(), named ? DType::f16 : DType::f32);
  }
}

}  // namespace
}  // namespace modelflow
