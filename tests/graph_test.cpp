// The graph and its edits.
#include "modelflow/graph.h"

#include <gtest/gtest.h>

#include "modelflow/error.h"
#include "src/graph/verify.h"

namespace modelflow {
namespace {

const Type kFloats = Type::tensor(DType::f32, Shape({Dim::symbol("batch"), 4}));

std::vector<std::string> ops(const Graph& graph) {
  std::vector<std::string> found;
  for (const auto& node : graph.nodes()) found.push_back(node->op());
  return found;
}

using Ops = std::vector<std::string>;

TEST(Graph, AddsAndReplaces) {
  Graph graph;
  Value& x = graph.add_input("x", kFloats);
  Node& relu = graph.add("Relu", {&x});
  Node& neg = graph.add("Neg", {relu.output()});
  graph.add_output(*neg.output());
  Node& abs = graph.add("Abs", {&x}, {.before = &relu});
  graph.replace(*relu.output(), *abs.output());
  EXPECT_EQ(neg.input(0), abs.output());
  EXPECT_TRUE(relu.output()->uses().empty());
  verify(graph);
  EXPECT_EQ(graph.prune(), 1u);
  EXPECT_EQ(ops(graph), (Ops{"Abs", "Neg"}));
  verify(graph);
}

TEST(Graph, ReadsDomains) {
  Graph graph;
  Node& ours = graph.add("modelflow.Conv", {});
  Node& theirs = graph.add("com.example:Op", {});
  Node& odd = graph.add(":aten::cat", {});
  EXPECT_EQ(ours.domain(), "modelflow");
  EXPECT_TRUE(ours.is("modelflow.Conv"));
  EXPECT_FALSE(ours.is("Conv"));
  EXPECT_EQ(theirs.domain(), "com.example");
  EXPECT_EQ(odd.op(), "aten::cat");
  EXPECT_EQ(graph.add("ai.onnx:Relu", {}).domain(), "");
}

TEST(Graph, ValueReadTwiceIsTwoUses) {
  Graph graph;
  Value& x = graph.add_input("x", kFloats);
  Node& mul = graph.add("Mul", {&x, &x});
  EXPECT_EQ(x.uses().size(), 2u);
  graph.set_input(mul, 0, nullptr);
  ASSERT_EQ(x.uses().size(), 1u);
  EXPECT_EQ(x.uses()[0].index, 1u);
  graph.resize_inputs(mul, 1);
  EXPECT_TRUE(x.uses().empty());
  verify(graph);
}

TEST(Graph, OutputKeepsItsNameAndType) {
  Graph graph;
  Value& x = graph.add_input("x", kFloats);
  Node& relu = graph.add("Relu", {&x});
  graph.rename(*relu.output(), "y");
  relu.output()->type = kFloats;
  graph.add_output(*relu.output());
  Node& neg = graph.add("Neg", {&x});
  graph.replace(*relu.output(), *neg.output());
  graph.prune();
  ASSERT_EQ(graph.outputs()[0], neg.output());
  EXPECT_EQ(neg.output()->name(), "y");
  EXPECT_EQ(neg.output()->shape().str(), "[batch,4]");
  verify(graph);
}

TEST(Graph, InputAsOutputNeedsAnIdentity) {
  Graph graph;
  Value& x = graph.add_input("x", kFloats);
  Node& relu = graph.add("Relu", {&x});
  graph.rename(*relu.output(), "y");
  graph.add_output(*relu.output());
  graph.replace(*relu.output(), x);
  graph.prune();
  EXPECT_EQ(ops(graph), Ops{"Identity"});
  EXPECT_EQ(graph.outputs()[0]->name(), "y");
  const std::uint64_t before = graph.nodes().size();
  graph.replace(*graph.outputs()[0], x);  // nothing better is possible
  EXPECT_EQ(graph.nodes().size(), before);
  verify(graph);
}

TEST(Graph, ReplaceByWhatReadsIt) {
  Graph graph;
  Value& x = graph.add_input("x", kFloats);
  Node& relu = graph.add("Relu", {&x});
  Node& neg = graph.add("Neg", {relu.output()});
  graph.add_output(*neg.output());
  Node& cast = graph.add("Cast", {relu.output()}, {.before = &neg});
  graph.replace(*relu.output(), *cast.output());
  EXPECT_EQ(cast.input(0), relu.output());
  EXPECT_EQ(neg.input(0), cast.output());
  verify(graph);
}

TEST(Graph, RefusesToEraseWhatIsRead) {
  Graph graph;
  Value& x = graph.add_input("x", kFloats);
  Node& relu = graph.add("Relu", {&x});
  graph.add_output(*relu.output());
  EXPECT_THROW(graph.erase(relu), Error);
  EXPECT_THROW(graph.add_value("x"), Error);
  EXPECT_THROW(graph.rename(*relu.output(), "x"), Error);
}

TEST(Graph, PinnedValuesStay) {
  Graph graph;
  Value& x = graph.add_input("x", kFloats);
  Node& relu = graph.add("Relu", {&x});
  graph.rename(*relu.output(), "t");
  graph.pinned.insert("t");
  EXPECT_EQ(graph.prune(), 0u);
  EXPECT_THROW(graph.rename(*relu.output(), "u"), Error);
  Node& abs = graph.add("Abs", {&x});
  graph.replace(*relu.output(), *abs.output());
  EXPECT_EQ(abs.output()->name(), "t");
  EXPECT_EQ(graph.prune(), 1u);
  verify(graph);
}

TEST(Graph, SortIsStableAndFindsCycles) {
  Graph graph;
  Value& x = graph.add_input("x", kFloats);
  Node& a = graph.add("Abs", {&x});
  Node& b = graph.add("Neg", {a.output()});
  Node& c = graph.add("Exp", {&x});
  graph.add_output(*b.output());
  graph.add_output(*c.output());
  graph.move_before(b, a);
  EXPECT_THROW(verify(graph, "test"), Error);
  graph.sort();
  EXPECT_EQ(ops(graph), (Ops{"Abs", "Neg", "Exp"}));
  graph.set_input(a, 0, b.output());
  EXPECT_THROW(graph.sort(), Error);
  EXPECT_EQ(graph.nodes().size(), 3u);
}

struct WithBranch {
  Graph graph;
  Value* x = &graph.add_input("x", kFloats);
  Value* condition = &graph.add_input("c", Type::tensor(DType::boolean, Shape::of({})));
  Node* relu = &graph.add("Relu", {x});
  Node* choice = nullptr;

