// Merged models beside their parts in turn where numbers are drawn.
#include <gtest/gtest.h>

#include "modelflow/compose.h"
#include "modelflow/modelflow.h"

namespace modelflow {
namespace {

Part part(const std::string& name, const std::string& text) {
  return {name, Model::from_text("<ir_version: 8, opset_import: [\"\" : 17]> g " + text)};
}

class MergeCheckOfRandom : public testing::Test {
 protected:
  void SetUp() override {
    if (!runtime_) GTEST_SKIP() << "no ONNX Runtime";
  }
  MergeCheck check(const std::vector<Part>& parts, const std::vector<Part>& run) {
    return check_merge(*runtime_, run, merge(parts, {parse_edge("a.hid=b.hid", parts)}), {});
  }
  MergeCheck check(const std::vector<Part>& parts) { return check(parts, parts); }

  const std::shared_ptr<Runtime> runtime_ = Runtime::find();
};

const char* const kFirst = "(float[4] x) => (float[4] hid) { hid = Relu(x) }";
const char* const kNoise =
    "(float[4] hid) => (float[4] y, float[4] z) { r = RandomNormalLike(hid) y = Add(hid, r) z = Neg(hid) }";

TEST_F(MergeCheckOfRandom, OutputsAreNotCompared) {
  const MergeCheck found = check({part("a", kFirst), part("b", kNoise)});
  EXPECT_GT(found.feeds, 0U) << found.why_not;
  EXPECT_EQ(found.random, std::set<std::string>{"y"});
  EXPECT_EQ(found.max_rel, 0);
  EXPECT_NE(found.text().find("'y' was not compared: it is random"), std::string::npos) << found.text();
}

TEST_F(MergeCheckOfRandom, OutputsBesideThemAre) {
  const Part other = part(
      "b", "(float[4] hid) => (float[4] y, float[4] z) { r = RandomNormalLike(hid) y = Add(hid, r) z = Abs(hid) }");
  EXPECT_THROW((void)check({part("a", kFirst), part("b", kNoise)}, {part("a", kFirst), other}), Error);
}

/// Half of all draws give the same answer in two runs.
TEST_F(MergeCheckOfRandom, OutputsOfFewValuesAreNotComparedEither) {
  const Part coin = part("b", R"((float[4] hid) => (bool y, float[4] z) <float half = {0.5}, int64[0] none = {}> {
      r = RandomUniform <shape = [1]> () s = Reshape(r, none) y = Less(s, half) z = Neg(hid) })");
  for (int i = 0; i < 12; ++i) EXPECT_GT(check({part("a", kFirst), coin}).feeds, 0U);
}

TEST_F(MergeCheckOfRandom, NothingElseIsNoComparison) {
  const MergeCheck found = check(
      {part("a", kFirst), part("b", "(float[4] hid) => (float[4] y) { r = RandomNormalLike(hid) y = Add(hid, r) }")});
  EXPECT_EQ(found.feeds, 0U);
  EXPECT_EQ(found.why_not, "all of its outputs are random");
}

}  // namespace
}  // namespace modelflow
