// Made-up data, comparison of results and the bisection.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "src/verify/bisect.h"
#include "src/verify/bounded.h"
#include "src/verify/compare.h"
#include "src/verify/feeds.h"
#include "src/verify/probe.h"
#include "src/verify/role.h"

namespace modelflow {
namespace {

const float nan = std::nanf("");

OutputDiff diff(std::initializer_list<float> a, std::initializer_list<float> b, double tolerance = 1e-4) {
  const auto n = static_cast<std::int64_t>(a.size());
  return difference("y", Tensor::of<float>({n}, a), Tensor::of<float>({n}, b), tolerance);
}

TEST(Difference, RelativeToTheLargestValue) {
  const OutputDiff d = diff({100, 0}, {100, 0.001F});
  EXPECT_NEAR(d.max_rel, 1e-5, 1e-8);
  EXPECT_TRUE(d.ok);
  EXPECT_FALSE(diff({1, 0}, {1, 0.001F}).ok);
}

TEST(Difference, NanAndInfinityOnlyEqualThemselves) {
  EXPECT_TRUE(diff({nan, INFINITY, 1}, {nan, INFINITY, 1}).ok);
  EXPECT_FALSE(diff({nan, 1}, {0, 1}).ok);
  EXPECT_FALSE(diff({1, 1}, {nan, 1}).ok);
  EXPECT_FALSE(diff({INFINITY, 1}, {-INFINITY, 1}).ok);
}

TEST(Difference, AllZeroAllowsDust) {
  EXPECT_TRUE(diff({0, 0}, {1e-8F, 0}).ok);
  EXPECT_FALSE(diff({0, 0}, {1e-3F, 0}).ok);
}

TEST(Difference, ShapesAndTypesMustAgree) {
  const Tensor a = Tensor::of<float>({2}, {1, 2});
  EXPECT_FALSE(difference("y", a, a.reshaped({1, 2}), 1).equal_type);
  EXPECT_FALSE(difference("y", a, Tensor::of<std::int32_t>({2}, {1, 2}), 1).ok);
}

TEST(Difference, IntegersAreExact) {
  std::vector<std::int64_t> many(2000, 7), other = many;
  other[5] = 8;
  EXPECT_FALSE(difference("y", Tensor::of<std::int64_t>({2000}, std::span<const std::int64_t>(many)),
                          Tensor::of<std::int64_t>({2000}, std::span<const std::int64_t>(other)), 1)
                   .ok);
  const auto large = [](std::int64_t x) { return Tensor::of<std::int64_t>({1}, std::span<const std::int64_t>(&x, 1)); };
  EXPECT_FALSE(difference("y", large(INT64_MAX), large(INT64_MAX - 1), 1).ok) << "alike as doubles";
}

TEST(Difference, EightBitsMayBeRoundedTheOtherWayHereAndThere) {
  const auto off_by = [](std::uint8_t steps, std::size_t elements) {
    std::vector<std::uint8_t> a(2000, 7), b = a;
    for (std::size_t i = 0; i < elements; ++i) b[i] = static_cast<std::uint8_t>(7 + steps);
    return difference("y", Tensor::of<std::uint8_t>({2000}, std::span<const std::uint8_t>(a)),
                      Tensor::of<std::uint8_t>({2000}, std::span<const std::uint8_t>(b)), 0)
        .ok;
  };
  EXPECT_TRUE(off_by(1, 2));
  EXPECT_FALSE(off_by(1, 3));
  EXPECT_FALSE(off_by(2, 1));
}

TEST(Difference, WhatABoundedOutputHasLeftOverMeansNothing) {
  const Tensor a = Tensor::of<float>({2}, {4e-7F, 1e-8F}), b = Tensor::of<float>({2}, {4.3e-7F, 1e-8F});
  EXPECT_FALSE(difference("y", a, b, 1e-4).ok);
  EXPECT_TRUE(difference("y", a, b, 1e-4, 1e-6).ok);
}

TEST(Difference, OfKind) {
  const auto kinds = [](std::initializer_list<float> a, std::initializer_list<float> b,
                        std::initializer_list<float> other) {
    const Tensor third = Tensor::of<float>({2}, other);
    return difference_in_kind("y", Tensor::of<float>({2}, a), Tensor::of<float>({2}, b), &third).ok;
  };
  EXPECT_TRUE(kinds({nan, 1}, {nan, 5}, {nan, 1}));
  EXPECT_FALSE(kinds({nan, 1}, {1, 1}, {nan, 1}));
  EXPECT_FALSE(kinds({1, 1}, {INFINITY, 1}, {1, 1}));
  EXPECT_FALSE(kinds({INFINITY, 1}, {-INFINITY, 1}, {INFINITY, 1}));
  EXPECT_TRUE(kinds({nan, 1}, {1, 1}, {1, 1})) << "the model leaves it open";
  const Tensor no = Tensor::of<bool>({1}, {false}), yes = Tensor::of<bool>({1}, {true});
  EXPECT_TRUE(difference_in_kind("y", no, no, nullptr).ok);
  EXPECT_FALSE(difference_in_kind("y", no, yes, nullptr).ok) << "of IsNaN or a comparison";
  EXPECT_TRUE(difference_in_kind("y", no, yes, &yes).ok);
}

TEST(Bisect, FindsTheStep) {
  for (std::size_t count = 1; count < 20; ++count)
    for (std::size_t culprit = 0; culprit < count; ++culprit)
      EXPECT_EQ(first_culprit(count, [&](std::size_t k) { return k > culprit; }), culprit);
}

Model with_inputs(const std::vector<std::pair<std::string, Type>>& inputs) {
  Model model;
  model.opsets[""] = 17;
  for (const auto& [name, type] : inputs) model.graph().add_input(name, type);
  return model;
}

/// Every set of feeds that is made up for a model, before the model was asked.
std::map<std::string, Feeds> all_feeds(const Model& model, const std::map<std::string, Dims>& given = {}) {
  std::map<std::string, Feeds> all;
  const Idea typical = typical_idea(model);
  std::vector<Idea> ideas = further_ideas(model, typical.extents.front(), given);
  ideas.push_back(typical);
  for (const Idea& idea : ideas)
    all[idea.name] = made_up(model, input_dims(model, idea.extents.front(), given), idea.extents.front(), idea.style);
  return all;
}

TEST(Feeds, SymbolsAreTied) {
  const Dim batch = Dim::symbol("batch"), seq = Dim::symbol("seq");
  const Model model = with_inputs({{"input_ids", Type::tensor(DType::i64, Shape({batch, seq}))},
                                   {"attention_mask", Type::tensor(DType::i64, Shape({batch, seq}))},
                                   {"past", Type::tensor(DType::f32, Shape({batch, seq + 1}))}});
  for (const auto& [name, feeds] : all_feeds(model)) {
    EXPECT_EQ(feeds.at("input_ids").dims(), feeds.at("attention_mask").dims()) << name;
    EXPECT_EQ(feeds.at("past").dims()[1], feeds.at("input_ids").dims()[1] + 1) << name;
  }
}

TEST(Feeds, EverySymbolTakesShortOddAndTypicalValuesAndUnlikeOnesAreUnlike) {
  const Dim batch = Dim::symbol("batch"), source = Dim::symbol("source_len"), target = Dim::symbol("target_len");
  const Model model = with_inputs({{"a", Type::tensor(DType::f32, Shape({batch, source}))},
                                   {"b", Type::tensor(DType::f32, Shape({batch, target}))}});
  std::set<std::int64_t> batches, lengths;
  bool unlike = false;
  for (const auto& [name, feeds] : all_feeds(model)) {
    batches.insert(feeds.at("a").dims()[0]);
    lengths.insert(feeds.at("a").dims()[1]);
    unlike |= feeds.at("a").dims()[1] != feeds.at("b").dims()[1];
    EXPECT_EQ(feeds.at("a").dims()[0], feeds.at("b").dims()[0]);
  }
  for (const std::int64_t n : {0, 1, 2, 3}) EXPECT_TRUE(batches.contains(n)) << n;
  for (const std::int64_t n : {1, 2, 7, 64}) EXPECT_TRUE(lengths.contains(n)) << n;
  EXPECT_TRUE(unlike);
}

TEST(Feeds, GivenShapesBindSymbols) {
  const Dim w = Dim::symbol("w");
  const Model model =
      with_inputs({{"a", Type::tensor(DType::f32, Shape({Dim(1), w}))}, {"b", Type::tensor(DType::f32, Shape({w}))}});
  for (const auto& [name, feeds] : all_feeds(model, {{"a", {1, 11}}}))
    EXPECT_EQ(feeds.at("b").dims(), Dims{11}) << name;
  Options options;
  options.input_shapes["a"] = {11};
  EXPECT_THROW(synthetic_feeds(model, options), Error);
}

TEST(Feeds, IndicesTouchBothEndsOfTheirTable) {
  Model model = with_inputs({{"ids", Type::tensor(DType::i64, Shape({Dim(2), Dim(50)}))}});
  Graph& graph = model.graph();
  Value& table = graph.add_constant(Tensor::of<float>({5, 1}, {0, 1, 2, 3, 4}));
  graph.add("Gather", {&table, graph.inputs()[0]});
  for (const auto& [name, feeds] : all_feeds(model))
    for (const std::int64_t id : feeds.at("ids").as<std::int64_t>()) EXPECT_TRUE(id >= 0 && id < 5) << name;
  const Feeds ends = all_feeds(model).at("range ends");
  const auto ids = ends.at("ids").as<std::int64_t>();
  EXPECT_EQ(*std::min_element(ids.begin(), ids.end()), 0);
  EXPECT_EQ(*std::max_element(ids.begin(), ids.end()), 4);
}

TEST(Feeds, PositionsBehindACacheStayInTheirTable) {
  const Dim n = Dim::symbol("seq");
  Model model = with_inputs({{"position_ids", Type::tensor(DType::i64, Shape({Dim(1), n}))},
                             {"past_key", Type::tensor(DType::f32, Shape({Dim(1), Dim::symbol("past_len")}))}});
  Graph& graph = model.graph();
  graph.add("Gather", {&graph.add_constant(Tensor::of<float>({16, 1}, std::span<const float>(std::vector<float>(16)))),
                       graph.inputs()[0]});
  const Feeds feeds = all_feeds(model).at("positions behind a cache");
  const auto positions = feeds.at("position_ids").as<std::int64_t>();
  EXPECT_EQ(positions[0], feeds.at("past_key").dims()[1]);
  EXPECT_EQ(positions.back(), 15);
}

/// ONNX Runtime divides by extents that are 0 inside of a model, too.
TEST(Feeds, WhatIsComputedFromThemMayBeEmpty) {
  Model model = with_inputs({{"x", Type::tensor(DType::f32, Shape({Dim(1), Dim(1), Dim::symbol("H")}))}});
  Graph& graph = model.graph();
  Value* x = graph.inputs()[0];
  graph.add_output(*graph.add("MaxPool", {x}, {.attrs = {{"kernel_shape", Ints{4}}}}).output());
  const auto of = [](std::int64_t length) {
    return Feeds{{"x", Tensor::make(DType::f32, {1, 1, length}, [](std::byte*) {})}};
  };
  EXPECT_FALSE(outlook(model, of(4)).empty);
  EXPECT_TRUE(outlook(model, of(3)).empty);
  EXPECT_TRUE(outlook(model, of(0)).empty);
}

TEST(Feeds, MayAskForAShapeThatTheRuntimeMakesUp) {
  const auto contradicts = [](const std::string& end, std::int64_t rows) {
    const Model model = Model::from_text(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[N,4] x) => (int64[2] y) "
        "{ m = ReduceMean<axes = [1]>(x)  s = Sqrt(m) " +
        end + "}");
    return outlook(model, {{"x", Tensor::make(DType::f32, {rows, 4}, [](std::byte*) {})}}).contradicts;
  };
  EXPECT_TRUE(contradicts("y = Shape(s)", 0));
  EXPECT_FALSE(contradicts("y = Shape(s)", 2));
  EXPECT_FALSE(contradicts("y = Shape(x)", 0));
}

/// Products of a long sequence with itself: what goes in is small, what lies between is not.
TEST(Feeds, TellWhatTheyLeadTo) {
  Model model = with_inputs({{"x", Type::tensor(DType::f32, Shape({Dim(1), Dim::symbol("T"), Dim(1)}))}});
  Graph& graph = model.graph();
  Value* x = graph.inputs()[0];
  Value* turned = graph.add("Transpose", {x}, {.attrs = {{"perm", Ints{0, 2, 1}}}}).output();
  graph.add_output(*graph.add("MatMul", {x, turned}).output());
  const Feeds feeds = {{"x", Tensor::make(DType::f32, {1, 300, 1}, [](std::byte*) {})}};
  EXPECT_EQ(outlook(model, feeds).largest, 90000);
}

TEST(Feeds, AreDeterministic) {
  const Model model = with_inputs({{"image", Type::tensor(DType::f32, Shape({Dim(), Dim(3), Dim(), Dim()}))}});
  const auto a = all_feeds(model), b = all_feeds(model);
  for (const auto& [name, feeds] : a) EXPECT_TRUE(feeds.at("image").same_content(b.at(name).at("image"))) << name;
  EXPECT_FALSE(a.at("typical").at("image").dims() == a.at("other sizes").at("image").dims());
  const auto colours = a.at("image 0..255").at("image").as<float>();
  EXPECT_GT(*std::max_element(colours.begin(), colours.end()), 250);
}

/// Rows of a mask as text: 1 is to be seen.
std::vector<std::string> rows(const Tensor& mask) {
  std::vector<std::string> rows;
  const std::int64_t last = mask.dims().back();
  const std::vector<double> values = mask.to_doubles();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % static_cast<std::size_t>(last) == 0) rows.emplace_back();
    rows.back() += values[i] == 1 ? '1' : values[i] == 0 ? '0' : '-';
  }
  return rows;
}

