// What an op declares as the default of an attribute is what everybody takes it to be who reads the attribute.
#include <gtest/gtest.h>

#include "modelflow/kernel.h"

namespace modelflow {
namespace {

std::string shown(const Call& call) {
  std::string text = call.op;
  for (const Operand& in : call.inputs) text += " " + in.shape.str();
  return text;
}

/// The same call with every attribute of its op written out, and with none that is as its op declares it.
Call complete(Call call, const FusedOp& op) {
  for (const auto& [name, usual] : op.defaults)
    if (!call.attrs.has(name)) call.attrs.set(name, usual);
  return call;
}

Call bare(Call call, const FusedOp& op) {
  for (const auto& [name, usual] : op.defaults)
    if (const Attr* said = call.attrs.find(name); said && equal(*said, usual)) call.attrs.erase(name);
  return call;
}

void expect_same(const Verdict& a, const Verdict& b, const std::string& what) {
  EXPECT_EQ(a.ok, b.ok) << what;
  EXPECT_EQ(a.reason, b.reason) << what;
}

class Defaults : public testing::TestWithParam<const FusedOp*> {};

TEST_P(Defaults, AreTheSameForAllReaders) {
  const FusedOp& op = *GetParam();
  for (const Call& sample : op.samples()) {
    Call full = complete(sample, op), less = bare(sample, op);
    const std::string what = shown(sample);
    EXPECT_EQ(op.body(full, 17), op.body(less, 17)) << what;
    EXPECT_EQ(op.attributes(full, 17), op.attributes(less, 17)) << what;
    EXPECT_EQ(op.inputs(full), op.inputs(less)) << what;
    if (op.roles) {
      EXPECT_EQ(op.roles(full), op.roles(less)) << what;
    }
    for (const auto count : {op.flops, op.plain_bytes}) {
      if (count) {
        EXPECT_EQ(count(full), count(less)) << what;
      }
    }
    expect_same(op.infer(full), op.infer(less), what);
    ASSERT_EQ(full.outputs.size(), less.outputs.size()) << what;
    for (std::size_t i = 0; i < full.outputs.size(); ++i) {
      EXPECT_EQ(full.outputs[i].shape, less.outputs[i].shape) << what;
      EXPECT_EQ(full.outputs[i].dtype, less.outputs[i].dtype) << what;
    }
    for (const Kernel* kernel : kernels()) {
      if (kernel->op != op.kind) continue;
      const Target target = Target::parse(kernel->device == Device::cpu ? "cpu:amx" : "cuda:sm_90");
      const Verdict verdict = kernel->accepts(full, target);
      expect_same(verdict, kernel->accepts(less, target), std::string(kernel->name) + " of " + what);
      if (verdict) {
        EXPECT_EQ(kernel->cost(full, target), kernel->cost(less, target)) << kernel->name << " of " << what;
      }
    }
  }
}

TEST_P(Defaults, AreOfWordsAndOthersAreRefused) {
  const FusedOp& op = *GetParam();
  for (const Call& sample : op.samples())
    for (const auto& [name, usual] : op.defaults)
      if (std::holds_alternative<std::string>(usual))
        for (const std::string& said : {std::string("another"), sample.attrs.text(name) + " another", std::string()}) {
          Call call = sample;
          call.attrs.set(name, said);
          EXPECT_FALSE(op.infer(call)) << shown(sample) << " " << name << "='" << said << "'";
        }
}

std::vector<const FusedOp*> ops() { return {fused_ops().begin(), fused_ops().end()}; }

INSTANTIATE_TEST_SUITE_P(Ops, Defaults, testing::ValuesIn(ops()),
                         [](const auto& info) { return std::string(info.param->kind); });

TEST(AttributeReaders, AnAttributeThatNoOpHasIsAnError) {
  Call call = find_fused_op("Pool")->samples().front();
  call.attrs = {};
  call.op = "Activation";
  EXPECT_NO_THROW(static_cast<void>(find_fused_op("Activation")->attributes(call, 17)));
  call.op = "Pool";
  EXPECT_THROW(static_cast<void>(find_fused_op("Activation")->attributes(call, 17)), Error);
}

}  // namespace
}  // namespace modelflow
