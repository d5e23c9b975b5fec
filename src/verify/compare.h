// Results of an optimized model judged by those of the original.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "modelflow/model.h"
#include "modelflow/modelflow.h"
#include "modelflow/report.h"
#include "modelflow/runtime.h"
#include "src/verify/difference.h"
#include "src/verify/reference.h"

namespace modelflow {

/// What one model came to on all feeds, with the plugin or without. It ends at the first feed that shows a fault.
struct Comparison {
  bool ok = true;
  std::vector<OutputDiff> diffs;  ///< the largest of each output
  std::size_t feed = 0;           ///< of the fault
  OutputDiff fault;               ///< without a name where the model does not load or run
  std::string why;                ///< the runtime's message for that
  std::string note;               ///< what ONNX Runtime's own optimisations change in the original
};

/// How the optimized model runs.
struct Setting {
  std::filesystem::path plugin = {};
  const std::size_t* only = nullptr;  ///< this feed of the reference alone
  bool optimize = true;               ///< with ONNX Runtime's own optimisations
  /// Feeds without elements may be refused: standard ops of ONNX Runtime (products that broadcast, recurrences) do not
  /// all run on them, and the plugin that makes up for it is not there.
  bool may_refuse_empty = false;
};

/// Runs `optimized` (runnable: functions emitted) on the feeds of the reference.
/// A result that is off by more than the bound is looked at again, unless the user gave the bound. It is no fault
///  - where the model is right without ONNX Runtime's own optimisations, and those change the original as well;
///  - where the model is right without them, and some last digits move the original as far;
///  - where every part of it computes what the original computes from the same values (src/verify/parts.h), and those
///    optimisations add no more than that.
/// Whether this machine has all instructions of the target.
bool runs_here(const Target& target);

Comparison compare(Runtime& runtime, const Reference& reference, const Model& original, const Model& optimized,
                   const Options& options, const Setting& setting);

}  // namespace modelflow
