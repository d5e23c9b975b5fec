// What the report says about lower precision, as tables of text.
#include "src/flow/report_quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "src/core/printable.h"

namespace modelflow {
namespace {

constexpr std::size_t kMostRows = 24, kNameWidth = 34;

std::string clipped(const std::string& name) {
  return name.size() <= kNameWidth ? name : name.substr(0, kNameWidth - 3) + "...";
}

std::string decibels(const std::optional<double>& sqnr, const char* otherwise) {
  return sqnr ? fmt::format("{:.1f} dB", *sqnr) : otherwise;
}

std::string per_cent(double drop) { return std::isnan(drop) ? "not judged" : fmt::format("{:.3g} %", drop); }

std::string output_table(const QuantizationReport& r) {
  std::string text;
  for (std::size_t i = 0; i < std::min(r.outputs.size(), kMostRows); ++i) {
    const OutputError& error = r.outputs[i];
    text += printable_line(fmt::format("  {:<{}} {:>11.2e} {:>10} {:>9.6f} {:>8}", clipped(error.output), kNameWidth,
                                       error.relative_l2, decibels(error.sqnr, "equal"), error.cosine,
                                       error.top1 ? fmt::format("{:.1f} %", 100 * *error.top1) : "-"));
  }
  if (r.outputs.size() > kMostRows) text += fmt::format("  ... and {} more outputs\n", r.outputs.size() - kMostRows);
  if (text.empty()) return "";
  return fmt::format("\n  {:<{}} {:>11} {:>10} {:>9} {:>8}\n", "output", kNameWidth, "relative L2", "SQNR", "cosine",
                     "top-1") +
         text;
}

/// Ops in low precision by kind, and those kept in float by reason.
std::string op_table(const QuantizationReport& r) {
  std::map<std::string, int> quantized, kept;
  std::optional<QuantizedReport> worst;
  for (const QuantizedReport& op : r.ops) {
    if (!op.reason.empty()) {
      ++kept[op.op + " kept in " + op.precision + ": " + op.reason];
      continue;
    }
    ++quantized[op.op + " in " + op.precision];
    if (op.sqnr && (!worst || *op.sqnr < *worst->sqnr)) worst = op;
  }
  std::string text;
  for (const auto* group : {&quantized, &kept})
    for (const auto& [what, nodes] : *group) text += printable_line(fmt::format("  {:>5} x {}", nodes, what));
  if (worst)
    text +=
        printable_line(fmt::format("  least exact: {} ({}), {}", worst->node, worst->op, decibels(worst->sqnr, "")));
  return text.empty() ? "" : "\n" + text;
}

/// "46 int8, 2 bf16"
std::string counts(const FrontierPoint& point) {
  std::string text;
  for (const auto& [precision, ops] : point.precisions)
    text += (text.empty() ? "" : ", ") + std::to_string(ops) + " " + precision;
  return text.empty() ? "none" : text;
}

/// What was tried, the most ops in lower precision first.
std::string frontier_table(const QuantizationReport& r) {
  if (r.frontier.size() < 2) return "";
  std::string text = fmt::format("\n  {:<{}} {:>11} {:>10}\n", "ops in lower precision", kNameWidth, "drop", "speed");
  for (std::size_t i = 0; i < r.frontier.size(); ++i) {
    const FrontierPoint& point = r.frontier[i];
    if (i >= kMostRows && !point.chosen) continue;
    text +=
        fmt::format("  {:<{}} {:>11} {:>10}{}\n", clipped(counts(point)), kNameWidth, per_cent(point.drop),
                    point.speedup > 0 ? fmt::format("{:.2f}x", point.speedup) : "-", point.chosen ? "  chosen" : "");
  }
  return text;
}

}  // namespace

std::string precision_of_ops(const QuantizationReport& r) {
  std::string text;
  for (const QuantizedReport& op : r.ops)
    text += printable_line(fmt::format("  {:<{}} {:<16} {:<13} {:>8}  {}", clipped(op.node), kNameWidth, op.op,
                                       op.precision, decibels(op.sqnr, "-"), op.reason));
  return text.empty() ? ""
                      : "Precision of every op that could be lowered, its own error, and why it is not lower:\n" + text;
}

std::string quantization_table(const QuantizationReport& r) {
  std::string head = "\n  precision " + r.precision;
  if (r.samples > 0) head += fmt::format(", calibrated on {} sample{}", r.samples, r.samples == 1 ? "" : "s");
  const auto lowered = [](const QuantizedReport& op) { return op.precision != "float32"; };
  if (std::ranges::any_of(r.ops, lowered))
    head += fmt::format(", {} drop {} (allowed: {})", r.metric, per_cent(r.drop), per_cent(r.max_drop));
  return head + "\n" + op_table(r) + frontier_table(r) + output_table(r);
}

}  // namespace modelflow
