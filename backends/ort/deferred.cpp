// Fills in the ranks that a run brings and makes a kernel for them, once.
#include "backends/ort/deferred.h"

#include <algorithm>
#include <array>

#include "backends/ort/describe.h"

namespace modelflow::ort {
namespace {

bool has_rank(const Operand& operand) { return operand.shape.has_rank(); }

/// The call with these ranks where it has none.
template <class RankOf>
Call with_ranks(Call call, RankOf rank_of) {
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    if (!has_rank(call.inputs[i])) call.inputs[i].shape = Shape(std::vector<Dim>(rank_of(i)));
  infer_outputs(call);
  return call;
}

}  // namespace

Deferred::Deferred(Call call, std::vector<Tensor> constants, Make make)
    : call_(std::move(call)), constants_(std::move(constants)), make_(std::move(make)) {}

bool Deferred::may_help(const Call& call, const std::string& reason) {
  if (std::ranges::all_of(call.inputs, has_rank)) return false;
  const auto fails_alike = [&](std::size_t rank) {
    try {
      with_ranks(call, [rank](std::size_t) { return rank; });
      return false;
    } catch (const Error& error) {
      return error.what() == reason;
    }
  };
  // What is said of every rank is a fault of something else, and better heard now.
  return !std::ranges::all_of(std::array<std::size_t, 5>{1, 2, 3, 4, 5}, fails_alike);
}

const Implementation& Deferred::made_for(const Ranks& ranks, void* stream) const {
  std::lock_guard lock(mutex_);
  std::unique_ptr<Implementation>& slot = made_[ranks];
  if (!slot) slot = make_(with_ranks(call_, [&](std::size_t i) { return ranks[i]; }), stream);
  return *slot;
}

void Deferred::run(Invocation& call) const {
  if (call.inputs() != call_.inputs.size()) throw Error(ErrorKind::invalid_input, "wrong number of inputs");
  Ranks ranks;
  for (std::size_t i = 0; i < call.inputs(); ++i) ranks.push_back(call.input(i).dims.size());
  made_for(ranks, call.stream()).run(call);
}

}  // namespace modelflow::ort
