// Models for the passes of static int8, which text cases cannot have: they are for one round, and go by calibration.
#include "tests/obligations/seeds.h"
#include "tests/pass_cases.h"

namespace modelflow::obligations {
namespace {

constexpr const char* kEqualize = "fuse-conv,fuse-matmul,equalize-convolutions,equalize-products,prune";
constexpr const char* kQuantize =
    "fuse-conv,fuse-matmul,place-quantizers,fuse-quantized,quantize-products,correct-bias,prune";
constexpr const char* kFourBits = "fuse-matmul,quantize-products,compensate-rounding,prune";

constexpr const char* kConvolutions = R"((float[N,4,6,6] x) => (float[N,4,6,6] y)
<float[4,4,1,1] w = {0.25, 0.25, 0.25, 0.25, 0.5, 0.25, 0.25, 0.25, 0.25, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25, 0.5},
 float[4] b = {0.5, 0.25, 0.125, 0.5}> { a = Conv(x, w, b)  r = Relu(a)  y = Conv(r, w, b) })";
constexpr const char* kProducts = R"((float[N,4] x) => (float[N,4] y)
<float[4,4] w = {0.25, 0.25, 0.25, 0.25, 0.5, 0.25, 0.25, 0.25, 0.25, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25, 0.5},
 float[4] b = {0.5, 0.25, 0.125, 0.5}> { a = MatMul(x, w)  s = Add(a, b)  p = MatMul(s, w)  y = Add(p, b) })";

Model wide_product() {
  const std::string weights =
      "{ k = Constant<value = int64[2] {64, 2}>()  w = ConstantOfShape<value = float[1] {0.1}>(k) ";
  return Model::from_text("<ir_version: 8, opset_import: [\"\" : 17]> test (float[N,64] x) => (float[N,2] y) " +
                          weights + " p = Abs(x)  y = MatMul(p, w) }");
}

Seed seed(const std::string& name, const char* passes, Precision precision, Model model) {
  Options options;
  options.target = Target::parse("cpu:avx512_vnni");
  options.measure = false;
  options.precision = precision;
  return {name, passes_of(passes, options), options, std::move(model), 1};
}

Model plain(const char* text) {
  return Model::from_text(std::string("<ir_version: 8, opset_import: [\"\" : 17]> test ") + text);
}

/// What folding makes of a computed constant.
Model folded(Model model) {
  Tensor weights = Tensor::make(DType::f32, {64, 2}, [](std::byte* bytes) {
    for (int i = 0; i < 128; ++i) reinterpret_cast<float*>(bytes)[i] = static_cast<float>(1 + i % 7) / 10;
  });
  Graph& graph = model.graph();
  Node* shaped = nullptr;
  for (const auto& node : graph.nodes())
    if (node->is("ConstantOfShape")) shaped = node.get();
  graph.replace(*shaped->output(), graph.add_constant(std::move(weights), "w"));
  graph.prune();
  return model;
}

}  // namespace

std::vector<Seed> calibrated_seeds() {
  std::vector<Seed> seeds;
  seeds.push_back(seed("calibrated convolutions, equalized", kEqualize, Precision::i8, plain(kConvolutions)));
  seeds.push_back(seed("calibrated products, equalized", kEqualize, Precision::i8, plain(kProducts)));
  seeds.push_back(seed("calibrated convolutions", kQuantize, Precision::i8, plain(kConvolutions)));
  seeds.push_back(seed("calibrated products in 4 bits", kFourBits, Precision::i4_weights, folded(wide_product())));
  std::erase_if(seeds, [](Seed& made) { return !settle(made.model); });
  return seeds;
}

}  // namespace modelflow::obligations
