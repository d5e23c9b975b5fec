// What fuzzing found once: tests/fuzz_targets/found/TARGET/*, through the target that it ended and all others.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fuzz_targets/targets.h"

namespace modelflow {
namespace {

namespace fs = std::filesystem;

TEST(Found, StaysFixed) {
  const fs::path root = fs::path(MODELFLOW_SOURCE_DIR) / "tests/fuzz_targets/found";
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    for (const fuzz::Entry& target : fuzz::kTargets) {
      SCOPED_TRACE(std::string(target.name) + " of " + entry.path().string());
      EXPECT_NO_THROW(target.run({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}));
    }
    ++files;
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace modelflow
