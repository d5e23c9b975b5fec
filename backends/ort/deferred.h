// Kernels of nodes whose operands have a rank in runs alone.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "modelflow/kernel.h"

namespace modelflow::ort {

/// Waits for the first run where a node's own shapes say too little to choose a kernel: the runtime infers no shapes
/// through custom ops, and tools that people run on a model strip those that it was written with.
class Deferred : public Implementation {
 public:
  using Make = std::function<std::unique_ptr<Implementation>(const Call&, void* stream)>;

  /// `constants` are what the call points to. `make` throws Error where nothing runs the call; it is told the stream of
  /// the run.
  Deferred(Call call, std::vector<Tensor> constants, Make make);
  /// True where ranks of operands are all that may keep the call from being made ready, which failed for `reason`.
  static bool may_help(const Call& call, const std::string& reason);
  void run(Invocation& call) const override;

 private:
  using Ranks = std::vector<std::size_t>;
  const Implementation& made_for(const Ranks& ranks, void* stream) const;

  Call call_;
  std::vector<Tensor> constants_;
  Make make_;
  mutable std::mutex mutex_;
  mutable std::map<Ranks, std::unique_ptr<Implementation>> made_;
};

}  // namespace modelflow::ort
