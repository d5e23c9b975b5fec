// The C interface: options by name, calibration by a callback, errors as numbers and one line.
#include "modelflow/c_api.h"

#include <gtest/gtest.h>

#include <string>

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
                                   {"max_drop", "much"}}) {
    EXPECT_EQ(set(key, value), kUsage) << key;
    EXPECT_NE(error().find(value), std::string::npos) << error();
  }
  EXPECT_EQ(set("calibrations", "x"), kUsage);
}

TEST_F(CApi, NullArgumentsAreUsage) {
  EXPECT_EQ(modelflow_options_set_calibration(options_, nullptr, nullptr, nullptr), kUsage);
  EXPECT_EQ(modelflow_sample_set(nullptr, "x", 1, nullptr, 0, "", nullptr), kUsage);
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

/// relu(x), x of [1, 3].
std::string small_model() {
  return modelflow::Model::from_text(
             "<ir_version: 8, opset_import: [\"\" : 17]> g (float[1,3] x) => (float[1,3] y) "
             "{ y = Relu(x) }")
      .to_bytes();
}

class CApiCalibration : public CApi {
 protected:
  int optimize(modelflow_next_sample next, void* user = nullptr) {
    const std::string model = small_model();
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

}  // namespace
