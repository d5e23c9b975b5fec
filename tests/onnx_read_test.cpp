// Reading: what breaks the rules of the format is refused with one line, what is merely unusual comes out as it went
// in.
#include <gtest/gtest.h>

#include <algorithm>

#include "modelflow/error.h"
#include "modelflow/model.h"
#include "tests/wire.h"

namespace modelflow {
namespace {

using namespace wire;  // NOLINT

/// The message of the refusal; fails the test when there is none or it is of another kind.
std::string refusal(const std::string& bytes, ErrorKind kind = ErrorKind::invalid_input) {
  try {
    Model::from_bytes(span(bytes));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  ADD_FAILURE() << "it was read";
  return "";
}

void expect_refusal(const std::string& bytes, const std::string& part) {
  EXPECT_NE(refusal(bytes).find(part), std::string::npos) << refusal(bytes);
}

/// The same fields come out; in ascending order, which the models made by hand here do not keep.
void expect_same_bytes(const std::string& bytes) {
  auto sorted = [](std::string text) {
    std::sort(text.begin(), text.end());
    return text;
  };
  const std::string written = Model::from_bytes(span(bytes)).to_bytes();
  EXPECT_EQ(sorted(written), sorted(bytes));
  EXPECT_EQ(Model::from_bytes(span(written)).to_bytes(), written);
}

TEST(OnnxRead, RefusesWhatIsNoModel) {
  expect_refusal("", "empty");
  expect_refusal("\x01\x02garbage", "not an ONNX model");
  expect_refusal(around("").substr(0, 40), "not an ONNX model");
  expect_refusal(field(1, 8), "no graph");
  expect_refusal("version https://git-lfs.github.com/spec/v1\n", "LFS");
  refusal(field(1, 2) + field(7, ""), ErrorKind::unsupported);
}

TEST(OnnxRead, RefusesBrokenGraphs) {
  const std::string in = field(11, value("x")), out = field(12, value("y"));
  expect_refusal(model(field(1, node("Relu", {"b"}, {"a"})) + field(1, node("Relu", {"a"}, {"b"})) + in), "cycle");
  expect_refusal(model(field(1, node("Relu", {"y"}, {"y"})) + in + out), "cycle");
  expect_refusal(model(field(1, node("Relu", {"x"}, {"y"})) + field(1, node("Abs", {"x"}, {"y"})) + in + out),
                 "'y' is already defined");
  expect_refusal(model(field(1, node("Relu", {"x"}, {"x"})) + in), "'x' is already defined");
  expect_refusal(model(field(1, node("Relu", {"z"}, {"y"})) + in + out), "input 'z' is not defined");
  expect_refusal(model(in + out), "'y' is not defined");
  expect_refusal(model(field(1, node("Relu", {"x", "x"}, {"y"})) + in + out), "Relu");
  expect_refusal(model(in + in), "there twice");
}

TEST(OnnxRead, SortsWhatIsOutOfOrder) {
  const std::string bytes = model(field(1, node("Relu", {"a"}, {"y"})) + field(1, node("Abs", {"x"}, {"a"})) +
                                  field(11, value("x")) + field(12, value("y")));
  const Model sorted = Model::from_bytes(span(bytes));
  EXPECT_EQ(sorted.graph().nodes().front()->op(), "Abs");
}

TEST(OnnxRead, RefusesBrokenTensors) {
  auto with = [](const std::string& content) { return around(field(5, content)); };
  expect_refusal(with(tensor("w", {3}, field(9, "12345678"))), "raw_data has 8 bytes");
  expect_refusal(with(tensor("w", {-4}, "")), "tensor 'w'");
  expect_refusal(with(tensor("w", {1LL << 40, 1LL << 40}, "")), "tensor 'w'");
  expect_refusal(with(tensor("w", {1LL << 30}, "")), "0 values");
  expect_refusal(with(tensor("", {1}, field(9, "1234"))), "no name");
  const std::string twice = field(5, tensor("w", {1}, field(9, "1234")));
  expect_refusal(around(twice + twice), "there twice");
  expect_refusal(around(field(5, tensor("y", {1}, field(9, "1234")))), "already defined");
}

TEST(OnnxRead, RefusesDataOfModelsFromBytes) {
  expect_refusal(around(field(5, tensor("w", {1}, external("data", "0", "4")))), "no directory");
}

TEST(OnnxRead, RefusesRecursionOfFunctions) {
  auto function = [](const std::string& name, const std::string& calls) {
    return field(25, field(1, name) + field(4, "a") + field(5, "b") +
                         field(7, node(calls, {"a"}, {"b"}, field(7, "f"))) + field(9, field(2, 17)) + field(10, "f"));
  };
  const std::string imports = field(8, field(1, "f") + field(2, 1));
  const std::string graph =
      field(1, node("F", {"x"}, {"y"}, field(7, "f"))) + field(11, value("x")) + field(12, value("y"));
  expect_refusal(model(graph, imports + function("F", "F")), "calls itself");
  expect_refusal(model(graph, imports + function("F", "G") + function("G", "F")), "calls itself");
  std::string chain = imports;
  for (int i = 0; i < 150; ++i) {
    chain += function(i ? "F" + std::to_string(i) : "F", "F" + std::to_string(i + 1));
  }
  refusal(model(graph, chain), ErrorKind::limit);
}

TEST(OnnxRead, RefusesCallsThatDoNotFitTheirFunction) {
  // F(a, low) calls G(a, low), which clips: `a` is needed, `low` is not.
  const auto function = [](const std::string& name, const std::string& body) {
    return field(25, field(1, name) + field(4, "a") + field(4, "low") + field(5, "b") + field(7, body) +
                         field(9, field(2, 17)) + field(10, "f"));
  };
  const std::string functions = field(8, field(1, "f") + field(2, 1)) +
                                function("F", node("G", {"a", "low"}, {"b"}, field(7, "f"))) +
                                function("G", node("Clip", {"a", "low"}, {"b"}));
  const auto calling = [&](const std::vector<std::string>& inputs) {
    return model(field(1, node("F", inputs, {"y"}, field(7, "f"))) + field(11, value("x")) + field(12, value("y")),
                 functions);
  };
  expect_refusal(calling({"", "x"}), "leaves out input 'a', which the body of F needs");
  expect_refusal(calling({"x", "", "x"}), "has 3 inputs, F takes 2");
  EXPECT_EQ(Model::from_bytes(span(calling({"x", "", ""}))).graph().nodes().size(), 1U);
  EXPECT_EQ(Model::from_bytes(span(calling({"x"}))).graph().nodes().size(), 1U);
}

TEST(OnnxRead, NestingHasALimit) {
  std::string graph = field(2, "g");
  for (int i = 0; i < 45; ++i) {
    graph = field(2, "g") + field(1, node("Loop", {}, {}, field(5, field(1, "body") + field(20, 5) + field(6, graph))));
  }
  expect_refusal(model(graph), "nested deeper");
}

TEST(OnnxRead, KeepsWhatItDoesNotKnow) {
  const std::string metadata = field(14, entry("key", "value"));
  expect_same_bytes(around(""));
  expect_same_bytes(model(field(1, node("Identity", {"x"}, {"y"}, field(6, "a node"))) + field(10, "a graph") +
                              field(11, value("x") + field(3, "an input")) + field(12, value("y")),
                          metadata));
  // A sparse initializer, an annotation, an element type and fields of the future.
  const std::string sparse = field(1, tensor("s", {1}, field(9, "1234"))) +
                             field(2, field(1, 1) + field(2, 7) + field(9, std::string(8, '\0'))) + field(3, 5);
  const std::string annotation = field(1, "x") + field(2, entry("SCALE_TENSOR", "y"));
  expect_same_bytes(model(field(1, node("Identity", {"x"}, {"y"}, field(900, "new"))) + field(11, value("x")) +
                          field(12, value("y")) + field(14, annotation) + field(15, sparse)));
  expect_same_bytes(model(field(1, node("Identity", {"x"}, {"y"})) +
                          field(5, field(1, 4) + field(2, 27) + field(8, "f6") + field(9, "123")) +
                          field(11, value("x")) + field(12, value("y"))));
}

// Imports in any order and spelling, docs of attributes, empty words, symbols, fields of the future.
TEST(OnnxRead, KeepsHowFunctionsAreWritten) {
  const auto import = [](const std::string& domain, std::int64_t version) {
    return field(9, field(1, domain) + field(2, version));
  };
  const std::string inner = field(1, "F") + field(4, "a") + field(5, "b") + field(7, node("Relu", {"a"}, {"b"}));
  const auto with = [&](const std::string& rest) {
    return model(field(1, node("F", {"x"}, {"y"}, field(7, "pkg"))) + field(11, value("x")) + field(12, value("y")),
                 field(8, field(1, "pkg") + field(2, 1)) + field(25, inner + field(10, "pkg") + rest));
  };
  const auto attribute = [](const std::string& name, const std::string& rest) {
    return field(11, field(1, name) + field(3, 7) + rest + field(20, 2));
  };
  const std::string symbol = field(1, "b") + field(2, field(1, field(1, 1) + field(2, field(1, field(2, "N")))));
  expect_same_bytes(with(import("zzz", 1) + import("", 17)));
  expect_same_bytes(with(import("ai.onnx", 17)));
  expect_same_bytes(with(import("", 17) + field(8, "") + field(13, "")));
  expect_same_bytes(with(import("", 17) + attribute("z", field(13, "what it is")) + attribute("k", "")));
  expect_same_bytes(with(import("", 17) + field(12, symbol)));
  expect_same_bytes(with(import("", 17) + field(1023, "new")));
}

TEST(OnnxRead, KeepsNegativeDimsOfInputs) {
  const std::string shape = field(1, field(1, -1)) + field(1, field(2, "4"));
  const std::string info = field(1, "x") + field(2, field(1, field(1, 1) + field(2, shape)));
  const std::string bytes = model(field(1, node("Identity", {"x"}, {"y"})) + field(11, info) + field(12, value("y")));
  expect_same_bytes(bytes);
  const Model read = Model::from_bytes(span(bytes));
  EXPECT_TRUE(read.graph().inputs()[0]->shape()[0].unknown());
  EXPECT_FALSE(read.graph().inputs()[0]->shape()[1].known());
}

TEST(OnnxRead, InputsAreWhatTheyWereMade) {
  Model model = Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[N,W] x, float[\"?\",4] z) => (float[] y) {\n"
      "  y = Add (x, z)\n}");
  model = Model::from_bytes(span(model.to_bytes()));
  for (const Shape& made :
       {Shape({Dim::parse("M"), Dim::parse("W")}), Shape({Dim::parse("N"), Dim()}), Shape({Dim(3), Dim::parse("W")})}) {
    Model other = model;
    other.graph().inputs()[0]->type.shape = made;
    other.graph().inputs()[1]->type.shape = Shape({Dim::parse("name_of_ours"), Dim(4)});
    const Model read = Model::from_bytes(span(other.to_bytes()));
    EXPECT_EQ(read.graph().inputs()[0]->shape().str(), made.str());
    EXPECT_TRUE(read.graph().inputs()[1]->shape()[0].unknown()) << "a name for what was unknown is inference's";
  }
}

// A value of the main graph that a branch of the algorithm reads, and one that it gives.
TEST(OnnxRead, TrainingReadsAndGivesValuesOfTheMainGraph) {
  const std::string branch = field(1, node("Neg", {"t"}, {"n"})) + field(2, "b") + field(12, value("n"));
  const std::string attribute = field(1, "then_branch") + field(6, branch) + field(20, 5);
  const std::string algorithm =
      field(1, node("If", {"c"}, {"r"}, field(5, attribute))) + field(2, "a") + field(12, value("u"));
  const std::string graph = field(1, node("Neg", {"x"}, {"t"})) + field(1, node("Abs", {"t"}, {"u"})) +
                            field(1, node("Relu", {"u"}, {"y"})) + field(11, value("x")) + field(12, value("y"));
  const Model read = Model::from_bytes(span(model(graph, field(20, field(2, algorithm)))));
  EXPECT_EQ(read.graph().pinned, (std::set<std::string>{"t", "u"}));
}

TEST(OnnxRead, NotesOfPassesAreNotTakenFromFiles) {
  const auto entry = [](const char* key, const char* text) { return field(4, field(1, key) + field(2, text)); };
  const std::string noted = value("w") + entry("modelflow.quantized", "x\nx") + entry("mine", "kept");
  const std::string graph = field(1, node("Add", {"x", "w"}, {"y"})) +
                            field(5, tensor("w", {2}, field(9, "12345678"))) + field(11, value("x")) +
                            field(12, value("y")) + field(13, noted);
  const Model read = Model::from_bytes(span(model(graph, "", 10)));
  const auto& metadata = read.graph().find("w")->metadata;
  ASSERT_EQ(metadata.size(), 1U);
  EXPECT_EQ(metadata[0].first, "mine");
}

TEST(OnnxRead, WeightsThatAreInputsAreNoConstants) {
  const std::string bytes =
      model(field(1, node("Add", {"x", "w"}, {"y"})) + field(5, tensor("w", {2}, field(9, "12345678"))) +
                field(11, value("x")) + field(11, value("w")) + field(12, value("y")),
            "", 3);
  const Model read = Model::from_bytes(span(bytes));
  const Value& w = *read.graph().find("w");
  EXPECT_EQ(w.constant(), nullptr);
  ASSERT_NE(w.initializer(), nullptr);
  expect_same_bytes(bytes);
}

/// Before IR 4 an initializer is an input, which a branch has none of.
TEST(OnnxRead, ConstantsOfBranchesAreNodesBeforeIr4) {
  const auto written = [](int version) {
    Model model = Model::from_text("<ir_version: " + std::to_string(version) +
                                   ", opset_import: [\"\" : 9]> g (bool c, float[2] x) => (float[2] y) {\n"
                                   "y = If<then_branch = t () => (float[2] p) { p = Relu(x) },"
                                   " else_branch = e () => (float[2] q) { q = Abs(x) }>(c) }");
    Graph& branch = *model.graph().nodes().back()->subgraphs()[0];
    Value& x = *model.graph().find("x");
    Value& one = branch.add_constant(Tensor::of<float>({2}, {1, 2}), "k");
    Node& neg = branch.add("Add", {&x, &one});
    branch.add_output(*neg.output());
    const std::string bytes = model.to_bytes();
    const Model read = Model::from_bytes(span(bytes));
    const Graph& again = *read.graph().nodes().back()->subgraphs()[0];
    return std::pair(again.initializers().size(), again.nodes().front()->op());
  };
  EXPECT_EQ(written(3), std::pair(std::size_t{0}, std::string("Constant")));
  EXPECT_EQ(written(4), std::pair(std::size_t{1}, std::string("Abs")));
}

}  // namespace
}  // namespace modelflow
