#pragma once

#include <string>

#include "modelflow/report.h"

namespace modelflow {

/// What low precision did and what it cost, for Report::text().
std::string quantization_table(const QuantizationReport& report);

}  // namespace modelflow
