// Folding runs as many threads as the caller asked for.
#include <gtest/gtest.h>

#include "modelflow/modelflow.h"
#include "modelflow/pass.h"
#include "modelflow/runtime.h"
#include "passes/clean/clean.h"

namespace modelflow {
namespace {

/// Writes down how many threads its sessions were made with.
class Recorded : public Runtime {
 public:
  explicit Recorded(std::shared_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}
  std::string version() const override { return runtime_->version(); }
  std::unique_ptr<Session> load(const std::filesystem::path& model, const SessionOptions& options) override {
    threads.push_back(options.threads);
    return runtime_->load(model, options);
  }
  std::unique_ptr<Session> load_bytes(std::span<const std::byte> model, const SessionOptions& options) override {
    threads.push_back(options.threads);
    return runtime_->load_bytes(model, options);
  }

  std::vector<int> threads;

 private:
  std::shared_ptr<Runtime> runtime_;
};

TEST(Folding, TakesTheThreadsOfTheCaller) {
  const std::shared_ptr<Runtime> found = Runtime::find();
  if (!found) GTEST_SKIP() << "no ONNX Runtime";
  const auto runtime = std::make_shared<Recorded>(found);
  Model model = Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]>\n"
      "test (float[2] x) => (float[2] y) <float[2] a = {1, 2}> { b = Neg(a)  y = Add(x, b) }");
  infer_types(model);
  Options options;
  options.threads = 3;
  StepReport report;
  Context context{model, options, Target::host(), runtime, &report, nullptr};
  ASSERT_EQ(passes::fold_constants().run(model.graph(), context), 1);
  EXPECT_EQ(runtime->threads, std::vector<int>{3});
}

}  // namespace
}  // namespace modelflow