TEST(Feeds, MasksArePaddedOnBothSidesAndRowsHiddenAsAWhole) {
  const Model model = with_inputs({{"attention_mask", Type::tensor(DType::i64, Shape({Dim(3), Dim(6)}))}});
  const auto feeds = all_feeds(model);
  using Rows = std::vector<std::string>;
  EXPECT_EQ(rows(feeds.at("typical").at("attention_mask")), (Rows{"111111", "111111", "111111"}));
  EXPECT_EQ(rows(feeds.at("right padding").at("attention_mask")), (Rows{"111100", "100000", "111111"}));
  EXPECT_EQ(rows(feeds.at("left padding").at("attention_mask")), (Rows{"001111", "000001", "111111"}));
  EXPECT_EQ(rows(feeds.at("masked rows").at("attention_mask")), (Rows{"111111", "000000", "111111"}));
}

Meaning meaning_in(const std::string& text, const std::string& input) {
  const Model model = Model::from_text("<ir_version: 8, opset_import: [\"\" : 17]> g " + text);
  return meaning_of(*model.graph().find(input));
}

TEST(Roles, ColumnsOfATableMayBeIds) {
  const Meaning ids = meaning_in(R"((int64[N,2] x, float[9,4] t, float[5,4] u) => (float[N,4] y)
    <int64 i0 = {0}, int64 i1 = {1}> { a = Gather<axis = 1>(x, i0)  b = Gather<axis = 1>(x, i1)
      p = Gather(t, a)  q = Gather(u, b)  y = Add(p, q) })",
                                 "x");
  EXPECT_TRUE(ids.role == Role::ids && ids.limit == 5);
  const Meaning floats = meaning_in(R"((float[N,2] x, float[9,4] t, float[1,4] w) => (float[N,4] y)
    <int64[2] sizes = {1, 1}, int64[1] axis = {1}> { a, b = Split<axis = 1>(x, sizes)  c = Squeeze(a, axis)
      i = Cast<to = 7>(c)  p = Gather(t, i)  q = MatMul(b, w)  y = Add(p, q) })",
                                    "x");
  EXPECT_TRUE(floats.role == Role::plain && floats.limit == 9);
  const Meaning shifted = meaning_in(R"((int64[N,2] x, float[9,4] t) => (float[N,2,4] y)
    <int64[2] begins = {0, 4}> { a = Add(begins, x)  y = Gather(t, a) })",
                                     "x");
  EXPECT_TRUE(shifted.role == Role::ids && shifted.limit == 5) << shifted.limit;
}

