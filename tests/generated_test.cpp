// The obligation of every kernel: it equals the body of its op, run by ONNX Runtime with optimisation off, on cases
// that are drawn from the domain of the op, on every instruction set of this machine.
//
// MODELFLOW_CASES: how many cases per op at least; MODELFLOW_SEED: other cases.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <set>

#include "backends/host_invocation.h"
#include "src/verify/reference.h"
#include "tests/call_model.h"
#include "tests/close.h"
#include "tests/domains/cases.h"

namespace modelflow {
namespace {

using domains::Case;
using domains::Domain;
using domains::Operands;
using domains::setting;

/// Bodies as sessions, one for each set of attributes, types and ranks: all operands are inputs.
class Bodies {
 public:
  explicit Bodies(std::shared_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}

  std::vector<Tensor> run(const Operands& operands) {
    Call call = operands.call;
    Feeds feeds;
    std::string key = call.op;
    for (const auto& [name, value] : call.attrs) key += " " + text(value);
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      Operand& in = call.inputs[i];
      in.constant = nullptr;
      feeds[in.name] = operands.values()[i];
      key += " " + in.name + std::to_string(in.shape.rank()) + std::string(name(in.dtype));
    }
    std::unique_ptr<Session>& session = sessions_[key];
    if (!session) session = open_session(*runtime_, model_of(call, 17), {.threads = 1, .optimize = false});
    return session->run(feeds);
  }
  std::size_t sessions() const { return sessions_.size(); }

  static std::string text(const Attr& value) {
    if (const auto* words = std::get_if<std::string>(&value)) return *words;
    if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
    if (const auto* real = std::get_if<float>(&value)) return std::to_string(std::bit_cast<std::uint32_t>(*real));
    std::string list;
    if (const auto* numbers = std::get_if<Ints>(&value))
      for (const std::int64_t number : *numbers) list += std::to_string(number) + ",";
    if (const auto* reals = std::get_if<Floats>(&value))
      for (const float real : *reals) list += std::to_string(std::bit_cast<std::uint32_t>(real)) + ",";
    return list;
  }

 private:
  std::shared_ptr<Runtime> runtime_;
  std::map<std::string, std::unique_ptr<Session>> sessions_;
};

/// Where the code of a kernel may differ: what it needs, and each level above it that chooses other loops.
std::vector<Target> targets(const Kernel& kernel, const Target& host) {
  std::vector<Target> all;
  for (const IsaSet isas : {IsaSet(), IsaSet(Isa::avx2), IsaSet(Isa::avx512), host.isas}) {
    if (!isas.has(kernel.needs) || !host.isas.has(isas) || (!all.empty() && all.back().isas == isas)) continue;
    all.push_back(host);
    all.back().isas = isas;
    if (!isas.has(Isa::avx512)) all.back().l1 = 32 << 10, all.back().l2 = 256 << 10;  // as such machines have
  }
  return all;
}

class GeneratedTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string why;
    runtime_ = Runtime::find(&why);
    if (!runtime_) GTEST_SKIP() << why;
  }

  /// What is wrong with this kernel on this call, or nothing.
  std::string run(const Kernel& kernel, const Target& target, const Operands& operands,
                  const std::vector<Tensor>& want) {
    try {
      const std::unique_ptr<Implementation> ready = kernel.create(operands.call, target);
      HostInvocation invocation(threads_, {operands.values().begin(), operands.values().end()});
      for (int repeat = 0; repeat < 2; ++repeat) {  // what a kernel keeps from the first run must serve the second
        invocation.restart();
        ready->run(invocation);
        for (std::size_t i = 0; i < want.size(); ++i) {
          const Tensor got = invocation.result(i, want[i].dtype());
          if (std::string wrong = difference(want[i], got, tolerance_of(operands.call.op)); !wrong.empty())
            return wrong;
        }
      }
    } catch (const Error& error) {
      return std::string("throws ") + error.what();
    }
    return "";
  }

  std::shared_ptr<Runtime> runtime_;
  HostThreads threads_{3};
};

TEST_P(GeneratedTest, EveryKernelEqualsTheBody) {
  const auto& all = domains::all_domains();
  const auto found = std::ranges::find(all, GetParam(), &Domain::op);
  ASSERT_NE(found, all.end()) << GetParam() << " has no domain";
  const domains::Plan plan{.least = setting("MODELFLOW_CASES", 250), .seed = setting("MODELFLOW_SEED", 1)};
  const std::vector<Case> cases = domains::cases(GetParam(), plan);
  const Target host = Target::host();
  Bodies bodies(runtime_);
  std::map<std::string_view, std::size_t> reached;
  std::map<std::string, std::size_t> wrong;
  std::map<std::string, std::set<std::string>> seen;
  std::size_t runs = 0, refused = 0, taken = 0;
  for (const Kernel* kernel : kernels())
    if (kernel->op == found->op && kernel->device == Device::cpu) reached[kernel->name] = 0;
  for (const Case& which : cases) {
    const std::unique_ptr<Operands> operands = domains::made(which);
    std::vector<Tensor> want;
    for (const auto& [name, value] : operands->call.attrs) seen[name].insert(Bodies::text(value));
    if (std::getenv("MODELFLOW_VERBOSE")) std::cout << describe(which) << std::endl;
    try {
      want = bodies.run(*operands);
    } catch (const Error& error) {  // a model of these ops would not run either
      if (++refused <= 3) RecordProperty("refused", error.what());
      if (std::getenv("MODELFLOW_VERBOSE")) std::cout << "  refused: " << error.what() << std::endl;
      continue;
    }
    bool any = false;
    for (const Kernel* kernel : kernels()) {
      if (kernel->op != found->op || kernel->device != Device::cpu || !kernel->accepts(operands->call, host)) continue;
      ++reached[kernel->name], any = true;
      EXPECT_GE(kernel->cost(operands->call, host), 0) << kernel->name;
      for (const Target& target : targets(*kernel, host)) {
        ++runs;
        const std::string difference = run(*kernel, target, *operands, want);
        if (difference.empty()) continue;
        const std::string who = std::string(kernel->name) + " on " + target.isas.str();
        if (++wrong[who] <= 3)
          ADD_FAILURE() << who << ": " << difference << "\n  " << describe(which) << "\n  " << describe(operands->call);
      }
    }
    taken += any;
  }
  for (const auto& [name, value] : find_fused_op(found->op)->defaults)
    EXPECT_TRUE(seen[name].size() > 1 || std::ranges::count(found->fixed, name)) << name << " is the same in all cases";
  for (const auto& [who, count] : wrong) ADD_FAILURE() << who << " is wrong in " << count << " cases";
  for (const auto& [kernel, count] : reached) EXPECT_GE(count, 8u) << kernel << " is hardly reached";
  EXPECT_GT(taken * 2, cases.size()) << "kernels take few of the cases";
  EXPECT_LT(refused * 5, cases.size()) << "ONNX Runtime refuses many of the cases";
  std::cout << found->op << ": " << cases.size() << " cases (seed " << plan.seed << "), " << bodies.sessions()
            << " bodies, " << runs << " runs of kernels, " << refused << " refused by the runtime\n";
}

std::vector<std::string> kinds() {
  std::vector<std::string> kinds;
  for (const FusedOp* op : fused_ops()) kinds.emplace_back(op->kind);
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Ops, GeneratedTest, testing::ValuesIn(kinds()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace modelflow
