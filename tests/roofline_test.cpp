// What nodes compute, from the extents in a profile.
#include "src/measure/roofline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "modelflow/kernel.h"
#include "modelflow/model.h"
#include "src/measure/kernel_times.h"
#include "tests/vector_state.h"

namespace modelflow {
namespace {

NodeTime time_of(const char* op, std::vector<Dims> inputs, Dims output) {
  return {.name = "n", .op = op, .seconds = 1, .calls = 1, .inputs = std::move(inputs), .outputs = {std::move(output)}};
}

TEST(Roofline, OpsOfTheRuntime) {
  const Work product = work_of(time_of("FusedMatMul", {{2, 5, 7}, {7, 3}}, {2, 5, 3}), nullptr);
  EXPECT_EQ(product.operations, 2 * 2 * 5 * 7 * 3);
  EXPECT_EQ(product.factors, Factors::float32);
  const Work conv = work_of(time_of("Conv", {{1, 4, 9, 9}, {6, 2, 3, 3}, {6}}, {1, 6, 7, 7}), nullptr);
  EXPECT_EQ(conv.operations, 2 * 6 * 7 * 7 * (2 * 3 * 3)) << "in two groups";
  const Work bytes =
      work_of(time_of("QLinearConv", {{1, 4, 9, 9}, {}, {}, {6, 4, 3, 3}, {6}, {6}, {}, {}}, {1, 6, 7, 7}), nullptr);
  EXPECT_EQ(bytes.operations, 2 * 6 * 7 * 7 * (4 * 3 * 3));
  EXPECT_EQ(bytes.factors, Factors::int8);
  const Work up = work_of(time_of("ConvTranspose", {{1, 4, 5, 5}, {4, 3, 2, 2}}, {1, 3, 10, 10}), nullptr);
  EXPECT_EQ(up.operations, 2 * 4 * 5 * 5 * (3 * 2 * 2));
  EXPECT_EQ(work_of(time_of("Softmax", {{2, 5}}, {2, 5}), nullptr).operations, 0);
  EXPECT_EQ(work_of({.name = "n", .op = "Conv"}, nullptr).operations, 0) << "no extents in the profile";
}

TEST(Roofline, WeightsThatWerePackedCount) {
  std::string w = "0";
  for (int i = 1; i < 4 * 3 * 2 * 2; ++i) w += ", " + std::to_string(i);
  const Model model =
      Model::from_text("(float[1,4,5,5] x) => (float[1,3,10,10] y) <float[3] b = {1, 2, 3}, float[4,3,2,2] w = {" + w +
                       "}> { y = ConvTranspose <strides = [2, 2]> (x, w, b) }");
  const Node& node = *model.graph().outputs()[0]->producer();
  for (const std::vector<Dims>& inputs : {std::vector<Dims>{{1, 4, 5, 5}}, {{1, 4, 5, 5}, {3}}})
    EXPECT_EQ(work_of(time_of("ConvTranspose", inputs, {1, 3, 10, 10}), &node).operations, 2 * 100 * 12);
}

TEST(Roofline, OurOpsInAllPrecisions) {
  Model model;
  Graph& graph = model.graph();
  Value& a = graph.add_input("a", Type::tensor(DType::f32, Shape::of({128, 64})));
  const Node& bytes =
      graph.add("modelflow.MatMul_3", {&a}, {.attrs = {{kPrecision, std::string("int8")}}, .name = "q"});
  const Node& rounded =
      graph.add("modelflow.MatMul", {&a},
                {.attrs = {{kPrecision, std::string("bfloat16")}, {"round_a", std::int64_t{1}}}, .name = "b"});
  const Node& floats = graph.add("modelflow.MatMul_1", {&a}, {.attrs = {{"trans_a", std::int64_t{1}}}, .name = "f"});
  const Work q = work_of(time_of("MatMul_3", {{128, 64}, {64, 32}, {32}}, {128, 32}), &bytes);
  EXPECT_EQ(q.operations, 2 * 128 * 64 * 32);
  EXPECT_EQ(q.factors, Factors::int8);
  const Work b = work_of(time_of("MatMul", {{128, 64}, {64, 32}}, {128, 32}), &rounded);
  EXPECT_EQ(b.operations, 2 * 128 * 64 * 32);
  EXPECT_EQ(b.factors, Factors::bf16);
  const Work f = work_of(time_of("MatMul_1", {{128, 64}, {128, 32}}, {64, 32}), &floats);
  EXPECT_EQ(f.operations, 2 * 128 * 64 * 32);
  EXPECT_EQ(f.factors, Factors::float32);
}

TEST(Roofline, EverySampleOfAnOpWithProductsHasWork) {
  for (const FusedOp* op : fused_ops()) {
    if (!op->flops) continue;
    for (const Call& call : op->samples()) {
      const bool empty = std::ranges::any_of(
          call.inputs, [](const Operand& in) { return in.dtype != DType::undefined && in.shape.elements() == Dim(0); });
      EXPECT_EQ(work_of(call).operations > 0, !empty) << call_text(call);
    }
  }
  for (const Call& call : find_fused_op("QAttention")->samples()) {
    Call floats = call;
    floats.op = "Attention";
    EXPECT_EQ(work_of(call).operations, work_of(floats).operations);
  }
}

TEST(Roofline, TheShareIsOfTheRightPeak) {
  const Peak peak{.float32 = 100, .bf16 = 200, .int8 = 400};
  EXPECT_EQ((Work{.operations = 50}.share_of(peak, 1)), 0.5);
  EXPECT_EQ((Work{.operations = 100, .factors = Factors::int8}.share_of(peak, 0.5)), 0.5);
  EXPECT_EQ((Work{.operations = 100, .factors = Factors::int8}.share_of(peak, 0)), 0);
  EXPECT_EQ((Work{.operations = 50, .factors = Factors::bf16}.share_of(peak, 1)), 0.25);
}

TEST(Roofline, UnitsAreMeasuredOnThisMachineAlone) {
  const Target host = Target::host(), measured = with_measured_units(host);
  EXPECT_TRUE(measured.flops == host.flops || measured.flops == host.flops / 2);
  EXPECT_EQ(with_measured_units(host).str(), measured.str());
  const Target other = Target::parse("cpu:avx512,flops=1e9");
  EXPECT_EQ(with_measured_units(other).str(), other.str());
}

TEST(Roofline, EveryMachineHasAPeak) {
  const Peak peak = measure_peak(1);
  EXPECT_GT(peak.float32, 0);
  EXPECT_GT(peak.int8, 0);
  EXPECT_FALSE(upper_halves_in_use());
}

}  // namespace
}  // namespace modelflow
