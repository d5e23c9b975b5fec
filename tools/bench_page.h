// What modelflow-bench measured, as a page for browsers and as a trace.
#pragma once

#include <string>

#include "bench_report.h"

namespace modelflow::tools {

/// The page of the report (docs/report.md): the sides, where their time goes, the graphs of up to two models.
std::string page_of(const BenchReport& report, const Feeds& feeds, const std::string& command);

/// The events of the profiles in the format that Perfetto and chrome://tracing open, each side as a process.
std::string trace_of(const BenchReport& report);

}  // namespace modelflow::tools
