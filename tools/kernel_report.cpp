// Times of kernels in lines, ratios and JSON.
#include "kernel_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

namespace modelflow::tools {
namespace {

/// Below this a session is what takes the time.
constexpr double kTooShort = 20e-6;

/// Ratios of many calls.
struct Ratios {
  double sum = 0, worst = INFINITY;
  int count = 0;
  void add(double ratio) {
    sum += std::log(ratio);
    worst = std::min(worst, ratio);
    ++count;
  }
  double mean() const { return count ? std::exp(sum / count) : 0; }
};

/// What is known of a kernel.
struct Standing {
  int calls = 0;  ///< that it accepts
  Ratios body;    ///< where it is chosen: beside the body
  Ratios others;  ///< and beside the best of the other kernels that take the call
};

std::map<std::pair<std::string, std::string>, Standing> standings(const KernelReport& report) {
  std::map<std::pair<std::string, std::string>, Standing> all;
  for (const CallTimes& call : report.calls)
    for (std::size_t i = 1; i < call.times.size(); ++i) {
      const KernelTime& time = call.times[i];
      Standing& standing = all[{call.op, time.kernel}];
      ++standing.calls;
      if (call.times[0].seconds < kTooShort) continue;
      if (i > 1) continue;
      standing.body.add(time.speedup);
      double best = INFINITY;
      for (std::size_t k = 1; k < call.times.size(); ++k)
        if (k != i) best = std::min(best, time.speedup / call.times[k].speedup);
      if (std::isfinite(best)) standing.others.add(best);
    }
  return all;
}

std::string rate(const CallTimes& call, double seconds, const Peak& peak) {
  if (call.work.operations > 0) return fmt::format("{:>4.0f} %", 100 * call.work.share_of(peak, seconds));
  return fmt::format("{:>6.1f} GB/s", call.bytes / seconds / 1e9);
}

nlohmann::ordered_json json_of(const Ratios& ratios) {
  if (ratios.count == 0) return nullptr;
  return {{"calls", ratios.count}, {"mean", ratios.mean()}, {"worst", ratios.worst}};
}

std::string standing_row(const std::string& kernel, const Standing& s) {
  const auto ratio = [](const Ratios& r) {
    return r.count ? fmt::format("{:>8.2f}x {:>8.2f}x", r.mean(), r.worst) : fmt::format("{:>19}", "-");
  };
  return fmt::format("{:<34}{:>6} {:>7} {} {}\n", kernel, s.calls, s.body.count, ratio(s.body), ratio(s.others));
}

}  // namespace

std::string text_report(const KernelReport& report) {
  std::string out;
  for (const CallTimes& call : report.calls) {
    out += call.text + "\n";
    if (!call.why_not.empty()) out += "  not timed: " + call.why_not + "\n";
    for (const KernelTime& time : call.times)
      out += fmt::format("  {:<32}{:>10.1f} us {:>8.2f}x [{:.2f}, {:.2f}]  {}\n",
                         time.kernel.empty() ? "body in ONNX Runtime" : time.kernel, time.seconds * 1e6, time.speedup,
                         time.low, time.high, rate(call, time.seconds, report.peak));
  }
  out += fmt::format("\n{:<34}{:>6} {:>7} {:>9} {:>9} {:>9} {:>9}\n", "kernel", "calls", "chosen", "body", "worst",
                     "others", "worst");
  for (const auto& [key, standing] : standings(report)) out += standing_row(key.first + " " + key.second, standing);
  out += fmt::format(
      "\nTimes as fast as the body and as the best of the other kernels, where it is chosen: geometric mean and worst, "
      "over\n"
      "calls whose body takes {:.0f} us and more.\n"
      "ONNX Runtime {}, {} threads, peak {:.0f} GFLOP/s float32, {:.0f} bfloat16, {:.0f} GOP/s int8\n",
      kTooShort * 1e6, report.runtime, report.threads, report.peak.float32 / 1e9, report.peak.bf16 / 1e9,
      report.peak.int8 / 1e9);
  return out;
}

std::string json_report(const KernelReport& report) {
  nlohmann::ordered_json calls = nlohmann::json::array(), kernels = nlohmann::json::array();
  for (const CallTimes& call : report.calls) {
    nlohmann::ordered_json times = nlohmann::json::array();
    for (const KernelTime& time : call.times)
      times.push_back({{"kernel", time.kernel.empty() ? "body" : time.kernel},
                       {"us", time.seconds * 1e6},
                       {"speedup", time.speedup},
                       {"low", time.low},
                       {"high", time.high},
                       {"share_of_peak", call.work.share_of(report.peak, time.seconds)}});
    calls.push_back({{"op", call.op},
                     {"call", call.text},
                     {"operations", call.work.operations},
                     {"bytes", call.bytes},
                     {"times", times}});
    if (!call.why_not.empty()) calls.back()["why_not"] = call.why_not;
  }
  for (const auto& [key, s] : standings(report))
    kernels.push_back({{"op", key.first},
                       {"kernel", key.second},
                       {"calls", s.calls},
                       {"chosen", s.body.count},
                       {"over_body", json_of(s.body)},
                       {"over_others", json_of(s.others)}});
  const nlohmann::ordered_json all{
      {"runtime", report.runtime}, {"threads", report.threads}, {"calls", calls}, {"kernels", kernels}};
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace modelflow::tools
