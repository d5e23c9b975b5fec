// Sides of a comparison as rows of the report.
#include "src/measure/sides.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "src/core/peak.h"
#include "src/measure/describe.h"
#include "src/measure/node_times.h"
#include "src/measure/roofline.h"
#include "src/verify/reference.h"

namespace modelflow {
namespace {

Peak peak_of(const MachineReport& machine) {
  return {.float32 = machine.peak_float32, .bf16 = machine.peak_bf16, .int8 = machine.peak_int8};
}

std::string system_name() {
  utsname system = {};
  if (uname(&system) != 0) return "";
  return std::string(system.sysname) + " " + system.release;
}

std::vector<NodeTime> slowest_first(const NodeTimes& times) {
  std::vector<NodeTime> list;
  for (const auto& [name, time] : times) list.push_back(time);
  std::ranges::stable_sort(list, std::greater(), &NodeTime::seconds);
  return list;
}

void take_peaks(MachineReport& machine) {
  const Peak peak = measure_peak(machine.threads);
  machine.peak_float32 = peak.float32;
  machine.peak_bf16 = peak.bf16;
  machine.peak_int8 = peak.int8;
}

void profile_side(const Sessions& sessions, const Model& model, const Feeds& feeds, const Options& options,
                  const std::filesystem::path& plugin, const MachineReport& machine, SideReport& side) {
  NodeTimes times;
  side.memory_bytes = growth_of_memory(
      [&] { times = node_times(sessions, {&model}, feeds, options, plugin, 1, open_from_file).front(); });
  side.nodes = node_runs(slowest_first(times), model, machine);
}

}  // namespace

SideReport side_report(std::string name, std::string graph, const Timing& base, const Timing& side) {
  SideReport report{.name = std::move(name), .graph = std::move(graph), .nodes = {}};
  const bool paired = !base.sessions.empty() && base.sessions.size() == side.sessions.size();
  const Timing timing = paired ? against(base, side) : side;
  const Interval interval = interval_of_median(side.sessions);
  report.ms = timing.seconds * 1e3;
  report.low_ms = paired ? interval.low * 1e3 : report.ms;
  report.high_ms = paired ? interval.high * 1e3 : report.ms;
  report.speedup = timing.speedup;
  report.speedup_low = timing.low;
  report.speedup_high = timing.high;
  return report;
}

MachineReport this_machine(int threads) {
  const Target host = Target::host();
  MachineReport machine{.cpu = host.cpu_name, .isas = host.isas.str(), .system = system_name()};
  if (const auto mark = machine.cpu.rfind(" #"); mark != std::string::npos) machine.cpu.resize(mark);
  machine.cores = host.cores;
  machine.threads = threads > 0 ? threads : host.cores;
  machine.memory_bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return machine;
}

std::vector<NodeRun> node_runs(const std::vector<NodeTime>& times, const Model& model, const MachineReport& machine) {
  std::map<std::string_view, const Node*> by_name;
  for (const auto& node : model.graph().nodes()) by_name[node->name] = node.get();
  std::vector<NodeRun> runs;
  for (const NodeTime& time : times) {
    const auto found = by_name.find(time.name);
    const Node* node = found == by_name.end() ? nullptr : found->second;
    NodeRun run{time.name, node && node->domain() == kDomain ? shown_op(*node) : time.op, time.seconds * 1e3, 0, {}};
    const Work work = work_of(time, node);
    run.operations = work.operations;
    if (work.operations > 0 && machine.peak_float32 > 0)
      run.share_of_peak = work.share_of(peak_of(machine), time.seconds);
    runs.push_back(std::move(run));
  }
  return runs;
}

void profile_sides(const Sessions& sessions, const Profiled& models, const Feeds& feeds, const Options& options,
                   const std::filesystem::path& plugin, Report& report) {
  constexpr double kRuns = 12, kMostSeconds = 20;
  if (report.sides.front().ms * kRuns > std::min(options.max_seconds, kMostSeconds) * 1e3) {
    report.notes.push_back("not profiled: it would take too long");
    return;
  }
  try {
    take_peaks(report.machine);
    for (SideReport& side : report.sides) {
      const bool is_stock = side.name == "stock";
      if (!is_stock && side.name != "optimized") continue;
      const Model& model = is_stock ? models.original : models.result;
      profile_side(sessions, model, feeds, options, uses_our_domain(model) ? plugin : "", report.machine, side);
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::limit) throw;
    report.notes.push_back(std::string("not profiled: ") + error.what());
  }
}

}  // namespace modelflow
