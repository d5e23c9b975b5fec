// The tests of the passes, written as text: tests/passes/*.onnxtxt. Each case is a model, the passes it goes through
// and the model that must come out:
//
//     pass: identities,prune   target: cpu:avx2   opset: 17   precision: float32
//     -- a Cast to the same type goes
//     (float[N,8] x) => (float[N,8] y) { c = Cast<to=1>(x)  y = Relu(c) }
//     => (float[N,8] x) => (float[N,8] y) { y = Relu(x) }
//     -- one that rounds stays (opset 9)
//     (float[N] x) => (float16[N] y) { y = Cast<to=10>(x) }
//     => unchanged
//
// "unchanged: RULE: part of the reason" also asks for the miss that the pass must have reported; where another pass
// changes the model, a line "miss: RULE: part of the reason" in front of the "=>" does. Five things are
// proven: the structure of the result, its numbers (both models run in ONNX Runtime, also with extents of 0 and 1 as
// far as the original takes them, unless the title ends in "(no short extents)"), that every value has the type
// that its node gives it, that a second run changes nothing, and that the result survives writing and reading.
// MODELFLOW_UPDATE=1 writes the results into the files instead.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "modelflow/modelflow.h"
#include "src/emit/emit.h"
#include "src/text/equal.h"
#include "src/verify/compare.h"
#include "src/verify/feeds.h"
#include "src/verify/probe.h"
#include "tests/left_open.h"
#include "tests/pass_cases.h"

namespace modelflow {

static void PrintTo(const Case& c, std::ostream* out) {
  *out << c.file.filename().string() << ":" << c.line << " " << c.title;
}

namespace {

using Outcome = Transformed;

constexpr std::string_view kNoShortExtents = "(no short extents)";

Outcome transform(const Case& c, Model model, const std::shared_ptr<Runtime>& runtime) {
  const Options options = options_of(c);
  return transform(passes_of(c.passes, options), options, std::move(model), runtime);
}

std::string graph_text(const Model& model) {
  const std::string text = model.to_text();
  const auto at = text.find('(', text.find(']'));  // behind the header: "<...> name (inputs) => ..."
  return trimmed(at == std::string::npos ? text : text.substr(at));
}

bool updating() { return std::getenv("MODELFLOW_UPDATE") != nullptr; }

void rewrite_expectation(const Case& c, const Outcome& outcome) {
  std::string text = read_file(c.file);
  const auto title = text.find("-- " + c.title + "\n");
  const auto at = text.find(c.expected, title);
  ASSERT_TRUE(title != std::string::npos && at != std::string::npos);
  text.replace(at, c.expected.size(), " " + (outcome.changes ? graph_text(outcome.model) : "unchanged") + "\n");
  std::ofstream(c.file, std::ios::binary) << text;
}

/// `expected` is "RULE: part of the reason".
void expect_miss(const std::string& expected, const Outcome& outcome) {
  const auto colon = expected.find(':');
  const std::string rule = trimmed(expected.substr(0, colon));
  const std::string reason = colon == std::string::npos ? "" : trimmed(expected.substr(colon + 1));
  std::string seen;
  for (const Miss& miss : outcome.report.misses) {
    if (miss.rule == rule && miss.reason.find(reason) != std::string::npos) return;
    seen += "\n  " + miss.rule + ": " + miss.reason;
  }
  ADD_FAILURE() << "no miss of " << rule << " says \"" << reason << "\"; reported:" << seen;
}

/// What a pass noted of its values against what the nodes say when they are asked anew.
void expect_types(const Model& model) {
  Model anew = model;
  for (const auto& node : anew.graph().nodes())
    for (Value* output : node->outputs())
      if (output && !output->is_graph_output()) output->type = {};
  infer_types(anew);
  for (const auto& node : model.graph().nodes())
    for (const Value* output : node->outputs()) {
      const Value* other = output ? anew.graph().find(output->name()) : nullptr;
      if (!other || !contradict(output->type, other->type)) continue;
      ADD_FAILURE() << output->name() << " is " << output->shape().str() << ", not " << other->shape().str();
    }
}

/// ONNX Runtime divides by an extent of 0 in these and takes the process with it.
bool dies_of_nothing(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
    for (const char* op : {"Einsum", "LSTM", "GRU", "RNN", "InstanceNormalization"})
      if (node->is(op)) return true;
    for (const Graph* inner : node->subgraphs())
      if (dies_of_nothing(*inner)) return true;
    return false;
  });
}

