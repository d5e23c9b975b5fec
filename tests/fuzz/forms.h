// The ways a model is optimized and run, and what is wrong with what comes out.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "modelflow/model.h"
#include "modelflow/runtime.h"

namespace modelflow::fuzz {

/// Something that must not be: where (mode and form), of what kind, and in words.
struct Finding {
  std::string mode, kind, what;
};

struct Settings {
  std::vector<std::string> modes;
  std::set<std::string> disabled;
  bool kinds = false;  ///< feeds with NaN and infinities: kinds of results are compared
  bool empty = true;   ///< feeds with extents of 0: ONNX Runtime itself may crash on them
  int threads = 1;
};

struct Checked {
  bool runs = false;  ///< the original does
  std::optional<Finding> finding;
  std::string repaired;                         ///< what the optimizer's own verification found and left out
  int excused = 0, samples = 0, left_open = 0;  ///< left_open: samples that differ where ONNX Runtime has no one answer
};

/// types, O1, O2, fused, fallback, inline, verified, again, and the names of precisions.
const std::vector<std::string>& all_modes();

/// `ready` is called when the original has run: who crashes before is ONNX Runtime.
Checked check(const Model& model, std::uint64_t seed, const Settings& settings, const std::shared_ptr<Runtime>& runtime,
              const std::function<void()>& ready);
/// The original with ONNX Runtime's own optimizations: where that ends the process, lower precision and verification,
/// which compare with it, have no chance.
void run_stock(const Model& model, std::uint64_t seed, Runtime& runtime);
/// Whether ONNX Runtime takes the model and at least one sample.
bool runs(const Model& model, std::uint64_t seed, Runtime& runtime);

}  // namespace modelflow::fuzz
