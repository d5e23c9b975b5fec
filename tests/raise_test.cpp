// Models in the form of newer opsets give what they gave: every change of an operator, and what has no newer form.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "modelflow/compose.h"
#include "modelflow/modelflow.h"
#include "modelflow/pass.h"
#include "src/compose/raise_changes.h"
#include "src/verify/difference.h"
#include "src/verify/reference.h"

namespace modelflow {
namespace {

struct Old {
  int opset;
  const char* text;
};

constexpr std::int64_t kNewest = 21;

// Each holds what changed behind its opset, with and without what may be left out.
const Old kOld[] = {
    {7,
     "(float[2,3,4,4] x) => (float[2,3,4,4] y) <float[3] a = {1,2,3}, float[3] b = {0,1,2}, float[3] m = {1,0,2}, "
     "float[3] v = {1,2,3}> { y = BatchNormalization<spatial = 1>(x, a, b, m, v) }"},
    {7,
     "(float[1,2,3,3] x) => (float[1,2,6,9] y, float[1,2,6,9] z) { y = Upsample<scales = [1.0, 1.0, 2.0, 3.0]>(x) "
     "z = Upsample<mode = \"linear\", scales = [1.0, 1.0, 2.0, 3.0]>(x) }"},
    {9, "(float[1,2,3,3] x) => (float[1,2,6,3] y) <float[4] s = {1,1,2,1}> { y = Upsample(x, s) }"},
    {9,
     "(float[4,6] x) => (float[2,4] y, float[3,6] z) { y = Slice<axes = [0,1], starts = [1,-5], ends = [3,-1]>(x) "
     "z = Slice<starts = [1], ends = [9]>(x) }"},
    {9, "(float[4,6] x) => (float[4,2] y, int64[4,2] i) { y, i = TopK<k = 2>(x) }"},
    {9, "(float[4,6] x) => (float[4,6] y) { y = Dropout<ratio = 0.25>(x) }"},
    {10,
     "(float[1,2,6,6] x) => (float[1,2,9,12] y, float[1,2,3,3] d, float[1,2,9,9] l) <float[4] s = {1,1,1.5,2}, "
     "float[4] t = {1,1,0.5,0.5}, float[4] u = {1,1,1.5,1.5}> { y = Resize(x, s) d = Resize(x, t) "
     "l = Resize<mode = \"linear\">(x, u) }"},
    {10,
     "(float[4] x) => (float[4] y, float[4] z, float[4] b) { y = Clip<min = -1.0, max = 0.5>(x) z = Clip(x) "
     "b = Clip<max = 0.25>(x) }"},
    {10,
     "(float[2,3] x) => (float[4,6] y, float[3,3] z, float[2,5] e) { y = Pad<pads = [1,1,1,2], value = 0.5>(x) "
     "z = Pad<mode = \"reflect\", pads = [1,0,0,0]>(x) e = Pad<mode = \"edge\", pads = [0,1,0,1]>(x) }"},
    {10, "(float[3,3] x, float[1,3] u) => (float[3,3] y) <int64[1,3] i = {2,0,1}> { y = Scatter(x, i, u) }"},
    {11, "(float[4,6] x) => (float[4,6] y) { y = Dropout<ratio = 0.25>(x) }"},
    {11,
     "(float[1,2,3,3] x, float[0] given) => (float[1,2,5,9] y, float[1,2,5,9] z) <int64[4] s = {1,2,5,9}, float[0] e = "
     "{}> { y = Resize<mode = \"linear\">(x, e, given, s) z = Resize(x, e, e, s) }"},
    {11,
     "(float[N,3,2] x) => (float[N,3,2] a, float[N,3,2] b, float[N,3,2] c, float[N,3,2] d, float[N,3,2] e) "
     "{ a = Softmax(x) b = Softmax<axis = 2>(x) c = LogSoftmax<axis = 1>(x) d = Softmax<axis = -1>(x) "
     "e = Softmax<axis = -2>(x) }"},
    {11, "(float[N,3,1,1] x) => (float[N,3,1,1] a, float[N,3,1,1] b) { a = Softmax<axis = 1>(x) b = Hardmax(x) }"},
    {12,
     "(float[N,1,6] x) => (float[N,6] s, float[N,1,6,1] u, float[1,1,6] r, float all, float[N,1,2] p, float[N,1,4] "
     "q, float[N,1,3] h, float[N,1,3] g) { s = Squeeze<axes = [1]>(x) u = Unsqueeze<axes = [3]>(x) "
     "r = ReduceSum<axes = [0]>(x) all = ReduceSum<keepdims = 0>(x) p, q = Split<axis = 2, split = [2,4]>(x) "
     "h, g = Split<axis = 2>(x) }"},
    {12, "(float[1,6,1] x) => (float[6] s) { s = Squeeze(x) }"},
    {13,
     "(float[2,3,4,4] x) => (float[2,3,4,4] y) <float[3] a = {1,2,3}, float[3] b = {0,1,2}, float[3] m = {1,0,2}, "
     "float[3] v = {1,2,3}> { y = BatchNormalization(x, a, b, m, v) }"},
    {15,
     "(float[1,2,8,8] x) => (float[2,2,3,3] y) <float[2,4] r = {0,0,7,7,1,2,5,6}, int64[2] i = {0,0}> "
     "{ y = RoiAlign<output_height = 3, output_width = 3, sampling_ratio = 2>(x, r, i) }"},
    {17,
     "(float[N,3,2] x) => (float[N,1,2] a, float[N,3,1] b, float[N,3] c, float[1,1,1] d, float[N,1,2] e, "
     "float[N,1,2] f, float[N,1,2] g, float[N,1,2] h, float[N,1,2] i) { a = ReduceMean<axes = [1]>(x) "
     "b = ReduceMax<axes = [-1]>(x) c = ReduceMin<axes = [2], keepdims = 0>(x) d = ReduceL2(x) "
     "e = ReduceL1<axes = [1]>(x) f = ReduceProd<axes = [1]>(x) g = ReduceSumSquare<axes = [1]>(x) "
     "h = ReduceLogSumExp<axes = [1]>(x) t = Abs(x) i = ReduceLogSum<axes = [1]>(t) }"},
    {17, "(float[2,6] x) => (float[2,2] a, float[2,2] b, float[2,2] c) { a, b, c = Split<axis = 1>(x) }"},
    {17,
     "(float[2,5,1] x, float[2,3,6,1] w) => (float[2,5,2] y, float[2,3,6,2] z) { y = DFT(x) z = DFT<axis = 2>(w) }"},
    {18,
     "(float[1,1,4,4] x, float[1,2,2,2] g) => (float[1,1,2,2] y, float[1,1,2,2] z) { y = GridSample(x, g) "
     "z = GridSample<mode = \"bicubic\">(x, g) }"},
    {18,
     "(float[2,6,4] x, float[3] s, float[3] b) => (float[2,6,4] y) { y = GroupNormalization<num_groups = 3, "
     "epsilon = 0.01>(x, s, b) }"},
    {11,
     "(float[N,4] x, bool c) => (float[N,4] y) { y = If(c) <then_branch = t () => (float[N,4] a) { a = Softmax(x) }, "
     "else_branch = e () => (float[N,4] b) { s = ReduceSum<axes = [1]>(x) b = Sub(x, s) }> }"},
};

Model old(const Old& each) {
  Model model = Model::from_text(fmt::format("<ir_version: 8, opset_import: [\"\" : {}]> g {}", each.opset, each.text));
  infer_types(model);
  return model;
}

void collect(const Graph& graph, std::int64_t from, std::set<std::pair<std::string, std::int64_t>>& met) {
  for (const auto& node : graph.nodes()) {
    for (const Change& change : changes())
      if (change.op == node->op() && change.opset > from) met.emplace(change.op, change.opset);
    for (const Graph* inner : node->subgraphs()) collect(*inner, from, met);
  }
}

TEST(RaiseOpset, GivesTheSameResults) {
  const std::shared_ptr<Runtime> runtime = Runtime::find();
  if (!runtime) GTEST_SKIP() << "no ONNX Runtime";
  std::set<std::pair<std::string, std::int64_t>> met;
  for (const Old& each : kOld) {
    Model before = old(each), after = before;
    collect(before.graph(), each.opset, met);
    const Verdict raised = raise_opset(after, kNewest);
    ASSERT_TRUE(raised) << raised.reason;
    EXPECT_EQ(after.opset(), kNewest);
    const auto original = open_session(*runtime, before, {.optimize = false});
    const auto newer = open_session(*runtime, after, {.optimize = false});
    std::size_t compared = 0;
    for (const Feeds& feeds : synthetic_feeds(before, {})) {
      std::vector<Tensor> expected;
      try {
        expected = original->run(feeds);
      } catch (const Error&) {
        continue;  // some made-up data is refused
      }
      const std::vector<Tensor> found = newer->run(feeds);
      ++compared;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const OutputDiff diff = difference(before.graph().outputs()[i]->name(), expected[i], found[i], 1e-6);
        EXPECT_TRUE(diff.ok) << each.text << " -> " << after.to_text() << diff.output << " " << describe(diff);
      }
    }
    EXPECT_GT(compared, 0U) << each.text;
  }
  // Upsample becomes Resize on the way; a Scan of opset 8 has no newer form.
  met.emplace("Scan", 9);
  for (const Change& change : changes())
    EXPECT_TRUE(met.contains({std::string(change.op), change.opset})) << change.op << " " << change.opset;
}

TEST(RaiseOpset, LeavesWhatHasNoNewerForm) {
  const Old refused[] = {
      {7,
       "(float[2,3,4,4] x) => (float[2,3,4,4] y) <float[3] a = {1,2,3}, float[3] b = {0,1,2}, float[3] m = {1,0,2}, "
       "float[3] v = {1,2,3}> { y = BatchNormalization<spatial = 0>(x, a, b, m, v) }"},
      {7, "(float[4] x) => (float[4] y, float[4] z) { y, m = Dropout(x) z = Relu(m) }"},
      {10, "(float[4] x) => (float[4] y, bool[4] m) { y, m = Dropout(x) }"},
      {10, "(float[1,1,4,4] x, float[4] s) => (float[] y) { y = Resize(x, s) }"},
      {10, "(float[1,1,4,4] x) => (float[] y) <float[4] s = {1,1,0.5,2}> { y = Resize(x, s) }"},
      {20, "(float[] x, float[3] s, float[3] b) => (float[] y) { y = GroupNormalization<num_groups = 3>(x, s, b) }"},
      {11, "(float[N,3,2] x) => (float[N,3,2] y) { y = Softmax<axis = 0>(x) }"},
      {11, "(float[2,N,T] x) => (float[2,N,T] y) { y = Softmax<axis = 1>(x) }"},
      {6, "(float[2] x) => (float[2] y) { y = Relu(x) }"},
  };
  for (const Old& each : refused) {
    Model model = old(each);
    const std::string before = model.to_text();
    const Verdict raised = raise_opset(model, kNewest);
    EXPECT_FALSE(raised) << each.text;
    EXPECT_EQ(model.to_text(), before);
  }
}

TEST(RaiseOpset, NeverLowers) {
  Model model = old({17, "(float[2] x) => (float[2] y) { y = Relu(x) }"});
  EXPECT_TRUE(raise_opset(model, 13));
  EXPECT_EQ(model.opset(), 17);
}

}  // namespace
}  // namespace modelflow
