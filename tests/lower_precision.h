// Small models with weights drawn at random, and what tests of lower precision ask of them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>

#include "modelflow/modelflow.h"
#include "src/verify/exact_products.h"
#include "src/verify/reference.h"

namespace modelflow {

inline Tensor random(const Dims& dims, unsigned seed, float deviation = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, deviation);
  return Tensor::make(DType::f32, dims, [&](std::byte* bytes) {
    for (std::int64_t i = 0; i < element_count(dims); ++i) reinterpret_cast<float*>(bytes)[i] = normal(engine);
  });
}

inline Model empty_model(const char* name, std::int64_t opset = 17) {
  Model model;
  model.opsets[""] = opset;
  model.ir_version = 8;
  model.graph().name = name;
  return model;
}

/// Three convolutions with a residual sum, pooling between them, a dense layer behind.
inline Model network(std::int64_t opset = 17) {
  Model model = empty_model("network", opset);
  Graph& graph = model.graph();
  unsigned seed = 1;
  const auto weights = [&](Dims dims, float deviation) { return &graph.add_constant(random(dims, seed++, deviation)); };
  Value& x = graph.add_input("x", Type::tensor(DType::f32, Shape({Dim::symbol("N"), 8, 16, 16})));
  const auto conv = [&](Value* in, std::int64_t from, std::int64_t to) {
    Node& node = graph.add("Conv", {in, weights({to, from, 3, 3}, 0.15f), weights({to}, 0.1f)},
                           {.attrs = {{"pads", Ints{1, 1, 1, 1}}}});
    return node.output();
  };
  const auto relu = [&](Value* in) { return graph.add("Relu", {in}).output(); };
  Value* first = relu(conv(&x, 8, 16));
  Value* second = relu(graph.add("Add", {conv(first, 16, 16), first}).output());
  const Attrs window{{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  Value* pooled = graph.add("MaxPool", {second}, {.attrs = window}).output();
  Value* third = relu(conv(pooled, 16, 32));
  Value* mean = graph.add("GlobalAveragePool", {third}).output();
  Value* flat = graph.add("Flatten", {mean}).output();
  Value* y = graph.add("Gemm", {flat, weights({32, 10}, 0.3f), weights({10}, 0.1f)}).output();
  graph.rename(*y, "y");
  y->type = Type::tensor(DType::f32, Shape({Dim::symbol("N"), 10}));
  graph.add_output(*y);
  return model;
}

/// Two dense layers, [N, 128] -> [N, 512] -> [N, 128].
inline Model perceptron() {
  Model model = empty_model("perceptron");
  Graph& graph = model.graph();
  Value& x = graph.add_input("x", Type::tensor(DType::f32, Shape({Dim::symbol("N"), 128})));
  const auto dense = [&](Value& in, std::int64_t from, std::int64_t to, const char* name) {
    Value& w = graph.add_constant(random({from, to}, static_cast<unsigned>(to), 0.1f));
    return graph.add("MatMul", {&in, &w}, {.name = name}).output();
  };
  Value* hidden = graph.add("Relu", {dense(x, 128, 512, "first")}).output();
  Value* y = dense(*hidden, 512, 128, "second");
  graph.rename(*y, "y");
  y->type = Type::tensor(DType::f32, Shape({Dim::symbol("N"), 128}));
  graph.add_output(*y);
  return model;
}

inline Options int8(std::size_t samples) {
  Options options;
  options.precision = Precision::i8;
  options.measure = false;
  options.calibration = [samples](std::size_t i) -> std::optional<Feeds> {
    if (i >= samples) return {};
    return Feeds{{"x", random({2, 8, 16, 16}, 100 + static_cast<unsigned>(i))}};
  };
  return options;
}

inline int count(const Report& report, const std::string& op) {
  const auto found = report.after.ops.find(op);
  return found == report.after.ops.end() ? 0 : found->second;
}

/// Skips where there is no ONNX Runtime.
class LowerPrecisionTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    runtime_ = Runtime::find(&why);
    if (!runtime_) GTEST_SKIP() << why;
  }

  static Feeds image() { return {{"x", random({2, 8, 16, 16}, 7)}}; }

  Tensor run(const Model& model, const std::filesystem::path& plugin, const Feeds& feeds = image(),
             std::size_t output = 0) {
    const auto session =
        open_session(*runtime_, model, {.threads = 2, .optimize = multiplies_bytes_exactly(), .plugin = plugin});
    return session->run(feeds).at(output);
  }

  /// |a - b| / |a|
  static double distance(const Tensor& a, const Tensor& b) {
    double error = 0, norm = 0;
    for (std::size_t i = 0; i < a.as<float>().size(); ++i) {
      const double x = a.as<float>()[i], y = b.as<float>()[i];
      error += (x - y) * (x - y);
      norm += x * x;
    }
    return std::sqrt(error / norm);
  }

  std::shared_ptr<Runtime> runtime_;
};

}  // namespace modelflow