  WithBranch() {
    auto branch = std::make_shared<Graph>();
    branch->add_output(*branch->add("Neg", {relu->output()}).output());
    choice = &graph.add("If", {condition}, {.attrs = {{"then_branch", Subgraph(branch)}}});
    graph.add_output(*choice->output());
  }
};

TEST(Graph, NestedReadersCount) {
  WithBranch m;
  verify(m.graph);
  ASSERT_EQ(m.relu->output()->uses().size(), 1u);
  Graph& branch = m.relu->output()->uses()[0].node->graph();
  EXPECT_EQ(branch.parent(), m.choice);
  EXPECT_EQ(branch.find_visible("x"), m.x);
  verify(branch);
  Node& abs = m.graph.add("Abs", {m.x}, {.before = m.choice});
  m.graph.replace(*m.relu->output(), *abs.output());
  EXPECT_EQ(m.graph.prune(), 1u);
  verify(m.graph);
  m.graph.replace(*m.choice->output(), *m.x);
  EXPECT_EQ(m.graph.prune(), 2u);  // the If and, with its reader gone, the Abs
  verify(m.graph);
}

/// It need not run.
TEST(Graph, WhatABranchKnowsHoldsNowhereElse) {
  WithBranch m;
  Value& inside = *m.relu->output()->uses()[0].node->output();
  Graph& branch = inside.graph();
  Node& copy = branch.add("Identity", {m.relu->output()});
  copy.output()->type = Type::tensor(DType::f32, Shape::of({1, 4}));
  Node& neg = branch.add("Neg", {copy.output()});
  const std::string before = m.relu->output()->shape().str();
  branch.replace(*copy.output(), *m.relu->output());
  EXPECT_EQ(neg.input(0), m.relu->output());
  EXPECT_EQ(m.relu->output()->shape().str(), before);
}

TEST(Graph, ClonesAreIndependent) {
  WithBranch m;
  m.graph.add_constant(Tensor::of<float>({2}, {1, 2}), "w");
  const std::unique_ptr<Graph> copy = m.graph.clone();
  verify(*copy);
  EXPECT_EQ(ops(*copy), ops(m.graph));
  EXPECT_EQ(copy->find("w")->constant()->data(), m.graph.find("w")->constant()->data());
  Node& choice = *copy->nodes().back();
  ASSERT_EQ(choice.subgraphs().size(), 1u);
  EXPECT_NE(choice.subgraphs()[0], m.choice->subgraphs()[0]);
  EXPECT_EQ(choice.subgraphs()[0]->nodes().front()->input(0)->graph().parent(), nullptr);
  choice.attrs.erase("then_branch");  // a subgraph that goes leaves the use lists
  verify(*copy);
  verify(m.graph);
}

TEST(Graph, UniqueNamesStayClearOfTheWholeTree) {
  WithBranch m;
  Graph& branch = *m.choice->subgraphs()[0];
  branch.add_constant(Tensor::scalar<float>(1), "w");
  EXPECT_EQ(m.graph.unique_name("w"), "w_1");
  EXPECT_EQ(branch.unique_name("x"), "x_1");
  EXPECT_EQ(branch.unique_name("x"), "x_2");
}

TEST(Graph, ManyReadersOfOneValue) {
  Graph graph;
  Value& x = graph.add_input("x", kFloats);
  Value& y = graph.add_input("y", kFloats);
  Value& one = graph.add_constant(Tensor::scalar<float>(1));
  Value* last = &x;
  for (int i = 0; i < 200000; ++i) last = graph.add("Add", {last, &one}).output();
  graph.replace(one, y);
  EXPECT_EQ(y.uses().size(), 200000u);
  EXPECT_EQ(graph.prune(), 200000u);
  EXPECT_TRUE(y.uses().empty());
}

}  // namespace
}  // namespace modelflow
