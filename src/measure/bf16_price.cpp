// What bfloat16 costs on a machine without arithmetic for it, timed or estimated.
#include "src/measure/bf16_price.h"

#include <array>
#include <cstdio>

#include "src/core/bf16.h"
#include "src/emit/emit.h"
#include "src/measure/timing.h"

namespace modelflow {
namespace {

constexpr std::int64_t kRows = 128, kWidth = 768;  // a layer of BERT-base
constexpr double kBudget = 0.5;                    // seconds

Tensor numbers(const Dims& dims) {
  return Tensor::make(DType::f32, dims, [&](std::byte* bytes) {
    std::uint32_t state = 1;
    for (std::int64_t i = 0; i < element_count(dims); ++i) {
      state = state * 1664525U + 1013904223U;
      reinterpret_cast<float*>(bytes)[i] = static_cast<float>(state >> 8) / 8388608.0F - 1;
    }
  });
}

/// One product by weights, in float32 or rounded to bfloat16 on both sides.
Model product(bool bf16) {
  Model model;
  model.opsets[""] = 17;
  model.ir_version = 8;
  Graph& graph = model.graph();
  graph.name = "product";
  const Tensor weights = numbers({kWidth, kWidth});
  Value& x = graph.add_input("x", Type::tensor(DType::f32, Shape::of({kRows, kWidth})));
  Value& w = graph.add_constant(bf16 ? to_bf16(weights) : weights, "w");
  const Attrs attrs = bf16 ? Attrs{{"round_a", std::int64_t{1}}} : Attrs{};
  Node& node = graph.add(bf16 ? "modelflow.MatMulBf16" : "modelflow.MatMul", {&x, &w}, {.attrs = attrs});
  graph.rename(*node.output(), "y");
  infer_types(node, model);
  graph.add_output(*node.output());
  return model;
}

/// In units of the time in float32; nothing when it cannot be timed here.
std::optional<double> measured(const Options& options, Model plain, Model rounded) {
  const std::filesystem::path plugin = plugin_path();
  std::string why;
  const std::shared_ptr<Runtime> runtime = Runtime::find(&why);
  if (!options.measure || !options.target.is_host() || plugin.empty() || !runtime) return {};
  emit_functions(plain);
  emit_functions(rounded);
  const std::vector<Timing> timing =
      time_models(*runtime, {&plain, &rounded}, {{"x", numbers({kRows, kWidth})}}, options, plugin, {kBudget});
  return 1 / timing.at(1).speedup;
}

double estimated(const Target& target, const Model& plain, const Model& rounded) {
  const auto seconds = [&](const Model& model) {
    const Call call = call_of(*model.graph().nodes().front());
    const Choice choice = choose_kernel(call, target);
    if (!choice.kernel) throw Error(ErrorKind::internal, choice.reason);
    return choice.kernel->cost(call, target);
  };
  return seconds(rounded) / seconds(plain);
}

}  // namespace

std::string bf16_price(const Options& options) {
  const Target& target = options.target;
  const Model plain = product(false), rounded = product(true);
  const std::optional<double> timed = measured(options, plain, rounded);
  const double factor = timed ? *timed : estimated(target, plain, rounded);
  std::array<char, 200> price{};
  std::snprintf(
      price.data(), price.size(), "a product of %dx%d by %dx%d rounded to it takes %.2f times as long as in float32",
      static_cast<int>(kRows), static_cast<int>(kWidth), static_cast<int>(kWidth), static_cast<int>(kWidth), factor);
  std::string text = "bfloat16 would not pay: " + target.str() + " has no arithmetic for it, and " + price.data() +
                     (timed ? " (measured here)" : " (by the cost model)");
  if (target.has(Isa::avx512))
    text += "; --precision bf16-weights stores weights in it, for products that wait for memory";
  if (target.has(Isa::avx512_vnni)) text += "; int8 and int8-dynamic are what it is fast in";
  return text;
}

}  // namespace modelflow