TEST(Roles, LengthsAreKnownByThePositionsThatTheyEnd) {
  const std::string begin = "(int64[N] x, float[N,T,4] s) => (bool[N,T] y) ";
  for (const char* body :
       {"<int64 zero = {0}, int64 one = {1}, int64[1] axis = {1}> { m = ReduceMax<keepdims = 0>(x)"
        " r = Range(zero, m, one)  t = Unsqueeze(x, axis)  y = GreaterOrEqual(r, t) }",
        "<int64[4] r = {0, 1, 2, 3}, int64[1] axis = {1}> { t = Unsqueeze(x, axis)  y = Greater(t, r) }"})
    EXPECT_EQ(meaning_in(begin + body, "x").role, Role::lengths) << body;
  const char* other = "<int64[4] r = {0, 7, 2, 3}, int64[1] axis = {1}> { t = Unsqueeze(x, axis)  y = Greater(t, r) }";
  EXPECT_EQ(meaning_in(begin + other, "x").role, Role::ids);
}

TEST(Feeds, SoundIsASecondLongBesideAFewTokens) {
  const Model model = Model::from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[B,T] sound, int64[C,S] ids, float[9,2] table) => (float[B,2,L] y, float[C,S,2] z)
    <float[2,1,4] w = {1,1,1,1,1,1,1,1}, int64[1] one = {1}> {
      x = Unsqueeze(sound, one)  y = Conv<strides = [4]>(x, w)  z = Gather(table, ids) })");
  const Dims sound = input_dims(model, typical_idea(model).extents[0], {}).at("sound");
  EXPECT_EQ(sound, (Dims{1, 16000}));
  EXPECT_EQ(input_dims(model, typical_idea(model).extents[0], {}).at("ids"), (Dims{1, 64}));
  const Model microphones = Model::from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[B,M,T] sound) => (float[N,2,L] y)
    <float[2,1,4] w = {1,1,1,1,1,1,1,1}, int64[3] rows = {-1, 1, 16000}> {
      x = Reshape(sound, rows)  y = Conv<strides = [4]>(x, w) })");
  EXPECT_EQ(input_dims(microphones, typical_idea(microphones).extents[0], {}).at("sound"), (Dims{1, 64, 16000}));
}