/// Extents of the inputs where every symbol, or the first alone, is 0 or 1.
std::vector<std::map<std::string, Dims>> short_extents(const Model& model) {
  std::vector<std::string> symbols;
  for (const Value* input : model.graph().inputs()) {
    if (!input->type.is_tensor() || !input->shape().has_rank()) return {};
    for (const Dim& dim : input->shape().dims()) {
      if (dim.unknown()) return {};
      for (const std::string& symbol : dim.symbols())
        if (std::ranges::find(symbols, symbol) == symbols.end()) symbols.push_back(symbol);
    }
  }
  std::vector<std::map<std::string, Dims>> all;
  if (symbols.empty()) return all;
  for (const auto& [first, others] : {std::pair{0, 3}, {0, 0}, {1, 1}, {2, 1}, {2, 0}}) {
    if ((first == 0 || others == 0) && dies_of_nothing(model.graph())) continue;
    std::map<std::string, std::int64_t> numbers;
    for (const std::string& symbol : symbols) numbers[symbol] = symbol == symbols[0] ? first : others;
    std::map<std::string, Dims> extents;
    for (const Value* input : model.graph().inputs())
      for (const Dim& dim : input->shape().dims()) extents[input->name()].push_back(dim.evaluate(numbers).value());
    all.push_back(std::move(extents));
  }
  return all;
}

std::int64_t count_of(const std::map<std::string, Dims>& extents) {
  std::int64_t product = 1;
  for (const auto& [name, dims] : extents) product *= element_count(dims);
  return product;
}

std::string shown(const std::map<std::string, Dims>& extents) {
  std::string text;
  for (const auto& [name, dims] : extents) text += name + Shape::of(dims).str() + " ";
  return text;
}

void expect_numbers(const Case& c, const Reference& reference, Session& session) {
  const int products = c.passes.find("attention") != std::string::npos ? 2 : 1;
  for (std::size_t i = 0; i < reference.feeds.size(); ++i) {
    if (!reference.feeds[i].ordinary) continue;
    SCOPED_TRACE("feed " + reference.feeds[i].name);
    const std::vector<Tensor> results = session.run(reference.feeds[i].values);
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (reference.random[k]) continue;
      const OutputDiff diff = difference(reference.names[k], reference.outputs[i][k], results[k],
                                         tolerance_of(c.precision, products), reference.floors[k]);
      // One step of 8 bits: integer sums and their float form round a tie to either side.
      const bool one_step = results[k].dtype() == DType::u8 && diff.max_abs <= 1;
      EXPECT_TRUE(diff.ok || one_step) << diff.output << " differs by " << diff.max_rel;
    }
  }
}

/// Padding, silence, ends of tables and so on, which are no matter of rounding in few bits.
void expect_data_as_it_comes(const Case& c, const Reference& reference, Runtime& runtime, const Model& before,
                             const Model& after) {
  for (std::size_t i = 0; i < reference.feeds.size() && c.precision == Precision::f32; ++i) {
    const Feed& feed = reference.feeds[i];
    const bool empty = has_empty_input(feed.values);
    if (feed.ordinary || (empty && c.title.ends_with(kNoShortExtents))) continue;
    const Comparison all = compare(runtime, reference, before, after, {}, {.only = &i, .optimize = false});
    EXPECT_TRUE(all.ok || !left_open(runtime, before, feed.values).empty())
        << "feed '" << feed.name << "': " << all.fault.output << " " << describe(all.fault) << all.why;
  }
}

Reference short_reference(Runtime& runtime, const Model& model, const std::map<std::string, Dims>& extents) {
  try {
    return make_reference(
        runtime, model, {},
        {{.name = "short", .values = made_up(model, input_dims(model, {}, extents), {}, Style::typical)}});
  } catch (const Error& error) {
    Reference none;
    none.why_not = error.what();
    return none;
  }
}

class PassCase : public testing::TestWithParam<Case> {};

