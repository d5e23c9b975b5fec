// ONNX Runtime through its C API: found, every dtype in and out, profiles, errors as one line.
#include "modelflow/runtime.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>

#include "modelflow/error.h"
#include "modelflow/model.h"
#include "src/runtime/profile.h"

namespace modelflow {
namespace {

class RuntimeTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    runtime_ = Runtime::find(&why);
    if (!runtime_) GTEST_SKIP() << why;
  }
  std::unique_ptr<Session> load(const Model& model, const SessionOptions& options = {}) {
    const std::string bytes = model.to_bytes();
    return runtime_->load_bytes(std::as_bytes(std::span(bytes)), options);
  }
  /// y = Identity(x) of one dtype.
  static Model identity(DType dtype) {
    Model model;
    model.opsets[""] = 17;
    Value& x = model.graph().add_input("x", Type::tensor(dtype, Shape({Dim::symbol("n")})));
    Node& node = model.graph().add("Identity", {&x});
    model.graph().rename(*node.output(), "y");
    node.output()->type = x.type;
    model.graph().add_output(*node.output());
    return model;
  }
  std::shared_ptr<Runtime> runtime_;
};

TEST_F(RuntimeTest, HasAVersion) { EXPECT_NE(runtime_->version().find('.'), std::string::npos); }

TEST_F(RuntimeTest, EveryDtypePassesThrough) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::u8, DType::i16,
                            DType::u16, DType::i32, DType::u32, DType::i64, DType::u64, DType::boolean}) {
    const Tensor x = Tensor::make(dtype, {3}, [](std::byte* out) { out[0] = std::byte{1}; });
    const std::vector<Tensor> y = load(identity(dtype))->run({{"x", x}});
    ASSERT_EQ(y.size(), 1U);
    EXPECT_TRUE(y[0].same_content(x)) << name(dtype);
  }
}

TEST_F(RuntimeTest, Strings) {
  const Tensor x({2}, {"grün", ""});
  EXPECT_EQ(load(identity(DType::string))->run({{"x", x}})[0].strings(), x.strings());
}

TEST_F(RuntimeTest, EmptyTensor) {
  const Tensor x = Tensor::of<float>({0}, {});
  EXPECT_EQ(load(identity(DType::f32))->run({{"x", x}})[0].dims(), Dims{0});
}

TEST_F(RuntimeTest, PortsAndSymbols) {
  const auto session = load(identity(DType::f32));
  ASSERT_EQ(session->inputs().size(), 1U);
  EXPECT_EQ(session->inputs()[0].first, "x");
  EXPECT_EQ(session->inputs()[0].second.shape.str(), "[n]");
  EXPECT_EQ(session->outputs()[0].first, "y");
}

TEST_F(RuntimeTest, ProfileNamesNodes) {
  Model model = identity(DType::f32);
  Graph& graph = model.graph();
  Node& relu = graph.add("Relu", {graph.inputs()[0]}, {.attrs = {}, .name = "the_relu"});
  graph.rename(*relu.output(), "r");
  relu.output()->type = graph.inputs()[0]->type;
  graph.add_output(*relu.output());
  const auto session = load(model, {.optimize = false, .profile = true});
  const Feeds feeds = {{"x", Tensor::of<float>({2}, {-1, 1})}};
  for (int i = 0; i < 3; ++i) EXPECT_GT(session->timed_run(feeds), 0);
  const std::vector<NodeTime> times = session->profile();
  const auto found = std::ranges::find(times, "Relu", &NodeTime::op);
  ASSERT_NE(found, times.end());
  EXPECT_EQ(found->calls, 3);
  EXPECT_EQ(found->inputs, std::vector<Dims>{{2}});
  EXPECT_EQ(found->outputs, std::vector<Dims>{{2}});
  EXPECT_THROW(session->profile(), Error);
}

TEST(Profile, TimesAreMediansOfRuns) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / fmt::format("profile-{}.json", getpid());
  const auto node = [](const char* name, int microseconds) {
    return fmt::format(R"({{"name": "{}_kernel_time", "dur": {}}}, )", name, microseconds);
  };
  const std::string run = R"({"name": "model_run"})";
  std::ofstream(file) << "[" << node("a", 1) << node("b", 3) << node("b", 4) << run << ", " << node("a", 1000) << run
                      << ", " << node("a", 2) << node("b", 5) << run << "]";
  const std::vector<NodeTime> times = read_profile(file);
  std::filesystem::remove(file);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].name, "b");
  EXPECT_DOUBLE_EQ(times[0].seconds, 5e-6);  // 7, 0 and 5 in turn
  EXPECT_EQ(times[0].calls, 3);
  EXPECT_DOUBLE_EQ(times[1].seconds, 2e-6);
}

TEST_F(RuntimeTest, ErrorsAreOneLine) {
  const std::string garbage = "not a model";
  try {
    runtime_->load_bytes(std::as_bytes(std::span(garbage)), {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
}

TEST(RuntimeOpen, SaysWhatIsWrong) {
  EXPECT_THROW(Runtime::open("/nowhere/libonnxruntime.so"), Error);
  EXPECT_THROW(Runtime::open("libm.so.6"), Error);  // a library, but not this one
}

}  // namespace
}  // namespace modelflow
