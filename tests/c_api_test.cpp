// The C interface: options by name, calibration by a callback, errors as numbers and one line.
#include "modelflow/c_api.h"

#include <gtest/gtest.h>

#include <string>

#include "modelflow/error.h"

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

TEST_F(CApi, CallbackIsTaken) {
  EXPECT_EQ(modelflow_options_set_calibration(options_, no_samples, nullptr, &error_), 0);
}

}  // namespace
