// The fastest form of a model by the clock.
#include "src/measure/select.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "src/core/stopwatch.h"
#include "src/measure/extract.h"
#include "src/measure/regions.h"
#include "src/measure/sides.h"
#include "src/verify/reference.h"

namespace modelflow {
namespace {

constexpr const char *kEverything = "everything fused", *kStandard = "standard ops only";

/// A later trial has to win by this factor: the times of regions are more precise than those of whole models.
constexpr double kClearly = 1.05;

/// Not measurably slower than stock, or noise hides that and the regions have said so: `foreseen`.
bool is_faster(const Timing& timing, double foreseen = 0) {
  return timing.speedup > kWorthwhile && (timing.low > kNotSlower || foreseen > kWorthwhile);
}

/// So clear a win that a few more rounds in other sessions confirm it.
bool is_clear(const Timing& timing) { return is_sure(timing) && timing.low > 1.08; }

/// Worth more time: halfway to what is possible it would be worth a plugin, and it may still be none.
bool is_open(const Timing& timing) {
  if ((timing.speedup + timing.high) / 2 <= kWorthwhile || is_clear(timing)) return false;
  return timing.sessions.size() < kSessionsToBeSure || timing.speedup <= kWorthwhile || timing.low <= 1.0;
}

/// No answer for a report yet, which is to hold elsewhere: open, or known to less than a part of the gain.
bool is_vague(const Timing& timing) {
  return is_open(timing) ||
         (timing.speedup > kWorthwhile && timing.high - timing.low > std::max(0.04, (timing.speedup - 1) / 2));
}

/// Bytes of weights whose sessions take seconds to open; where in memory they lie is little to runs that long.
constexpr double kLarge = 512 << 20;
bool is_large(const Report& report) { return report.before.weight_bytes > kLarge; }

/// Seconds for a first look at each trial, and as many for all of them together where noise hides the answer, more
/// where runs are long. Opening the sessions of a large model takes longer than its rounds, and counts.
class Clock {
 public:
  Clock(const SelectTools& tools, std::size_t trials)
      : most_(tools.max_seconds), share_(tools.budget / static_cast<double>(trials)), left_(2 * tools.budget) {}
  bool has_more() const { return left_ >= share_ && !is_over(); }
  bool is_over() const { return watch_.seconds() > most_; }
  std::vector<Timing> look(const SelectTools& tools, const std::vector<const Model*>& models) {
    const Stopwatch watch;
    std::vector<Timing> timing = tools.time(models, share_);
    const double seconds = watch.seconds();
    if (!looked_) left_ = std::max(left_, std::min(kLooks * seconds, kMostSeconds));
    looked_ = true;
    left_ -= std::max(share_, seconds);
    return timing;
  }

