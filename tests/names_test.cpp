// Names of nodes, which the text form has no words for: graphs beside each other may share them, one graph may not.
#include <gtest/gtest.h>

#include <set>

#include "modelflow/modelflow.h"
#include "tests/pass_cases.h"

namespace modelflow {
namespace {

void name_all(Graph& graph) {
  int number = 0;
  for (const auto& node : graph.nodes()) {
    node->name = "n" + std::to_string(number++);
    for (Graph* inner : node->subgraphs()) name_all(*inner);
  }
}

/// The model behind a pass, all of whose graphs began with the names n0, n1, ...
Model behind(const char* pass, const char* text) {
  Model model = Model::from_text(std::string("<ir_version: 8, opset_import: [\"\" : 17]> test ") + text);
  name_all(model.graph());
  Options options;
  Transformed done = transform(passes_of(pass, options), options, std::move(model), nullptr);
  EXPECT_GT(done.changes, 0);
  return std::move(done.model);
}

void expect_unlike_names(const Model& model) {
  std::set<std::string> names;
  for (const auto& node : model.graph().nodes()) EXPECT_TRUE(names.insert(node->name).second) << node->label();
}

TEST(Names, OfBranches) {
  const Model model = behind("inline-branches", R"((float[N] x) => (float[N] y) <bool yes = {1}> {
    a = Neg(x)
    b = If(yes)<then_branch = one () => (float[N] c) { c = Abs(a) }, else_branch = two () => (float[N] c) { c = Exp(a) }>
    y = If(yes)<then_branch = one () => (float[N] d) { d = Abs(b) }, else_branch = two () => (float[N] d) { d = Exp(b) }>
  })");
  expect_unlike_names(model);
  EXPECT_EQ(model.graph().nodes().front()->name, "n0");
}

TEST(Names, OfStepsWrittenOut) {
  expect_unlike_names(behind("unroll-loops", R"((float[N] x) => (float[N] y) <int64 trips = {3}> {
    a = Neg(x)
    y = Loop(trips, , a)<body = step (int64 i, bool more, float[N] s) => (bool more, float[N] t) { u = Abs(s) t = Exp(u) }>
  })"));
}

TEST(Names, OfWhatANodeBecomesChannelsLast) {
  Model model = Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[N,2,H,W] x) => (float[N,1,OH,OW] y) "
      "<float[4,2,1,1] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[1,1,1,1] v = {2}> "
      "{ a = Conv(x, w)  d = DepthToSpace<blocksize = 2>(a)  e = Erf(d)  y = Conv(e, v) }");
  name_all(model.graph());
  for (const char* taken : {"n1_Reshape", "n1_Mul"}) {  // as the user may have called another node
    Model other = model;
    other.graph().find("e")->producer()->name = taken;
    Options options;
    expect_unlike_names(transform(passes_of("fuse-conv,channels-last", options), options, other, nullptr).model);
  }
}

/// Original and result are compared at the names that they share.
TEST(Names, OfWhatIsGoneAreNotGivenToOthers) {
  Model model = Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[N] x) => (float[N] y) "
      "{ Abs_out = Abs(x)  y = Neg(Abs_out) }");
  Graph& graph = model.graph();
  Node& neg = *graph.find("y")->producer();
  graph.set_input(neg, 0, graph.find("x"));
  graph.erase(*graph.find("Abs_out")->producer());
  Model copy = model;
  for (Graph* one : {&graph, &copy.graph()})
    EXPECT_NE(one->add("Abs", {one->find("x")}, {.before = one->find("y")->producer()}).output()->name(), "Abs_out");
}

}  // namespace
}  // namespace modelflow
