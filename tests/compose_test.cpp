// Models that become one, inputs that become constants, outputs that are chosen.
#include "modelflow/compose.h"

#include <gtest/gtest.h>

#include "modelflow/modelflow.h"
#include "modelflow/pass.h"

namespace modelflow {
namespace {

Part part(const std::string& name, const std::string& text, int opset = 17) {
  return {name, Model::from_text("<ir_version: 8, opset_import: [\"\" : " + std::to_string(opset) + "]> g " + text)};
}

/// Merged, and found to give what its parts give in turn.
Merged joined(const std::vector<Part>& parts, const std::vector<std::string>& edges = {}) {
  std::vector<Edge> parsed;
  for (const std::string& edge : edges) parsed.push_back(parse_edge(edge, parts));
  Merged merged = merge(parts, parsed);
  if (const std::shared_ptr<Runtime> runtime = Runtime::find()) {
    const MergeCheck check = check_merge(*runtime, parts, merged, {});
    EXPECT_GT(check.feeds, 0U) << check.why_not;
    EXPECT_EQ(check.max_rel, 0);
  }
  return merged;
}

std::string refusal(const std::vector<Part>& parts, const std::vector<std::string>& edges = {}) {
  try {
    std::vector<Edge> parsed;
    for (const std::string& edge : edges) parsed.push_back(parse_edge(edge, parts));
    return "not refused: " + merge(parts, parsed).signature();
  } catch (const Error& error) {
    EXPECT_TRUE(error.kind() == ErrorKind::usage || error.kind() == ErrorKind::unsupported);
    return error.what();
  }
}

const char* const kEncoder =
    "(float[N,4] x) => (float[N,4] hidden, float[N] score) { h = Relu(x) hidden = Abs(h) "
    "score = ReduceMax<axes = [1], keepdims = 0>(h) }";
const char* const kDecoder =
    "(float[M,4] memory, float[4] bias) => (float[M,4] y) { h = Add(memory, bias) y = Tanh(h) }";

TEST(Merge, OneFeedsTheOther) {
  const Merged merged =
      joined({part("encoder", kEncoder), part("decoder", kDecoder)}, {"encoder.hidden=decoder.memory"});
  EXPECT_EQ(merged.signature(),
            "input   x float32[N,4] -> encoder.x\n"
            "input   bias float32[4] -> decoder.bias\n"
            "inside  hidden float32[N,4] = encoder.hidden -> decoder.memory\n"
            "output  score float32[N] = encoder.score\n"
            "output  y float32[N,4] = decoder.y\n");
}

TEST(Merge, NamesTellWhatGoesWhere) {
  const Merged merged = joined({part("a", "(float[N,4] x) => (float[N,4] t) { t = Relu(x) }"),
                                part("b", "(float[N,4] t) => (float[N,4] y) { y = Neg(t) }"),
                                part("c", "(float[N,4] only) => (float[N,4] z) { z = Exp(only) }")});
  EXPECT_EQ(merged.signature(),
            "input   x float32[N,4] -> a.x\n"
            "inside  a.t float32[N,4] -> b.t\n"
            "inside  y float32[N,4] = b.y -> c.only\n"
            "output  z float32[N,4] = c.z\n");
}

TEST(Merge, EqualNamesStayApartUnlessTold) {
  const char* const one = "(float[N,4] x, float[4] w) => (float[N,4] y) { h = Mul(x, w) y = Relu(h) }";
  const std::vector<Part> parts = {part("a", one), part("b", one)};
  const Merged apart = joined(parts, {"a.y=b.x"});
  EXPECT_NE(apart.signature().find("input   a.w float32[4] -> a.w\ninput   b.w float32[4] -> b.w\n"),
            std::string::npos);
  ASSERT_EQ(apart.notes.size(), 1U);
  EXPECT_EQ(apart.notes[0], "a.w and b.w are inputs of their own; a.w=b.w would make them one");
  const Merged shared = joined(parts, {"a.y=b.x", "a.w=b.w"});
  EXPECT_EQ(shared.model.graph().inputs().size(), 2U);
  EXPECT_NE(shared.signature().find("a.w float32[4] -> a.w and b.w\n"), std::string::npos) << shared.signature();
}

TEST(Merge, ALongChainOfSharedInputs) {
  const char* const one = "(float[N,4] x) => (float[N,4] y) { y = Relu(x) }";
  const Merged merged = joined({part("a", one), part("b", one), part("c", one)}, {"a.x=b.x", "b.x=c.x"});
  EXPECT_EQ(merged.model.graph().inputs().size(), 1U);
  EXPECT_EQ(merged.model.graph().outputs().size(), 3U);
}

TEST(Merge, SymbolsAreThoseOfWhatFeeds) {
  const Merged merged = joined({part("a", "(float[N,T] x) => (float[N,T] t) { t = Relu(x) }"),
                                part("b",
                                     "(float[T,8] u, float[N] k) => (float[T,8] y, float[N] z) { y = Neg(u) "
                                     "z = Abs(k) }")},
                               {"a.t=b.u"});
  EXPECT_EQ(merged.signature(),
            "input   x float32[N,8] -> a.x\n"
            "input   k float32[b.N] -> b.k\n"
            "inside  t float32[N,8] = a.t -> b.u\n"
            "output  y float32[N,8] = b.y\n"
            "output  z float32[b.N] = b.z\n");
}

// The first merge called a symbol "b.N", as the second one would.
TEST(Merge, SymbolsOfMergedModelsStayApart) {
  const std::vector<Part> parts = {
      part("w", "(float[N] p, float[\"b.N\"] q) => (float[N] h, float[\"b.N\"] g) { h = Relu(p) g = Relu(q) }"),
      part("b", "(float[J] g, float[N] r) => (float[N] y) { s = Shape(r) e = Expand(g, s) y = Neg(e) }")};
  const Merged merged = joined(parts, {"w.g=b.g"});
  EXPECT_NE(merged.signature().find("input   q float32[b.N] -> w.q\ninput   r float32[b.N_2] -> b.r\n"),
            std::string::npos)
      << merged.signature();
  Options portable;
  portable.level = Level::O1;
  portable.measure = false;
  EXPECT_EQ(optimize(merged.model, portable).report.after.nodes, 5U);  // Expand stays
}

TEST(Merge, SymbolsInsideOfFunctionsStayApart) {
  const auto with_function = [](const char* name) {
    Part made = {name,
                 Model::from_text(std::string("<ir_version: 10, opset_import: [\"\" : 17, \"my\" : 1]> g (float[N] x) "
                                              "=> (float[N] y) { y = my.") +
                                  name + "(x) } <domain: \"my\", opset_import: [\"\" : 17]> " + name +
                                  " (a) => (b) { c = Neg(a) b = Abs(c) }")};
    made.model.functions[0].body->find("c")->type = Type::tensor(DType::f32, Shape({Dim::symbol("N")}));
    return made;
  };
  const std::vector<Part> parts = {with_function("F"), with_function("G")};
  const Merged merged = merge(parts, {parse_edge("F.x=G.x", parts)});
  ASSERT_EQ(merged.model.functions.size(), 2U);
  EXPECT_EQ(merged.model.functions[1].body->find("c")->shape().str(), "[G.N]");
}

TEST(Merge, NamesOfPartsAreNoArithmetic) {
  const char* const text = "(float[N] x) => (float[N] y) { y = Relu(x) }";
  const Merged merged = joined({part("a", text), part("x - y", text)}, {"a.x=x - y.x"});
  const Merged apart = joined({part("a", text), part("x - y", "(float[N] u) => (float[N] v) { v = Relu(u) }"),
                               part("c", "(float[2] t) => (float[2] z) { z = Abs(t) }")},
                              {"a.y=c.t"});
  EXPECT_NE(apart.signature().find("u float32[x___y.N]"), std::string::npos) << apart.signature();
}

TEST(Merge, SymbolsInsideOfSequencesStayApart) {
  const std::string a = "(float[N] p) => (float[N] h) { h = Relu(p) }";
  const std::string b = "(seq(float[N]) q, float[M] k) => (int64 s, float[M] y) { s = SequenceLength(q) y = Neg(k) }";
  const std::vector<Part> parts = {part("a", a), part("b", b)};
  const std::string bytes = merge(parts, {parse_edge("a.h=b.k", parts)}).model.to_bytes();
  EXPECT_NE(bytes.find("b.N"), std::string::npos);
}

TEST(Merge, ValuesThatTwoPartsCouldMeanAreRefused) {
  EXPECT_EQ(refusal({part("a", "(float[4] \"b.x\") => (float[4] u) { u = Relu(\"b.x\") }"),
                     part("a.b", "(float[4] x) => (float[4] v) { v = Relu(x) }")}),
            "'a.b.x' is a value of 'a' and of 'a.b': give one model another name");
}

TEST(Merge, OpsetsAreRaised) {
  const Merged merged = joined({part("old",
                                     "(float[N,1,4] x) => (float[N,4] t) { s = Squeeze<axes = [1]>(x) "
                                     "t = Clip<min = 0.0>(s) }",
                                     9),
                                part("new", "(float[N,4] u) => (float[N,4] y) { y = Gelu(u) }", 20)});
  EXPECT_EQ(merged.model.opset(), 20);
  ASSERT_EQ(merged.notes.size(), 1U);
  EXPECT_EQ(merged.notes[0], "'old' raised from opset 9 to 20");
}

TEST(Merge, BranchesKeepTheirValuesApart) {
  const char* const branches =
      "(float[N,4] x, bool c) => (float[N,4] y) { h = Relu(x) y = If(c) <then_branch = t () => (float[N,4] r) { "
      "s = Neg(h) r = Exp(s) }, else_branch = e () => (float[N,4] r) { s = Abs(h) r = Sqrt(s) }> }";
  const Merged merged = joined({part("a", branches), part("b", branches)}, {"a.y=b.x", "a.c=b.c"});
  const std::string bytes = merged.model.to_bytes();
  const Model again = Model::from_bytes(std::as_bytes(std::span(bytes)));  // checks names
  EXPECT_EQ(again.graph().nodes().size(), 4U);
}

TEST(Merge, ModelsThatWaitForEachOtherInParts) {
  const std::vector<Part> parts = {
      part(
          "a",
          "(float[4] x, float[4] back) => (float[4] first, float[4] last) { first = Relu(x) last = Add(first, back) }"),
      part("b", "(float[4] u) => (float[4] v) { v = Neg(u) }")};
  std::vector<Edge> edges = {parse_edge("a.first=b.u", parts), parse_edge("b.v=a.back", parts)};
  const Merged merged = merge(parts, edges);
  const std::shared_ptr<Runtime> runtime = Runtime::find();
  if (!runtime) GTEST_SKIP() << "no ONNX Runtime";
  EXPECT_EQ(check_merge(*runtime, parts, merged, {}).why_not, "no order of the models runs them one after the other");
  edges[0] = parse_edge("a.last=b.u", parts);
  EXPECT_THROW((void)merge(parts, edges), Error);
}

TEST(Merge, FunctionsOfOneName) {
  const auto with_function = [](const char* name, const char* op) {
    return Part{name,
                Model::from_text(std::string("<ir_version: 8, opset_import: [\"\" : 17, \"my\" : 1]> g (float[4] x) "
                                             "=> (float[4] y) { y = my.F(x) } <domain: \"my\", opset_import: "
                                             "[\"\" : 17]> F (a) => (b) { b = ") +
                                 op + "(a) }")};
  };
  const Merged merged = joined({with_function("a", "Exp"), with_function("b", "Neg")}, {"a.y=b.x"});
  EXPECT_EQ(merged.model.functions.size(), 1U);
  ASSERT_EQ(merged.notes.size(), 1U);
}

// What `b` calls is an operator that only a library knows: by itself, in a branch, in the body of a function.
TEST(Merge, FunctionsTakeNoOperatorsOfOthers) {
  const auto made = [](const char* name, const std::string& text) {
    return Part{name, Model::from_text("<ir_version: 8, opset_import: [\"\" : 17, \"pkg\" : 1]> g " + text)};
  };
  const std::string act = "(float[4] x) => (float[4] y) { y = pkg.Act(x) }";
  const std::string body = " <domain: \"pkg\", opset_import: [\"\" : 17]> Act (a) => (b) { b = Neg(a) }";
  for (const std::string& text :
       {act,
        std::string("(float[4] x, bool c) => (float[4] y) { y = If(c) <then_branch = t () => (float[4] r) { r = "
                    "pkg.Act(x) }, else_branch = e () => (float[4] r) { r = Abs(x) }> }"),
        std::string("(float[4] x) => (float[4] y) { y = pkg.Other(x) } <domain: \"pkg\", opset_import: [\"\" : 17, "
                    "\"pkg\" : 1]> Other (a) => (b) { b = pkg.Act(a) }")}) {
    std::vector<Part> parts = {made("a", act + body), made("b", text)};
    for (int order = 0; order < 2; ++order) {
      const Merged merged = merge(parts, {parse_edge(parts[0].name + ".y=" + parts[1].name + ".x", parts)});
      for (const Function& function : merged.model.functions) EXPECT_NE(function.name, "Act");
      EXPECT_NE(merged.model.to_text().find("pkg.Act"), std::string::npos) << merged.model.to_text();
      EXPECT_EQ(merged.notes.size(), 1U);
      std::swap(parts[0], parts[1]);
    }
  }
  const std::string older = " <domain: \"pkg\", opset_import: [\"\" : 16]> Act (a) => (b) { b = Neg(a) }";
  EXPECT_EQ(refusal({made("a", act + older), made("b", act)}, {"a.y=b.x"}),
            "'a' cannot be part of another model: it has functions of another opset than its own, and another model "
            "something else of the same name");
}

Part old_part(const std::string& name, const std::string& text) {
  return {name, Model::from_text("<ir_version: 3, opset_import: [\"\" : 9]> g " + text)};
}

TEST(Merge, WeightsOfOldFilesAreNoInputs) {
  const Part old = old_part("a", "(float[4] x, float[4] w = {1,2,3,4}) => (float[4] y) { y = Mul(x, w) }");
  const Merged merged = joined({old, part("b", "(float[4] u) => (float[4] z) { z = Neg(u) }")}, {"a.y=b.u"});
  EXPECT_EQ(merged.model.graph().inputs().size(), 1U);
  EXPECT_EQ(merged.inputs.size(), 1U);
  const Merged fed = joined({part("s", "(float[4] p) => (float[4] q) { q = Abs(p) }"), old}, {"s.q=a.w"});
  EXPECT_EQ(fed.model.graph().inputs().size(), 2U);
  (void)joined({old_part("a",
                         "(float[1,1,2,2] x, float[4] s = {1,1,2,2}) => (float[1,1,4,4] y) { y = Upsample<mode = "
                         "\"nearest\">(x, s) }"),
                part("b", "(float[1,1,4,4] u) => (float[1,1,4,4] z) { z = Neg(u) }")},
               {"a.y=b.u"});
}

TEST(Merge, InputsWithDefaultsWaitForWhatFeedsThem) {
  const Part b = part("b", "(float[4] k, float[4] u = {1,2,3,4}) => (float[4] z) { z = Add(k, u) }");
  (void)joined({b, part("a", "(float[4] x) => (float[4] y) { y = Relu(x) }")}, {"a.y=b.u"});
  (void)joined({b, part("a", "(float[4] v, float[4] x) => (float[4] y) { y = Mul(v, x) }")}, {"b.u=a.v"});
}

TEST(Merge, ResultsThatAreInputsOrConstants) {
  (void)joined(
      {part("a", "(float[4] x) => (float[4] x, float[4] k, float[4] y) <float[4] k = {1,2,3,4}> { y = Add(x, k) }"),
       part("b", "(float[4] u, float[4] v) => (float[4] z) { z = Mul(u, v) }")},
      {"a.k=b.u", "a.x=b.v"});
}

TEST(Merge, MetadataIsKept) {
  Part a = part("a", "(float[4] x) => (float[4] y) { y = Relu(x) }"), b = a;
  b.name = "b";
  a.model.metadata = {{"names", "cat,dog"}, {"stride", "8"}};
  b.model.metadata = {{"names", "one,two"}, {"stride", "8"}};
  a.model.graph().metadata = {{"trained", "May"}};
  b.model.graph().metadata = {{"trained", "June"}};
  a.model.graph().doc = "first";
  b.model.graph().doc = "second";
  b.model.graph().outputs()[0]->doc = "scores";
  b.model.graph().outputs()[0]->metadata = {{"unit", "m"}};
  const Merged merged = joined({a, b}, {"a.y=b.x"});
  EXPECT_EQ(merged.model.metadata, (Metadata{{"names", "cat,dog"}, {"stride", "8"}, {"b.names", "one,two"}}));
  const Graph& graph = merged.model.graph();
  EXPECT_EQ(graph.metadata, (Metadata{{"trained", "May"}, {"b.trained", "June"}}));
  EXPECT_EQ(graph.doc, "first\nsecond");
  EXPECT_EQ(graph.outputs()[0]->doc, "scores");
  EXPECT_EQ(graph.outputs()[0]->metadata, (Metadata{{"unit", "m"}}));
}

TEST(Merge, SaysWhatCannotBeJoined) {
  const std::vector<Part> parts = {part("encoder", kEncoder), part("decoder", kDecoder),
                                   part("ids", "(int64[N] i) => (int64[N] j) { j = Neg(i) }")};
  const std::vector<Part> two = {parts[0], parts[1]};
  EXPECT_EQ(refusal(two),
            "which of hidden and score of 'encoder' goes into which of memory and bias of 'decoder'? Say it "
            "with --map encoder.hidden=decoder.memory");
  EXPECT_EQ(refusal(two, {"encoder.hiden=decoder.memory"}),
            "'encoder' has no output 'hiden': it has hidden and score; did you mean 'hidden'?");
  EXPECT_EQ(refusal(two, {"encoder.hidden=decoder.memmory"}),
            "'decoder' has no input 'memmory': it has memory and bias; did you mean 'memory'?");
  EXPECT_EQ(refusal(two, {"encodr.hidden=decoder.memory"}),
            "no model is called 'encodr': there are encoder and decoder; did you mean 'encoder'?");
  EXPECT_EQ(
      refusal(two, {"encoder.score=decoder.memory"}),
      "encoder.score float32[N] cannot go into decoder.memory float32[M,4]: their ranks differ; encoder.hidden would "
      "fit decoder.memory");
  EXPECT_EQ(refusal(parts, {"ids.j=decoder.bias"}),
            "ids.j int64[N] cannot go into decoder.bias float32[4]: their types differ; nothing that 'ids' gives fits");
  EXPECT_EQ(refusal(two, {"encoder.hidden=decoder.memory", "encoder.hidden=decoder.memory"}),
            "decoder.memory is given twice: by encoder.hidden and by encoder.hidden");
  EXPECT_EQ(
      refusal(two, {"encoder.hidden=encoder.x"}),
      "encoder.hidden float32[N,4] cannot go into encoder.x float32[N,4]: a model does not feed itself; state goes "
      "out of one run and into the next one");
  EXPECT_EQ(refusal(two, {"hidden"}), "'hidden' is no edge: expected MODEL.OUTPUT=MODEL.INPUT");
  EXPECT_EQ(refusal({parts[0], parts[0]}), "two models are called 'encoder': give one another name, as NAME=FILE");
  EXPECT_EQ(refusal({parts[0]}), "merging takes two models or more");
  const Part wide = part("wide", "(float[N,8] x) => (float[N,8] y) { y = Relu(x) }");
  EXPECT_EQ(
      refusal({wide, parts[1]}, {"wide.y=decoder.memory"}),
      "wide.y float32[N,8] cannot go into decoder.memory float32[M,4]: axis 1 has 8 and 4 places; nothing that 'wide' "
      "gives fits");
}

TEST(Merge, NamesWithDotsAndEqualsSigns) {
  Part a = part("v1.2", "(float[4] x) => (float[4] y) { y = Relu(x) }"),
       b = part("b", "(float[4] u) => (float[4] z) { z = Neg(u) }");
  Graph& graph = a.model.graph();
  graph.rename(*graph.outputs()[0], "out.a=b");
  (void)joined({a, b}, {"v1.2.out.a=b=b.u"});
}

Model voice() {
  return part("voice",
              "(float[N,4] x, int64 sr, float[2,1,3] state) => (float[N,4] y, float[2,1,3] next) "
              "<int64 fast = {16000}> { c = Equal(sr, fast) y = If(c) <then_branch = t () => (float[N,4] r) { r = "
              "Relu(x) "
              "}, else_branch = e () => (float[N,4] r) { r = Neg(x) }> next = Abs(state) }")
      .model;
}

TEST(Bind, ABranchIsChosen) {
  Options options;
  options.measure = false;
  options.bind = parse_bind(voice(), "sr=16000");
  options.drop_outputs = {"next"};
  const Result result = optimize(voice(), options);
  EXPECT_EQ(result.model.graph().nodes().size(), 1U);
  EXPECT_EQ(result.model.graph().inputs().size(), 1U);
  EXPECT_EQ(result.report.verified, Runtime::find() != nullptr);
  ASSERT_GE(result.report.notes.size(), 2U);
  EXPECT_EQ(result.report.notes[0], "no inputs any more: sr and state");
}

TEST(Bind, OneNumberFillsAnInput) {
  EXPECT_EQ(parse_bind(voice(), "state=0.5").at("state").to_doubles(), std::vector<double>(6, 0.5));
  EXPECT_EQ(parse_bind(voice(), "state=1,2,3,4,5,6").at("state").to_doubles(), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(parse_bind(voice(), "sr=9007199254740993").at("sr").as<std::int64_t>()[0], 9007199254740993);
}

TEST(Bind, SaysWhatDoesNotFit) {
  const auto refused = [](const std::string& text) {
    try {
      (void)bind_inputs(voice(), parse_bind(voice(), text));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("not refused");
  };
  EXPECT_EQ(refused("rate=1"), "the model has no input 'rate': it has x, sr and state; did you mean 'state'?");
  EXPECT_EQ(refused("sr=1.5"), "input 'sr': 1.5 is no whole number from -9223372036854775808 to 9223372036854775807");
  EXPECT_EQ(refused("sr=fast"), "'fast' for input 'sr' is no number");
  EXPECT_EQ(refused("sr=1,2"), "'sr' is int64: 2 numbers cannot fill it");
  EXPECT_EQ(refused("x=0"), "'x' is float32[N,4]: give its value as an array in an .npz file");
  EXPECT_EQ(refused("sr"), "'sr' binds nothing: expected INPUT=NUMBER or FILE.npz");
  EXPECT_EQ(refused("state=1e400"), "input 'state': 1e+400 is more than the type of the input holds");
  EXPECT_THROW((void)bind_inputs(voice(), {{"sr", Tensor::scalar(1.0F)}}), Error);
  EXPECT_THROW((void)bind_inputs(voice(), {{"state", Tensor::of<float>({1}, {1.0F})}}), Error);
}

TEST(Bind, NumbersOfHalfWidth) {
  const Model model = part("m", "(float16 x, bfloat16 z) => (float16 y, bfloat16 w) { y = Relu(x) w = Relu(z) }").model;
  EXPECT_EQ(parse_bind(model, "x=-65504").at("x").to_doubles(), std::vector<double>{-65504});
  EXPECT_THROW((void)parse_bind(model, "x=70000"), Error);
  EXPECT_THROW((void)parse_bind(model, "z=3.4e38"), Error);
  EXPECT_NO_THROW((void)parse_bind(model, "x=inf"));
}

TEST(Outputs, OnlyWhatIsWanted) {
  const Model model = part("m", kEncoder).model;
  const Model one = keep_outputs(model, {"score"});
  EXPECT_EQ(one.graph().nodes().size(), 2U);
  const Model inner = keep_outputs(model, {"h", "hidden"});
  ASSERT_EQ(inner.graph().outputs().size(), 2U);
  EXPECT_EQ(inner.graph().outputs()[0]->name(), "h");
  EXPECT_EQ(inner.graph().outputs()[0]->shape().str(), "[N,4]");
  EXPECT_EQ(drop_outputs(model, {"hidden"}).to_text(), one.to_text());
  EXPECT_THROW((void)keep_outputs(model, {"no"}), Error);
  EXPECT_THROW((void)keep_outputs(model, {"h", "h"}), Error);
  EXPECT_THROW((void)drop_outputs(model, {"h"}), Error);
  EXPECT_THROW((void)drop_outputs(model, {"hidden", "score"}), Error);
}

}  // namespace
}  // namespace modelflow
