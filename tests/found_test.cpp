// What fuzzing found once: tests/fuzz_targets/found/TARGET/*, each through the target that it ended.
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
  for (const fuzz::Entry& target : fuzz::kTargets) {
    if (!fs::is_directory(root / target.name)) continue;
    for (const auto& entry : fs::directory_iterator(root / target.name)) {
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string bytes(std::istreambuf_iterator<char>(in), {});
      EXPECT_NO_THROW(target.run({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()})) << entry.path();
      ++files;
    }
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace modelflow
