// `modelflow-bench --predict TARGET`: what models would take on a machine that need not be there.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "modelflow/modelflow.h"

namespace modelflow::tools {

struct PredictionSettings {
  std::vector<std::string> models;
  std::string target, precision;  ///< precision: what float32 counts as; empty: as float32
  std::map<std::string, Dims> shapes = {};
  bool json = false;
};

/// Throws Error(usage) for a target or a precision that is none.
std::string bench_prediction(const PredictionSettings& settings);

}  // namespace modelflow::tools
