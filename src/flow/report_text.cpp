// The report as text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "modelflow/report.h"
#include "src/core/printable.h"
#include "src/flow/report_quantization.h"

namespace modelflow {
namespace {

constexpr std::size_t kMostOps = 24, kNameWidth = 34, kShapesWidth = 90;

/// "25.6 M": four characters and a unit of thousands.
std::string short_number(double value) {
  constexpr const char* kUnits[] = {"", " k", " M", " G", " T", " P"};
  std::size_t unit = 0;
  for (; value >= 9999.5 && unit + 1 < std::size(kUnits); ++unit) value /= 1000;
  return fmt::format("{:.{}f}{}", value, unit == 0 || value >= 100 ? 0 : 1, kUnits[unit]);
}

std::string duration(double seconds) {
  if (seconds >= 1) return fmt::format("{:.1f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.0f} us", seconds * 1e6);
}

std::string clipped(const std::string& name, std::size_t width) {
  return name.size() <= width ? name : name.substr(0, width - 3) + "...";
}

std::string row(const std::string& name, const std::string& before, const std::string& after) {
  return printable_line(fmt::format("  {:<{}} {:>10} {:>10}", clipped(name, kNameWidth), kNameWidth, before, after));
}

std::string count(int number) { return number ? std::to_string(number) : "-"; }

std::string totals(const Report& r) {
  std::string text = row("", "before", "after");
  text += row("nodes", std::to_string(r.before.nodes), std::to_string(r.after.nodes));
  text += row("parameters", short_number(r.before.parameters), short_number(r.after.parameters));
  text += row("weight bytes", short_number(r.before.weight_bytes), short_number(r.after.weight_bytes));
  return text + row("FLOPs", short_number(r.before.flops), short_number(r.after.flops));
}

/// Ops whose number changed, the most frequent first.
std::string op_table(const Report& r) {
  std::map<std::string, std::pair<int, int>> counts;
  for (const auto& [op, number] : r.before.ops) counts[op].first = number;
  for (const auto& [op, number] : r.after.ops) counts[op].second = number;
  std::vector<std::pair<std::string, std::pair<int, int>>> changed;
  for (const auto& entry : counts) {
    if (entry.second.first != entry.second.second) changed.push_back(entry);
  }
  std::stable_sort(changed.begin(), changed.end(), [](const auto& a, const auto& b) {
    return std::max(a.second.first, a.second.second) > std::max(b.second.first, b.second.second);
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(changed.size(), kMostOps); ++i) {
    text += row(changed[i].first, count(changed[i].second.first), count(changed[i].second.second));
  }
  if (changed.size() > kMostOps) text += fmt::format("  ... and {} more ops\n", changed.size() - kMostOps);
  return text.empty() ? "" : "\n" + text;
}

std::string hit_list(const StepReport& step) {
  std::string text;
  for (const auto& [rule, times] : step.hits) {
    text += (text.empty() ? "" : ", ") + (rule == step.name ? "" : rule + " ") + "x" + std::to_string(times);
  }
  return text;
}

/// Steps that changed something; the others only add to the total.
std::string step_table(const Report& r) {
  std::string text;
  double total = 0;
  for (const StepReport& step : r.steps) {
    total += step.seconds;
    const std::string hits = hit_list(step);
    if (hits.empty()) continue;
    const std::string nodes = fmt::format("{} -> {}", step.nodes_before, step.nodes_after);
    text += printable_line(fmt::format("  {:<{}} {:>10} {:>18}  {}", clipped(step.stage + ": " + step.name, kNameWidth),
                                       kNameWidth, duration(step.seconds), nodes, hits));
  }
  if (r.steps.empty()) return "";
  return fmt::format("\n  {:<{}} {:>10} {:>18}  hits\n", "step", kNameWidth, "time", "nodes") + text +
         fmt::format("  {:<{}} {:>10}\n", fmt::format("all {} steps", r.steps.size()), kNameWidth, duration(total));
}

std::string fused_table(const Report& r) {
  std::map<std::string, int> kernels;
  for (const FusedReport& fused : r.fused) ++kernels[fused.op + " by " + (fused.kernel.empty() ? "?" : fused.kernel)];
  std::string text;
  for (const auto& [kernel, nodes] : kernels) text += printable_line(fmt::format("  {:>5} x {}", nodes, kernel));
  return text.empty() ? "" : "\n  fused ops\n" + text;
}

std::string region_table(const Report& r) {
  std::string text;
  for (const RegionReport& region : r.regions) {
    text += printable_line(fmt::format("  {:<{}} {:>10} {:>10}  {}{}", clipped(region.name, kNameWidth), kNameWidth,
                                       duration(region.stock_seconds), duration(region.fused_seconds),
                                       region.kept ? "kept" : "taken back",
                                       region.reason.empty() ? "" : ": " + region.reason));
  }
  return text.empty() ? "" : fmt::format("\n  {:<{}} {:>10} {:>10}\n", "region", kNameWidth, "stock", "fused") + text;
}

/// "input_ids int64[1,64], mask int64[1,64]"
std::string shapes(const FeedReport& feed) {
  std::string text;
  for (const auto& [input, shape] : feed.shapes) text += (text.empty() ? "" : ", ") + input + " " + shape;
  return clipped(text, kShapesWidth);
}

std::string feed_table(const Report& r) {
  std::string text;
  for (const FeedReport& feed : r.feeds)
    if (feed.dropped.empty())
      text += printable_line(fmt::format("  {:<{}} {}", clipped(feed.name, kNameWidth), kNameWidth, shapes(feed)));
  for (const FeedReport& feed : r.feeds)
    if (!feed.dropped.empty())
      text += printable_line(fmt::format("  {:<{}} not run: {}", clipped(feed.name, kNameWidth), kNameWidth,
                                         clipped(feed.dropped, kShapesWidth)));
  return text.empty() ? "" : "\n  compared on\n" + text;
}

/// Relative, where no output is 0 throughout in the original.
std::string largest_difference(const std::vector<OutputDiff>& outputs) {
  const double relative = std::ranges::max(outputs, {}, &OutputDiff::max_rel).max_rel;
  if (std::isfinite(relative)) return fmt::format("largest relative difference {:.1e}", relative);
  return fmt::format("largest difference {:.1e}", std::ranges::max(outputs, {}, &OutputDiff::max_abs).max_abs);
}

/// Differences beyond the bound that are no fault, by their first.
std::string excused(const std::vector<OutputDiff>& outputs) {
  const auto is_excused = [](const OutputDiff& diff) { return diff.ok && !diff.explained.empty(); };
  const auto first = std::ranges::find_if(outputs, is_excused);
  if (first == outputs.end()) return "";
  const auto others = std::ranges::count_if(outputs, is_excused) - 1;
  return printable_line(fmt::format("no fault: output '{}' on feed '{}', {}: {}{}", first->output, first->feed,
                                    largest_difference({*first}), first->explained,
                                    others > 0 ? fmt::format(" (and {} other outputs)", others) : ""));
}

std::string outcome(const Report& r) {
  std::string text = "\n";
  const auto wrong = std::ranges::count(r.verification, false, &OutputDiff::ok);
  if (wrong > 0)
    text += fmt::format("verification FAILED for {} of {} outputs", wrong, r.verification.size());
  else if (r.verified)
    text += fmt::format("verified: {} outputs compared on {} feeds", r.verification.size(),
                        std::count_if(r.feeds.begin(), r.feeds.end(), [](const auto& f) { return f.dropped.empty(); }));
  else
    text += "not verified";
  if (!r.verification.empty()) text += ", " + largest_difference(r.verification);
  text += "\n" + excused(r.verification);
  if (r.stock_ms > 0 && r.optimized_ms > 0) {
    text += fmt::format("speed: {:.2f} ms -> {:.2f} ms, {:.2f}x of ONNX Runtime alone\n", r.stock_ms, r.optimized_ms,
                        r.speedup > 0 ? r.speedup : r.stock_ms / r.optimized_ms);
  }
  for (const std::string& note : r.notes) text += printable_line("note: " + note);
  return text;
}

}  // namespace

std::string Report::text() const {
  std::string head = input.empty() ? "model" : input;
  if (!level.empty()) head += ", level " + level;
  if (!target.empty()) head += ", for " + target;
  if (!runtime.empty()) head += ", " + runtime;
  return printable_line(head) + "\n" + totals(*this) + op_table(*this) + fused_table(*this) + step_table(*this) +
         region_table(*this) + (verified ? feed_table(*this) : "") +
         (quantization ? quantization_table(*quantization) : "") + outcome(*this);
}

std::string Report::explain() const {
  std::map<std::string, Miss> closest;
  std::map<std::string, int> hits;
  for (const StepReport& step : steps) {
    for (const auto& [rule, times] : step.hits) hits[rule] += times;
    for (const Miss& miss : step.misses) {
      const auto [known, fresh] = closest.try_emplace(miss.rule, miss);
      if (!fresh && miss.matched > known->second.matched) known->second = miss;
    }
  }
  std::vector<Miss> ordered;
  ordered.reserve(closest.size());
  for (const auto& [rule, miss] : closest) ordered.push_back(miss);
  std::stable_sort(ordered.begin(), ordered.end(), [](const Miss& a, const Miss& b) { return a.matched > b.matched; });
  std::string text = quantization ? precision_of_ops(*quantization) : "";
  if (ordered.empty()) return text + "Every rule fired wherever its pattern began to fit.\n";
  text += "Closest misses, the most promising first:\n";
  for (const Miss& miss : ordered) {
    const std::string fired =
        hits.contains(miss.rule) ? fmt::format(", fired {} times elsewhere", hits[miss.rule]) : "";
    text += fmt::format("  {} ({} node{} fitted{})\n", miss.rule, miss.matched, miss.matched == 1 ? "" : "s", fired);
    text += printable_line(fmt::format("      {}{}{}", miss.node, miss.node.empty() ? "" : ": ", miss.reason));
  }
  return text;
}

}  // namespace modelflow
