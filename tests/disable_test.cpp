// Whatever is switched off, the model stays right: every pass and every rule that does something to a small model of
// its family is disabled in turn, and the results are compared with those of the original.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "modelflow/modelflow.h"
#include "src/verify/compare.h"
#include "src/verify/exact_products.h"
#include "tests/lower_precision.h"

namespace modelflow {
namespace {

namespace fs = std::filesystem;

struct Family {
  std::string name;
  Precision precision = Precision::f32;
};

void PrintTo(const Family& family, std::ostream* out) { *out << family.name << " " << name(family.precision); }

/// A product as quantize_dynamic of ONNX Runtime writes it, by unsigned weights with zero points: 64 rows, 4 columns.
Model dynamic_product() {
  Model model = empty_model("dynamic_product");
  Graph& graph = model.graph();
  Value& x = graph.add_input("x", Type::tensor(DType::f32, Shape({Dim::symbol("N"), 64})));
  const Dims dims = {64, 4};
  Value& w = graph.add_constant(Tensor::make(DType::u8, dims, [](std::byte* to) {
    for (int i = 0; i < 256; ++i) to[i] = static_cast<std::byte>(i * 73 % 251);
  }));
  Value& scales = graph.add_constant(Tensor::of<float>({4}, std::vector<float>{0.01F, 0.02F, 0.03F, 0.005F}));
  Value& zeros = graph.add_constant(Tensor::of<std::uint8_t>({4}, std::vector<std::uint8_t>{100, 3, 250, 128}));
  Node& steps = graph.add("DynamicQuantizeLinear", {&x}, {.outputs = 3});
  Node& sums = graph.add("MatMulInteger", {steps.output(0), &w, steps.output(2), &zeros});
  Node& cast = graph.add("Cast", {sums.output()}, {.attrs = {{"to", std::int64_t{1}}}});
  Node& both = graph.add("Mul", {steps.output(1), &scales});
  Value& y = *graph.add("Mul", {cast.output(), both.output()}).output();
  graph.rename(y, "y");
  y.type = Type::tensor(DType::f32, Shape({Dim::symbol("N"), 4}));
  graph.add_output(y);
  return model;
}

/// One of the corpus of exporters' spellings, or one of this file.
Model model_of(const Family& family) {
  if (family.name == "dynamic_product") return dynamic_product();
  if (family.name == "perceptron") return perceptron();
  if (family.name == "network") return network();
  std::ifstream in(fs::path(MODELFLOW_SOURCE_DIR) / "tests/corpus" / (family.name + ".onnxtxt"));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return Model::from_text(text);
}

Options quick(const Family& family) {
  Options options;
  if (family.precision == Precision::i8) options = int8(4);
  options.precision = family.precision;
  options.target = Target::parse("cpu:avx512_vnni");
  options.measure = options.verify = false;
  options.max_drop = 100;
  return options;
}

/// What was done, by the names that --disable takes.
std::set<std::string> hits(const Report& report, const Options& options) {
  std::set<std::string> known, names;
  for (const Stage& stage : stages(options))
    for (const Pass& pass : stage.passes) {
      known.insert(pass.name);
      for (const Rule& rule : pass.rules) known.insert(rule.name);
    }
  const auto add = [&](const std::string& name) {
    if (known.contains(name)) names.insert(name);
  };
  for (const StepReport& step : report.steps) {
    if (!step.hits.empty()) add(step.name);
    for (const auto& [rule, times] : step.hits) add(rule);
  }
  return names;
}

class Disabling : public testing::TestWithParam<Family> {};

TEST_P(Disabling, LeavesARightModel) {
  const Family& family = GetParam();
  std::string why;
  const std::shared_ptr<Runtime> runtime = Runtime::find(&why);
  if (!runtime) GTEST_SKIP() << why;
  const Model original = model_of(family);
  Options options = quick(family);
  // Rounding to 8 bits: of weights and of activations, in several layers one after the other.
  options.tolerance = family.precision == Precision::f32 ? 1e-4 : 0.06;
  const Reference reference = make_reference(*runtime, original, options);
  ASSERT_EQ(reference.why_not, "");
  const std::set<std::string> names = hits(optimize(original, options).report, options);
  ASSERT_FALSE(names.empty());
  for (const std::string& name : names) {
    options.disabled = {name};
    const Model result = optimize(original, options).model;
    for (std::size_t i = 0; i < reference.feeds.size(); ++i) {
      if (!reference.feeds[i].ordinary) continue;
      const Comparison all =
          compare(*runtime, reference, original, result, options, {.only = &i, .optimize = multiplies_bytes_exactly()});
      EXPECT_TRUE(all.ok) << "without " << name << ": " << all.fault.output << " " << describe(all.fault) << all.why;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Families, Disabling,
    testing::Values(Family{"conv_bn_hardswish/torchscript-13"}, Family{"convnext_block/torchscript-17"},
                    Family{"conv_transpose_bn_relu/dynamo-18"}, Family{"embedding_layer_norm/dynamo-18"},
                    Family{"focus/dynamo-18"}, Family{"group_norm/keras-13"}, Family{"gru/dynamo-18"},
                    Family{"l2_normalize/dynamo-18"}, Family{"linear_gelu_tanh/torchscript-13"},
                    Family{"lstm/torchscript-14"}, Family{"mean_pooling/dynamo-18"}, Family{"mlp/dynamo-20-f16"},
                    Family{"rms_norm_llama/torchscript-13"}, Family{"rotary/dynamo-18"},
                    Family{"self_attention_eager/dynamo-18"}, Family{"softmax_masked/dynamo-18"},
                    Family{"squeeze_excite_mobilenet/torchscript-13"}, Family{"swiglu/dynamo-18"},
                    Family{"vit_block_timm/dynamo-18"}, Family{"dynamic_product"},
                    Family{"dynamic_product", Precision::i8_dynamic}, Family{"perceptron", Precision::i8_dynamic},
                    Family{"network", Precision::i8}),
    [](const auto& info) {
      std::string text = info.param.name + "_" + std::string(name(info.param.precision));
      for (char& c : text)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
      return text;
    });

}  // namespace
}  // namespace modelflow