 private:
  static constexpr double kLooks = 12, kMostSeconds = 25;
  Stopwatch watch_;
  double most_, share_, left_;
  bool looked_ = false;
};

/// Again while noise hides the answer, in sessions of their own, and all of them count.
std::vector<Timing> time_while(const std::function<bool(const Timing&)>& more, const SelectTools& tools,
                               const std::vector<const Model*>& models, Clock& clock) {
  constexpr int kMostTimes = 5;  // what lies at the edge stays there
  std::vector<Timing> timing = clock.look(tools, models);
  for (int i = 1; i < kMostTimes && more(timing[1]) && clock.has_more(); ++i)
    timing = joined(timing, clock.look(tools, models));
  return timing;
}

std::string times(double factor) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2fx", factor);
  return text;
}

std::string describe(const Timing& timing) {
  return times(timing.speedup) + " [" + times(timing.low) + ", " + times(timing.high) + "] of stock ONNX Runtime";
}

/// Names of the fused nodes that are matrix products, of those that are not, or of all.
enum class Which { products, others, all };
std::vector<std::string> fused_names(const Model& model, Which which) {
  std::vector<std::string> names;
  Model copy = model;  // fused_nodes gives nodes that may be edited
  for (const Node* node : fused_nodes(copy.graph()))
    if (which == Which::all || computes(*node, Family::product) == (which == Which::products))
      names.push_back(node->name);
  return names;
}

/// Has both matrix products and other fused nodes.
bool is_divisible(const Region& region) {
  const auto has = [&](bool product) {
    return std::ranges::any_of(region.nodes, [&](const Node* node) {
      return node->domain() == kDomain && computes(*node, Family::product) == product;
    });
  };
  return has(true) && has(false);
}

/// The regions of the fully fused model, timed one by one.
struct Measured {
  std::vector<Region> regions;  ///< without nodes: the model that they belonged to is gone
  std::vector<double> gains;    ///< seconds that each saves fused, at least
  std::vector<std::string> slower;
  bool complete = true;
  bool divisible = false;  ///< one that is not clearly faster
};

Measured measure_regions(const Model& fused, const SelectTools& tools, Report& report) {
  const Model laid_out = tools.lay_out(fused);
  Measured measured;
  measured.regions = find_regions(laid_out);
  measured.gains.resize(measured.regions.size());
  const bool single = measured.regions.size() == 1;  // timed as the whole model
  std::vector<Timing> timings;
  if (tools.time_regions && !single) timings = tools.time_regions(laid_out);
  for (std::size_t i = 0; i < measured.regions.size(); ++i) {
    Region& region = measured.regions[i];
    const std::string name = region.name + (region.copies > 1 ? " x" + std::to_string(region.copies) : "");
    RegionReport row{.name = name, .nodes = region.nodes.size(), .reason = "not measured alone"};
    const bool divisible = is_divisible(region);
    region.nodes.clear();
    if (i < timings.size() && timings[i].seconds > 0) {
      row.fused_seconds = timings[i].seconds * region.copies;
      row.stock_seconds = row.fused_seconds * timings[i].speedup;
      measured.gains[i] = row.fused_seconds * (timings[i].low - 1);
      row.reason = describe(timings[i]);
      // Only what is slower beyond doubt goes back here: the whole model is timed as well.
      if (timings[i].high < 1.0)
        measured.slower.insert(measured.slower.end(), region.fused.begin(), region.fused.end());
      measured.divisible |= divisible && timings[i].low < 1.0;
    } else {
      if (i < timings.size() && !timings[i].why_not.empty()) row.reason += ": " + timings[i].why_not;
      measured.complete = single;
      measured.divisible |= divisible;
    }
    report.regions.push_back(std::move(row));
  }
  return measured;
}

/// The single region of a model has the times of all of it.
void tell_of_single(const std::vector<Timing>& timing, std::vector<RegionReport>& regions) {
  if (regions.size() != 1) return;
  regions[0].stock_seconds = timing[0].seconds;
  regions[0].fused_seconds = timing[1].seconds;
  regions[0].reason = "the whole model, " + describe(timing[1]);
}

struct Trial {
  std::string name;
  std::vector<std::string> reverted;
};

std::vector<Trial> trials(const Model& fused, const Measured& measured) {
  std::vector<Trial> list;
  if (!measured.slower.empty()) list.push_back({"fused where it is faster", measured.slower});
  list.push_back({kEverything, {}});
  if (measured.complete && !measured.divisible) return list;  // coarser than what the regions said
  const auto products = fused_names(fused, Which::products), others = fused_names(fused, Which::others);
  if (!products.empty() && !others.empty()) {
    list.push_back({"all but matrix products fused", products});
    list.push_back({"only matrix products fused", others});
  }
  return list;
}

/// How many fused nodes of the region the trial leaves.
std::size_t left_fused(const Region& region, const Trial& trial) {
  return static_cast<std::size_t>(std::ranges::count_if(region.fused, [&](const std::string& name) {
    return std::ranges::find(trial.reverted, name) == trial.reverted.end();
  }));
}

struct Best {
  Model model;
  std::vector<Timing> timing;
  Trial trial;
};

/// A model and its result, and beside them, if wanted, the form without the plugin where that has use for one.
struct Sides {
  Sides(const Model& original, const Model& result, bool with_fallback = true) : all{&original, &result} {
    if (with_fallback && uses_our_domain(result)) all.push_back(&fallback.emplace(inline_functions(result)));
  }
  std::optional<Model> fallback;
  std::vector<const Model*> all;
};

/// How many times faster than stock the whole is at least where its regions are as fast as alone; 0: not all have been
/// timed, or together they save more than there is.
double foreseen(const Trial& trial, const Measured& measured, const Timing& stock) {
  if (!measured.complete || measured.regions.size() < 2) return 0;
  double left = stock.seconds;
  for (std::size_t i = 0; i < measured.regions.size(); ++i)
    if (left_fused(measured.regions[i], trial) == measured.regions[i].fused.size()) left -= measured.gains[i];
  return left > 0 ? stock.seconds / left : 0;
}

/// The best of several trials is partly the luckiest: it is timed once more, in sessions of its own, and that counts.
/// What the report says holds elsewhere as well, so it is timed until that is known.
bool holds(Best& best, const Model& original, const SelectTools& tools, Clock& clock, const Measured& measured,
           Report& report) {
  const bool clear = !best.timing.empty() && is_clear(best.timing[1]);
  if (clear && is_large(report)) return true;
  const Sides sides(original, best.model);
  std::vector<Timing> again;
  if (clear) {
    again = tools.time(sides.all, 0);  // as few rounds as there are
    const std::vector<Timing> both = joined(again, best.timing);
    if (is_faster(again[1]) && is_clear(both[1])) {
      best.timing = both;
      return true;
    }
  }
  const std::vector<Timing> more = time_while(is_vague, tools, sides.all, clock);
  again = again.empty() ? more : joined(more, again);
  const bool faster = is_faster(again[1], foreseen(best.trial, measured, again[0]));
  const bool few = again[1].sessions.size() < kSessionsToBeSure;  // they took long to open
  best.timing = faster && few ? joined(again, best.timing) : again;
  if (!faster) report.notes.push_back(best.trial.name + ": not faster a second time, " + describe(best.timing[1]));
  return faster;
}

/// The same nodes without the plugin: where they win, standard ops alone may win by more.
bool beaten_by_its_fallback(const Best& best) {
  return best.timing.size() > 2 && best.timing[2].speedup > best.timing[1].speedup * kClearly;
}

void record(Report& report, const Best& best, const std::vector<Region>& regions) {
  report.stock_ms = best.timing[0].seconds * 1e3;
  report.optimized_ms = best.timing[1].seconds * 1e3;
  report.speedup = best.timing[1].speedup;
  const Timing& stock = best.timing[0];
  report.sides = {side_report("stock", "before", stock, stock)};
  if (best.timing.size() > 2) report.sides.push_back(side_report("fallback", "", stock, best.timing[2]));
  report.sides.push_back(side_report("optimized", "after", stock, best.timing[1]));
  for (std::size_t i = 0; i < regions.size(); ++i) report.regions[i].kept = left_fused(regions[i], best.trial) > 0;
  report.notes.push_back("chosen: " + best.trial.name + ", " + describe(best.timing[1]));
}

}  // namespace

