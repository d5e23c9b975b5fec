// Tables about lower precision.
#pragma once

#include <string>

#include "modelflow/report.h"

namespace modelflow {

/// What low precision did and what it cost, for Report::text().
std::string quantization_table(const QuantizationReport& report);
/// A line for each op that could be lowered: `--explain`.
std::string precision_of_ops(const QuantizationReport& report);

}  // namespace modelflow
