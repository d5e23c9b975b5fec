// Regions of a model timed fused and unfused on the values that flow there.
#include "src/measure/region_timing.h"

#include <map>
#include <set>

#include "modelflow/modelflow.h"
#include "src/core/stopwatch.h"
#include "src/measure/extract.h"
#include "src/measure/regions.h"
#include "src/verify/compare.h"

namespace modelflow {
namespace {

std::vector<std::string> names(const std::vector<Value*>& values) {
  std::vector<std::string> list;
  for (const Value* value : values) list.push_back(value->name());
  return list;
}

/// The values of these names in one run of the laid-out model.
Feeds capture(const Sessions& sessions, const Model& laid_out, const std::set<std::string>& wanted,
              const SelectTools& tools, const Feeds& feeds, const Options& options,
              const std::filesystem::path& plugin) {
  Model probe = laid_out;
  Feeds captured;
  for (const std::string& name : wanted) {
    Value* value = probe.graph().find(name);
    if (const auto fed = feeds.find(name); fed != feeds.end())
      captured[name] = fed->second;
    else if (value && !value->is_graph_output())
      probe.graph().add_output(*value);
  }
  const auto session = open_session(sessions, tools.emit(std::move(probe)),
                                    {.threads = options.threads, .plugin = plugin, .device = options.target.device});
  const std::vector<Tensor> values = session->run(feeds);
  const auto outputs = session->outputs();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (wanted.contains(outputs[i].first)) captured[outputs[i].first] = values[i];
  return captured;
}

/// In 8 bits two right forms may be a step apart, here and there.
bool is_near(const Tensor& x, const OutputDiff& diff) {
  return diff.equal_type && bits(x.dtype()) == 8 && diff.max_abs <= 2;
}

bool agree(Session& a, Session& b, const Feeds& feeds) {
  const std::vector<Tensor> x = a.run(feeds), y = b.run(feeds);
  if (x.size() != y.size()) return false;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (const OutputDiff diff = difference("", x[i], y[i], 1e-2); !diff.ok && !is_near(x[i], diff)) return false;
  return true;
}

/// The region in standard ops. A name may have changed its meaning on the way, so the caller compares results.
std::vector<Model> stock_forms(const Model& original, const Model& part) {
  std::vector<Model> forms;
  if (const auto nodes = slice(original, names(part.graph().inputs()), names(part.graph().outputs())); !nodes.empty()) {
    Model stock = extract(original, nodes);
    if (stock.graph().outputs().size() == part.graph().outputs().size()) forms.push_back(std::move(stock));
  }
  Model inlined = part;
  for (Node* node : fused_nodes(inlined.graph())) revert(inlined, *node);
  forms.push_back(std::move(inlined));
  return forms;
}

/// Seconds: there are many regions, most of them small.
constexpr double kBlock = 0.01;

/// How many times the budget may pass where the few rounds that each region gets take longer: large models.
constexpr double kPatience = 4;

/// More rounds would not change what becomes of a region: it goes back only where it is surely slower.
bool is_decided_alone(const Timing& timing) { return is_sure(timing) || timing.low > 1.0; }

class RegionTimer {
 public:
  RegionTimer(const Sessions& sessions, const Options& options, const std::filesystem::path& plugin)
      : sessions_(sessions), options_(options), plugin_(plugin) {}

  Timing time(const Model& original, const Model& part, const SelectTools& tools, const Feeds& feeds, double budget) {
    const Model fused = tools.emit(part);
    SessionOptions session = timing_session(options_);
    for (Model& stock : stock_forms(original, part)) {
      session.plugin.clear();
      const auto a = open_session(sessions_, stock, session);
      session.plugin = plugin_;
      const auto b = open_session(sessions_, fused, session);
      if (!agree(*a, *b, feeds)) continue;
      return time_interleaved({[&] { return a->timed_run(feeds); }, [&] { return b->timed_run(feeds); }},
                              {budget, is_decided_alone, kBlock})[1];
    }
    Timing none;
    none.why_not = "fused and plain ops give different results on their own";
    return none;
  }

 private:
  Sessions sessions_;
  const Options& options_;
  std::filesystem::path plugin_;
};

}  // namespace

std::vector<Timing> time_regions(const Sessions& sessions, const Model& original, const Model& laid_out,
                                 const SelectTools& tools, const Feeds& feeds, const Options& options,
                                 const std::filesystem::path& plugin) {
  const std::vector<Region> regions = find_regions(laid_out);
  std::vector<Model> parts;
  std::set<std::string> wanted;
  for (const Region& region : regions) {
    parts.push_back(extract(laid_out, region.nodes));
    for (const Value* input : parts.back().graph().inputs()) wanted.insert(input->name());
  }
  const Feeds captured = capture(sessions, laid_out, wanted, tools, feeds, options, plugin);
  RegionTimer timer(sessions, options, plugin);
  Model typed = original;  // exporters leave out the types of what lies within; a part's inputs need them
  infer_types(typed);
  std::vector<Timing> timings;
  const Stopwatch watch;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (options.progress) options.progress("select", static_cast<double>(i) / static_cast<double>(parts.size()));
    const double spent = watch.seconds();
    if (spent > kPatience * tools.budget) {  // what is not reached stays fused; the whole model is timed as well
      timings.emplace_back().why_not = "no time left";
      continue;
    }
    Feeds inputs;
    for (const Value* input : parts[i].graph().inputs())
      if (const auto found = captured.find(input->name()); found != captured.end()) inputs.insert(*found);
    const double left = std::max(tools.budget - spent, 0.0);  // none: as few rounds as there are
    const double share = std::min(2.0, left / static_cast<double>(parts.size() - i));
    try {
      timings.push_back(timer.time(typed, parts[i], tools, inputs, share));
    } catch (const Error& error) {  // a cut that the runtime does not take is no reason to fail
      timings.emplace_back().why_not = error.what();
    }
  }
  return timings;
}

}  // namespace modelflow
