// Libraries of device code, of which only the table is there: which devices run them, and as what.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "backends/cuda/device_target.h"
#include "backends/cuda/invocation.h"
#include "modelflow/error.h"

namespace modelflow {
namespace {

using cuda::DeviceLibrary, cuda::DeviceNumbers;

const char* describe_two(int device, DeviceNumbers* numbers) {
  if (device > 1) return "invalid device ordinal";
  *numbers = device == 0 ? DeviceNumbers{"H100", 90, 132, 227 << 10, 50 << 20, std::int64_t{80} << 30, 0, 0}
                         : DeviceNumbers{"T4", 75, 40, 64 << 10, 4 << 20, std::int64_t{16} << 30, 0, 0};
  return nullptr;
}

/// Device 0 is an H100, 1 a T4.
DeviceLibrary library_for(const char* architectures) {
  DeviceLibrary library = {};
  library.cuda = 13000;
  library.architectures = architectures;
  library.describe = describe_two;
  return library;
}

TEST(DeviceLibrary, CodeRunsOnItsGenerationAndPtxOnLaterOnes) {
  constexpr std::array devices = {75, 80, 86, 90, 100, 120};
  using Codes = std::array<int, devices.size()>;
  for (const auto& [architectures, codes] : {std::pair("75-virtual", Codes{75, 75, 75, 75, 75, 75}),
                                             {"90-real", Codes{0, 0, 0, 90, 0, 0}},
                                             {"75-real+80-real+90", Codes{75, 80, 80, 90, 90, 90}},
                                             {"80-real+75", Codes{75, 80, 80, 75, 75, 75}},
                                             {"86", Codes{0, 0, 86, 86, 86, 86}},
                                             {"90a", Codes{0, 0, 0, 90, 0, 0}},
                                             {"100f", Codes{0, 0, 0, 0, 100, 0}},
                                             {"", Codes{}}})
    for (std::size_t i = 0; i < devices.size(); ++i)
      EXPECT_EQ(cuda::code_for(architectures, devices[i]), codes[i]) << architectures << " on " << devices[i];
}

/// What an H100 compiles from the PTX of older devices has nothing of its own.
TEST(DeviceLibrary, ATargetIsTheCodeThatRuns) {
  const DeviceLibrary all = library_for("75-real+80-real+90"), old = library_for("75");
  EXPECT_EQ(cuda::target_of(all, 0).sm, 90);
  EXPECT_EQ(cuda::target_of(all, 1).sm, 75);
  EXPECT_EQ(cuda::target_of(old, 0).sm, 75);
  EXPECT_EQ(cuda::target_of(old, 0).flops, cuda::target_of(all, 0).flops) << "of the device, as it is";
  for (const char* none : {"120-real", "70"}) {
    const DeviceLibrary library = library_for(none);
    try {
      cuda::target_of(library, 0);
      ADD_FAILURE() << none;
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("H100 is of sm_90"), std::string::npos) << text;
      EXPECT_NE(text.find("code for " + std::string(none)), std::string::npos) << text;
    }
  }
}

TEST(DeviceLibrary, EachDeviceIsATargetOfItsOwn) {
  const DeviceLibrary library = library_for("80-real+90");
  cuda::DeviceTargets targets(library);
  const cuda::DeviceTargets::Found &h100 = targets.of(0), &t4 = targets.of(1);
  ASSERT_TRUE(h100.target);
  EXPECT_EQ(h100.target->cores, 132);
  EXPECT_FALSE(t4.target);
  EXPECT_NE(t4.why.find("T4"), std::string::npos) << t4.why;
  EXPECT_FALSE(targets.of(2).target);
  EXPECT_EQ(&targets.of(0), &h100) << "is asked once";
}

TEST(DeviceLibrary, ServesDriversThatAreNewEnoughAndHaveADeviceForIt) {
  const DeviceLibrary library = library_for("80-real+90");
  EXPECT_TRUE(cuda::serves(library, {13000, {90}}));
  EXPECT_TRUE(cuda::serves(library, {13020, {75, 80}}));
  EXPECT_FALSE(cuda::serves(library, {12090, {90}}));
  EXPECT_FALSE(cuda::serves(library, {13000, {75}}));
  EXPECT_FALSE(cuda::serves(library, {13000, {}}));
}

TEST(DeviceLibrary, WhatAGraphCannotHoldIsRefusedWhereOneIsRecorded) {
  DeviceLibrary library = library_for("90");
  int stream = 0;
  library.capturing = [](void*) { return false; };
  EXPECT_NO_THROW(cuda::refuse_capture(library, &stream, "this"));
  library.capturing = [](void*) { return true; };
  EXPECT_NO_THROW(cuda::refuse_capture(library, nullptr, "this")) << "no graph is recorded of the default stream";
  EXPECT_THROW(cuda::refuse_capture(library, &stream, "this"), Error);
}

}  // namespace
}  // namespace modelflow