/// The batch of the export stayed in the token of the class.
TEST(Feeds, ABatchThatAConstantKeepsIsFound) {
  const auto runtime = Runtime::find();
  if (!runtime) GTEST_SKIP() << "no ONNX Runtime";
  Model model = Model::from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,3,2] x) => (float[N,4,2] y) <float[8,1,2] token = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}> { y = Concat<axis = 1>(token, x) })");
  const Reference reference = make_reference(*runtime, model, {});
  ASSERT_FALSE(reference.feeds.empty()) << reference.why_not;
  EXPECT_EQ(reference.feeds[0].values.at("x").dims(), (Dims{8, 3, 2}));
}

TEST(Roles, MasksAreKnownByTheirUse) {
  const Meaning hides = meaning_in(R"((bool[N,1,T] p, float[N,T,T] s) => (float[N,T,T] y)
    <float low = {-1e9}> { m = Where(p, low, s)  y = Softmax(m) })",
                                   "p");
  EXPECT_TRUE(hides.role == Role::mask && hides.one_hides);
  const Meaning keeps = meaning_in(R"((bool[N,1,T] p, float[N,T,T] s) => (float[N,T,T] y)
    <float low = {-1e9}> { n = Not(p)  m = Where(n, low, s)  y = Softmax(m) })",
                                   "p");
  EXPECT_TRUE(keeps.role == Role::mask && !keeps.one_hides);
  const Meaning bias = meaning_in(R"((float[N,1,T] b, float[N,T,T] s) => (float[N,T,T] y)
    { m = Add(s, b)  y = Softmax(m) })",
                                  "b");
  EXPECT_TRUE(bias.role == Role::bias);
  const Meaning computed = meaning_in(R"((int64[N,1,T] k, float[N,T,T] s) => (float[N,T,T] y)
    <float one = {1.0}, float low = {-1e4}>
    { f = Cast<to = 1>(k)  i = Sub(one, f)  b = Mul(i, low)  m = Add(s, b)  y = Softmax(m) })",
                                      "k");
  EXPECT_TRUE(computed.role == Role::mask && !computed.one_hides);
  const Meaning plain = meaning_in(R"((float[N,T] x) => (float[N,T] y) <float[1] c = {2.0}>
    { m = Add(x, c)  y = Softmax(m) })",
                                   "x");
  EXPECT_TRUE(plain.role == Role::plain);
  const Meaning image = meaning_in(R"((float[N,4,4] x, float[N,4,4] s) => (float[N,4,4] y, float[N,2,4] z)
    <float[2,4,1] w = {1, 2, 3, 4, 4, 3, 2, 1}> { m = Add(s, x)  y = Softmax(m)  z = Conv(x, w) })",
                                   "x");
  EXPECT_TRUE(image.role == Role::plain) << "the lowest number is nothing to convolve";
}

std::optional<double> bound_in(const std::string& text) {
  const Model model = Model::from_text("<ir_version: 8, opset_import: [\"\" : 17]> g " + text);
  return bound_of(*model.graph().outputs()[0]);
}

TEST(Bounds, AreCarriedByWhatOnlyMoves) {
  EXPECT_EQ(bound_in("(float[4] x) => (float[4] y) { y = Sigmoid(x) }"), 1);
  EXPECT_EQ(bound_in(R"((float[2,4] x) => (float[4,4] y) { a = Softmax(x)  b = Sigmoid(x)  c = Concat<axis = 0>(a, b)
    y = Transpose(c) })"),
            1);
  EXPECT_EQ(bound_in("(float[2,4] x) => (float[4,4] y) { a = Softmax(x)  y = Concat<axis = 0>(a, x) }"), std::nullopt);
  EXPECT_EQ(bound_in("(float[4] x) => (float[4] y) { a = Sigmoid(x)  y = Log(a) }"), std::nullopt);
}

}  // namespace
}  // namespace modelflow
