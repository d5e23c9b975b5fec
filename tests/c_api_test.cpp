// The C interface: options by name, calibration by a callback, errors as numbers and one line.
#include "modelflow/c_api.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "modelflow/compose.h"
#include "modelflow/error.h"
#include "modelflow/model.h"
#include "modelflow/runtime.h"

namespace {

class CApi : public testing::Test {
 protected:
  ~CApi() override {
    modelflow_options_free(options_);
    modelflow_free(error_);
  }
  /// The number of the error; its message is in error().
  int set(const char* key, const char* value) {
    modelflow_free(error_);
    return modelflow_options_set(options_, key, value, &error_);
  }
  std::string error() const { return error_ ? error_ : ""; }

  modelflow_options* options_ = modelflow_options_create();
  char* error_ = nullptr;
};

constexpr int kUsage = static_cast<int>(modelflow::ErrorKind::usage);
constexpr int kOutput = static_cast<int>(modelflow::ErrorKind::output);

TEST_F(CApi, OptionsOfLowPrecision) {
  for (const auto& [key, value] : {std::pair("precision", "int8"),
                                   {"precision", "int8-dynamic"},
                                   {"observer", "mse"},
                                   {"metric", "top1"},
                                   {"max_drop", "0.5"}})
    EXPECT_EQ(set(key, value), 0) << error();
}

TEST_F(CApi, WrongValuesAreNamed) {
  for (const auto& [key, value] : {std::pair("precision", "int7"),
                                   {"observer", "best"},
                                   {"metric", "accuracy"},
                                   {"max_drop", "101"},
                                   {"max_drop", "much"},
                                   {"external_data", "sometimes"}}) {
    EXPECT_EQ(set(key, value), kUsage) << key;
    EXPECT_NE(error().find(value), std::string::npos) << error();
  }
  EXPECT_EQ(set("calibrations", "x"), kUsage);
}

TEST_F(CApi, APageIsMadeOfReports) {
  char* page = nullptr;
  for (const int depth : {1, 60, 100, 1000000}) {
    const std::string report = R"({"notes": )" + std::string(depth, '[') + std::string(depth, ']') + "}";
    const int code = modelflow_report_page(report.c_str(), &page, &error_);
    EXPECT_EQ(code, depth < 64 ? 0 : kUsage) << depth;
    modelflow_free(code == 0 ? page : error_);
    error_ = nullptr;
  }
  for (const char* text : {"", "[]", "{"}) {
    EXPECT_EQ(modelflow_report_page(text, &page, &error_), kUsage) << text;
    modelflow_free(error_);
    error_ = nullptr;
  }
}

TEST_F(CApi, NullArgumentsAreUsage) {
  EXPECT_EQ(modelflow_options_set_calibration(options_, nullptr, nullptr, nullptr), kUsage);
  EXPECT_EQ(modelflow_options_set_inputs(options_, nullptr, nullptr, nullptr), kUsage);
  EXPECT_EQ(modelflow_options_set_progress(nullptr, nullptr, nullptr, nullptr), kUsage);
  EXPECT_EQ(modelflow_options_set_score(options_, nullptr, nullptr, nullptr), kUsage);
  EXPECT_EQ(modelflow_candidate_save(nullptr, "x", nullptr), kUsage);
  EXPECT_EQ(modelflow_sample_set(nullptr, "x", 1, nullptr, 0, "", nullptr), kUsage);
  EXPECT_EQ(modelflow_sample_set_strings(nullptr, "x", nullptr, 0, nullptr, nullptr), kUsage);
  EXPECT_EQ(modelflow_sample_input(nullptr, 0), nullptr);
  modelflow_cancel(nullptr);
  const char* const two[] = {"a.onnx", "b.onnx"};
  const char* const one[] = {"a.onnx", nullptr};
  const auto merge = [](const char* const* files, const char* const* names, const char* const* edges, size_t count) {
    return modelflow_merge_files(files, names, 2, edges, count, "o.onnx", nullptr, nullptr, nullptr);
  };
  EXPECT_EQ(merge(nullptr, nullptr, nullptr, 0), kUsage);
  EXPECT_EQ(merge(one, nullptr, nullptr, 0), kUsage);
  EXPECT_EQ(merge(two, one, nullptr, 0), kUsage);
  EXPECT_EQ(merge(two, nullptr, nullptr, 1), kUsage);
  EXPECT_EQ(merge(two, nullptr, one, 2), kUsage);
  EXPECT_EQ(modelflow_inline_file(nullptr, "o.onnx", nullptr, nullptr), kUsage);
}

extern "C" int no_samples(void*, size_t, modelflow_sample*) { return 0; }

extern "C" int gives_up(void*, size_t, modelflow_sample*) { return -1; }

/// Tries to set an input in wrong ways, then gives `user`, a number, as one value.
extern "C" int wrong_samples(void* user, size_t index, modelflow_sample* sample) {
  const int64_t negative = -1, one[] = {1, 1};
  if (index > 0) return 0;
  EXPECT_EQ(modelflow_sample_set(sample, "x", 8, one, 2, user, nullptr), kUsage);  // strings
  EXPECT_NE(modelflow_sample_set(sample, "x", 1, &negative, 1, user, nullptr), 0);
  EXPECT_EQ(modelflow_sample_set(sample, nullptr, 1, one, 2, user, nullptr), kUsage);
  EXPECT_EQ(modelflow_sample_set(sample, "x", 1, one, 2, user, nullptr), 0);
  return 1;
}

/// Two sets for inputs or calibration, by the model's own names; `user` counts how often the first one was asked for.
extern "C" int by_position(void* user, size_t index, modelflow_sample* sample) {
  const float values[] = {1, -2, 3};
  const int64_t dims[] = {1, 3};
  if (index > 1) return 0;
  if (index == 0) ++*static_cast<int*>(user);
  EXPECT_STREQ(modelflow_sample_input(sample, 0), "x");
  EXPECT_EQ(modelflow_sample_input(sample, 1), nullptr);
  EXPECT_EQ(modelflow_sample_set(sample, modelflow_sample_input(sample, 0), 1, dims, 2, values, nullptr), 0);
  return 1;
}

/// Counts the steps, and cancels at the one that `user` counts down to.
extern "C" int count_down(void* user, const char* step, double done) {
  EXPECT_TRUE(*step != 0 && done >= 0 && done <= 1) << step << ' ' << done;
  return --*static_cast<int*>(user) == 0;
}

/// Cancels from within, which need not be the callback's answer.
extern "C" int cancel_within(void* user, size_t, modelflow_sample*) {
  modelflow_cancel(static_cast<modelflow_options*>(user));
  return -1;
}

/// relu(x), x of [1, 3].
std::string small_model() {
  return modelflow::Model::from_text(
             "<ir_version: 8, opset_import: [\"\" : 17]> g (float[1,3] x) => (float[1,3] y) "
             "{ y = Relu(x) }")
      .to_bytes();
}

/// Texts for x: one that is null first, then those that `user` counts.
extern "C" int gives_texts(void* user, size_t index, modelflow_sample* sample) {
  const int64_t two = 2;
  const char* const none[] = {"red", nullptr};
  const char* const texts[] = {"red", "gr\xc3\xbcn"};
  if (index > 0) return 0;
  EXPECT_EQ(modelflow_sample_set_strings(sample, "x", &two, 1, none, nullptr), kUsage);
  EXPECT_EQ(modelflow_sample_set_strings(sample, "x", &two, 1, texts, nullptr), 0);
  ++*static_cast<int*>(user);
  return 1;
}

class CApiCalibration : public CApi {
 protected:
  int optimize(modelflow_next_sample next, void* user = nullptr, const std::string& model = small_model()) {
    void* output = nullptr;
    size_t size = 0;
    modelflow_free(error_);
    if (next) modelflow_options_set_calibration(options_, next, user, nullptr);
    const int code = modelflow_optimize_bytes(model.data(), model.size(), options_, &output, &size, nullptr, &error_);
    modelflow_free(output);
    return code;
  }
};

TEST_F(CApiCalibration, DataThatAreMissingOrDoNotFitAreUsage) {
  if (!modelflow::Runtime::find()) GTEST_SKIP() << "no ONNX Runtime";
  ASSERT_EQ(set("precision", "int8"), 0);
  EXPECT_EQ(optimize(nullptr), kUsage);
  EXPECT_EQ(optimize(gives_up), kUsage);
  EXPECT_NE(error().find("gave up"), std::string::npos) << error();
  EXPECT_EQ(optimize(no_samples), kUsage) << error();
  float value = 1;
  EXPECT_EQ(optimize(wrong_samples, &value), kUsage) << error();
  EXPECT_NE(error().find('x'), std::string::npos) << error();
}

TEST_F(CApiCalibration, InputsAreAskedForOnce) {
  int times = 0;
  ASSERT_EQ(modelflow_options_set_inputs(options_, by_position, &times, nullptr), 0);
  EXPECT_EQ(optimize(nullptr), 0) << error();
  EXPECT_EQ(times, 1);
  ASSERT_EQ(modelflow_options_set_inputs(options_, gives_up, nullptr, nullptr), 0);
  EXPECT_EQ(optimize(nullptr), kUsage);
}

TEST_F(CApiCalibration, TextsAreInputs) {
  if (!modelflow::Runtime::find()) GTEST_SKIP() << "no ONNX Runtime";
  const std::string labels =
      modelflow::Model::from_text(
          "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.ml\" : 2]> g (string[N] x) => (float[N] y) { l = "
          "ai.onnx.ml:LabelEncoder <keys_strings = [\"gr\xc3\xbcn\"], values_floats = [2.0]> (x) y = Relu(l) }")
          .to_bytes();
  int times = 0;
  ASSERT_EQ(modelflow_options_set_inputs(options_, gives_texts, &times, nullptr), 0);
  EXPECT_EQ(optimize(nullptr, nullptr, labels), 0) << error();
  EXPECT_EQ(times, 1);
}

TEST_F(CApiCalibration, ProgressSeesStepsAndCancels) {
  int left = 1'000'000;
  ASSERT_EQ(modelflow_options_set_progress(options_, count_down, &left, nullptr), 0);
  EXPECT_EQ(optimize(nullptr), 0) << error();
  const int steps = 1'000'000 - left;
  ASSERT_GT(steps, 4);
  for (const int at : {1, steps / 2, steps}) {
    left = at;
    EXPECT_EQ(optimize(nullptr), MODELFLOW_CANCELLED) << at;
    EXPECT_EQ(error(), "cancelled");
    EXPECT_EQ(left, 0) << "a step after the one that cancelled";
  }
}

TEST_F(CApiCalibration, AnOutputThatCannotBeWrittenIsKnownBeforeTheWork) {
  const std::string folder = testing::TempDir() + "unwritable", model = folder + "/m.onnx";
  std::filesystem::create_directories(folder);
  std::ofstream(model) << small_model();
  int left = 1'000'000;
  ASSERT_EQ(modelflow_options_set_progress(options_, count_down, &left, nullptr), 0);
  for (const std::string& output :
       {folder, folder + "/none/o.onnx", model + "/o.onnx", folder + "/" + std::string(300, 'a')}) {
    modelflow_free(error_);
    EXPECT_EQ(modelflow_optimize_file(model.c_str(), output.c_str(), options_, nullptr, &error_), kOutput) << output;
    EXPECT_NE(error().find(output), std::string::npos) << error();
  }
  EXPECT_EQ(left, 1'000'000);
  std::filesystem::remove_all(folder);
}

class CApiMerge : public CApi {
 protected:
  CApiMerge() {
    std::filesystem::create_directories(folder_);
    const std::vector<float> weights(512, 2);  // so many that they are worth a file
    modelflow::bind_inputs(
        modelflow::Model::from_text("(float[512] x, float[512] w) => (float[512] h) { a = Relu(x) h = Mul(a, w) }"),
        {{"w", modelflow::Tensor::of<float>({512}, std::span<const float>(weights))}})
        .save(folder_ / "a.onnx");
    modelflow::Model::from_text("(float[512] h) => (float[512] y) { y = Neg(h) }").save(folder_ / "b.onnx");
  }
  ~CApiMerge() override { std::filesystem::remove_all(folder_); }
  int merge() {
    const std::string a = folder_ / "a.onnx", b = folder_ / "b.onnx", output = folder_ / "o.onnx";
    const char* const files[] = {a.c_str(), b.c_str()};
    std::filesystem::remove(output);
    char* text = nullptr;
    modelflow_free(error_);
    const int code = modelflow_merge_files(files, nullptr, 2, nullptr, 0, output.c_str(), options_, &text, &error_);
    said_ = text ? text : "";
    modelflow_free(text);
    return code;
  }
  bool is_there(const char* name) const { return std::filesystem::exists(folder_ / name); }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("merge" + std::to_string(getpid()));
  std::string said_;
};

TEST_F(CApiMerge, OptionsAreHeard) {
  const bool runs = modelflow::Runtime::find() != nullptr;
  EXPECT_EQ(merge(), 0) << error();
  EXPECT_EQ(said_.find("gives what its parts give in turn") != std::string::npos, runs) << said_;
  ASSERT_EQ(set("external_data", "always"), 0);
  EXPECT_EQ(merge(), 0) << error();
  EXPECT_TRUE(is_there("o.onnx.data"));
  if (runs) {
    int left = 1;
    ASSERT_EQ(modelflow_options_set_progress(options_, count_down, &left, nullptr), 0);
    EXPECT_EQ(merge(), MODELFLOW_CANCELLED) << error();
    ASSERT_EQ(set("timeout", "1e-9"), 0);
    EXPECT_EQ(merge(), static_cast<int>(modelflow::ErrorKind::limit)) << error();
    EXPECT_FALSE(is_there("o.onnx"));
  }
  ASSERT_EQ(set("verify", "0"), 0);
  EXPECT_EQ(merge(), 0) << error();
  EXPECT_EQ(said_.find("parts"), std::string::npos) << said_;
  ASSERT_EQ(set("max_nodes", "1"), 0);
  EXPECT_EQ(merge(), static_cast<int>(modelflow::ErrorKind::limit)) << error();
  modelflow_cancel(options_);
  ASSERT_EQ(set("max_nodes", "9"), 0);
  EXPECT_EQ(merge(), MODELFLOW_CANCELLED);
  EXPECT_FALSE(is_there("o.onnx"));
}

TEST_F(CApiCalibration, CancelHoldsForEveryLaterRun) {
  ASSERT_EQ(modelflow_options_set_inputs(options_, cancel_within, options_, nullptr), 0);
  EXPECT_EQ(optimize(nullptr), MODELFLOW_CANCELLED);
  int asked = 0;
  ASSERT_EQ(modelflow_options_set_inputs(options_, by_position, &asked, nullptr), 0);
  EXPECT_EQ(optimize(nullptr), MODELFLOW_CANCELLED);
  EXPECT_EQ(asked, 0);
}

}  // namespace