TEST_P(PassCase, Holds) {
  const Case& c = GetParam();
  SCOPED_TRACE(c.file.string() + ":" + std::to_string(c.line));
  std::string why;
  const std::shared_ptr<Runtime> runtime = Runtime::find(&why);
  const Model before = parse(c, c.before);
  Outcome outcome = transform(c, before, runtime);
  const std::string expected = trimmed(c.expected);
  if (updating() && !expected.starts_with("unchanged:")) {
    rewrite_expectation(c, outcome);
  } else if (expected.starts_with("unchanged")) {
    EXPECT_EQ(outcome.changes, 0) << graph_text(outcome.model);
    if (expected.starts_with("unchanged:")) expect_miss(expected.substr(10), outcome);
  } else {
    EXPECT_TRUE(equal(outcome.model, parse(c, expected))) << "the result is\n" << graph_text(outcome.model);
    EXPECT_EQ(transform(c, outcome.model, runtime).changes, 0) << "a second run changes\n" << graph_text(outcome.model);
  }
  if (!c.miss.empty()) expect_miss(c.miss, outcome);
  expect_types(outcome.model);
  EXPECT_TRUE(equal(Model::from_text(outcome.model.to_text()), outcome.model)) << outcome.model.to_text();
  const std::string bytes = outcome.model.to_bytes();
  EXPECT_TRUE(equal(Model::from_bytes(std::as_bytes(std::span(bytes))), outcome.model));

  if (!runtime) GTEST_SKIP() << "numbers not compared: " << why;
  const Reference reference = make_reference(*runtime, before, {});
  ASSERT_EQ(reference.why_not, "");
  emit_functions(outcome.model);
  const auto session = open_session(*runtime, outcome.model, {.optimize = false});
  expect_numbers(c, reference, *session);
  expect_data_as_it_comes(c, reference, *runtime, before, outcome.model);
  if (c.title.ends_with(kNoShortExtents)) return;
  // The result may hold such ops where the original did not: then it is not asked.
  const bool dies = dies_of_nothing(outcome.model.graph());
  for (const auto& extents : short_extents(before)) {
    if (dies && count_of(extents) == 0) continue;
    const Reference other = short_reference(*runtime, before, extents);
    if (!other.why_not.empty()) continue;  // the model itself does not take them
    SCOPED_TRACE(shown(extents));
    expect_numbers(c, other, *session);
  }
}

/// A mode that no ONNX Runtime of today runs: its blocks are those that PyTorch's pixel_unshuffle writes out.
TEST(SpaceToDepth, ChannelsOutermostAreThoseOfPixelUnshuffle) {
  const auto convolution_over = [](int opset, const std::string& blocks) {
    const Options options;
    Model model = Model::from_text("<ir_version: 13, opset_import: [\"\" : " + std::to_string(opset) + R"(]>
        g (float[N,2,4,4] x) => (float[N,1,2,2] y) <float[1,8,1,1] w = {1, 2, 3, 4, 5, 6, 7, 8},
           int64[6] apart = {-1, 2, 2, 2, 2, 2}, int64[4] joined = {-1, 8, 2, 2}> {)" +
                                   blocks + "y = Conv(d, w) }");
    infer_types(model);
    return graph_text(transform(passes_of("space-to-depth,prune", options), options, std::move(model), nullptr).model);
  };
  const std::string written_out =
      convolution_over(17, "r = Reshape(x, apart) t = Transpose<perm = [0, 1, 3, 5, 2, 4]>(r) d = Reshape(t, joined) ");
  EXPECT_EQ(convolution_over(28, R"(d = SpaceToDepth<blocksize = 2, mode = "CRD">(x) )"), written_out);
  EXPECT_NE(convolution_over(28, R"(d = SpaceToDepth<blocksize = 2, mode = "DCR">(x) )"), written_out);
}

INSTANTIATE_TEST_SUITE_P(Text, PassCase, testing::ValuesIn(all_cases()), [](const auto& info) {
  std::string name = info.param.file.stem().string() + "_" + std::to_string(info.param.line);
  for (char& ch : name)
    if (!std::isalnum(static_cast<unsigned char>(ch))) ch = '_';
  return name;
});

}  // namespace
}  // namespace modelflow