bool is_decided(const Timing& timing) { return is_sure(timing) || timing.high < kWorthwhile; }

Selected select(const Forms& forms, const SelectTools& tools, Report& report) {
  Measured measured;
  std::vector<Trial> list;
  const auto all = fused_names(forms.fused, Which::all);
  if (!all.empty()) {
    measured = measure_regions(forms.fused, tools, report);
    list = trials(forms.fused, measured);
  }
  list.push_back({kStandard, all});
  Clock clock(tools, list.size() + 1);
  std::optional<Best> best;
  Timing stock;
  for (const Trial& trial : list) {
    // Where each region has had its own verdict, coarser splits are a last resort.
    if (best && (measured.complete || trial.name == kStandard || !clock.has_more())) break;
    if (stock.seconds > 0 && clock.is_over()) break;
    const bool portable = trial.name == kStandard;
    Model fused = portable ? forms.portable : forms.fused;
    if (!portable && !trial.reverted.empty()) revert(fused, trial.reverted);
    Model model = portable ? tools.emit(std::move(fused)) : tools.emit(tools.lay_out(std::move(fused)));
    const Sides sides(forms.original, model, is_large(report));
    const std::vector<Timing> timing = time_while(is_open, tools, sides.all, clock);
    stock = timing[0];
    if (trial.name == kEverything) tell_of_single(timing, report.regions);
    if (!is_faster(timing[1], foreseen(trial, measured, stock))) {
      report.notes.push_back(trial.name + ": not faster, " + describe(timing[1]));
    } else if (!best || timing[1].speedup > best->timing[1].speedup * kClearly) {
      best = {std::move(model), timing, trial};
    }
  }
  if (best && holds(*best, forms.original, tools, clock, measured, report)) {
    if (beaten_by_its_fallback(*best)) {
      Best plain{tools.emit(Model(forms.portable)), {}, {kStandard, all}};
      if (holds(plain, forms.original, tools, clock, measured, report) &&
          plain.timing[1].speedup > best->timing[1].speedup * kClearly)
        best = std::move(plain);
    }
    record(report, *best, measured.regions);
    return {std::move(best->model), best->trial.name == kEverything};
  }
  for (RegionReport& row : report.regions) row.kept = false;
  report.sides = {side_report("stock", "before", stock, stock)};
  report.notes.push_back("nothing is faster than stock ONNX Runtime here: the model stays as it came");
  report.speedup = 1;
  return {.model = forms.original, .original = true};
}

}  // namespace modelflow
