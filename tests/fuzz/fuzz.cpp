// The command behind tools/fuzz: random models through every form of the optimizer, failures made small and named.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <thread>

#include "modelflow/data.h"
#include "modelflow/error.h"
#include "modelflow/modelflow.h"
#include "src/verify/compare.h"
#include "tests/fuzz/data.h"
#include "tests/fuzz/forms.h"
#include "tests/fuzz/generate.h"
#include "tests/fuzz/isolate.h"
#include "tests/fuzz/shrink.h"

namespace modelflow::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::ptrdiff_t kQuickModes = 5;  // of all_modes(), from the first on

/// What a process says first when the original has run.
constexpr std::string_view kReady = "ready\n";

struct Arguments {
  std::uint64_t seed = 0;
  std::size_t first = 0, count = 300;
  std::optional<std::size_t> only;
  int jobs = 2, limit = 60, most_failures = 40, alike = 2;
  bool kinds = false, show = false, no_shrink = false, check_blocks = false;
  double seconds = 0;
  fs::path out = "fuzz-failures";
  std::vector<std::string> modes, models;
};

/// What was done, over all graphs.
struct Tally {
  std::size_t graphs = 0, refused = 0, samples = 0, excused = 0, left_open = 0, repaired = 0, unfinished = 0;
  std::map<std::string, std::size_t> findings;  ///< by what is to blame
};

class Fuzzer {
 public:
  explicit Fuzzer(const Arguments& arguments) : arguments_(arguments) {
    material_ = {pass_cases(), blocks(fs::path(MODELFLOW_SOURCE_DIR) / "tests/fuzz/blocks")};
    settings_.modes = arguments.modes;
    settings_.kinds = arguments.kinds;
    std::string why;
    runtime_ = Runtime::find(&why);
    if (!runtime_) throw Error(ErrorKind::unsupported, why);
    if (plugin_path().empty()) throw Error(ErrorKind::unsupported, "no libmodelflow_ort.so beside it: tools/build");
    for (const std::string& file : arguments.models) files_.push_back(file);
  }

  /// Blocks that no throw of the dice makes a model of that runs.
  int check_blocks() const {
    int broken = 0;
    for (const Block& block : material_.blocks) {
      int good = 0;
      std::string why;
      for (std::uint64_t i = 0; i < 12; ++i) {
        Dice dice(i);
        const Model model = filled(block, dice).model;
        if (runs(model, i, *runtime_)) {
          ++good;
          continue;
        }
        try {
          open_session(*runtime_, model, {.threads = 1, .optimize = false})
              ->run(samples(model, i, false, false)[0].feeds);
        } catch (const Error& error) {
          why = error.what();
        }
      }
      if (good < 12) fmt::print("{:2} of 12 run: {} {}\n", good, block.name, why);
      broken += good == 0;
    }
    return broken ? 1 : 0;
  }

  int run() {
    fmt::print("tools/fuzz --seed {} --count {}{}{}{}\n", arguments_.seed, arguments_.count,
               arguments_.modes.empty() ? "" : " --modes ", fmt::join(arguments_.modes, ","),
               arguments_.kinds ? " --kinds" : "");
    std::fflush(stdout);
    const auto start = std::chrono::steady_clock::now();
    const auto elapsed = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    const std::size_t first = arguments_.only.value_or(arguments_.first);
    const std::size_t end = arguments_.only ? first + 1 : files_.empty() ? arguments_.count : files_.size();
    std::size_t next = first;
    std::mutex lock;
    const auto work = [&] {
      for (;;) {
        std::size_t mine = 0;
        {
          const std::scoped_lock hold(lock);
          const bool late = arguments_.seconds > 0 && elapsed() > arguments_.seconds;
          if (next >= end || late || failures_ >= arguments_.most_failures) return;
          mine = next++;
        }
        one(mine, lock);
      }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < arguments_.jobs; ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
    summary(elapsed(), next - first);
    return failures_ ? 1 : 0;
  }

 private:
  std::uint64_t seed_of_graph(std::size_t index) const { return seed_of(arguments_.seed, std::to_string(index)); }

  Generated generated(std::size_t index) const {
    if (!files_.empty()) return {Model::load(files_[index]), files_[index].string()};
    const std::uint64_t seed = seed_of_graph(index);
    return generate(material_, seed, [&](const Model& model) { return runs(model, seed, *runtime_); });
  }

  /// Some graphs run with two threads, where kernels divide their work.
  Settings settings(std::size_t index) const {
    Settings settings = settings_;
    settings.threads = seed_of_graph(index) % 4 == 0 ? 2 : 1;
    if (!arguments_.modes.empty()) return settings;
    // The quick ones for all, of the others one for each.
    const std::vector<std::string>& all = all_modes();
    settings.modes = {all.begin(), all.begin() + kQuickModes};
    settings.modes.push_back(all[kQuickModes + index % (all.size() - kQuickModes)]);
    return settings;
  }

  static std::string encoded(const Checked& checked) {
    std::string text = fmt::format("{} {} {} {}\n{}\n", checked.runs, checked.samples, checked.excused,
                                   checked.left_open, checked.repaired);
    if (checked.finding)
      text += fmt::format("{}\n{}\n{}\n", checked.finding->mode, checked.finding->kind, checked.finding->what);
    return text;
  }

  static Checked decoded(const Answer& answer) {
    Checked checked;
    const bool ready = answer.text.starts_with(kReady);
    const std::string text = ready ? answer.text.substr(kReady.size()) : answer.text;
    if (!answer.death.empty() || text.starts_with("exception")) {
      checked.runs = ready;  // else the original crashes ONNX Runtime, or the generator failed
      const bool slow = answer.death.starts_with("more");
      if (ready || slow || answer.death.empty())
        checked.finding = Finding{"",
                                  answer.death.empty() ? "exception"
                                  : slow               ? "hangs"
                                                       : "crash",
                                  text + answer.death};
      return checked;
    }
    std::istringstream in(text);
    in >> std::boolalpha >> checked.runs >> checked.samples >> checked.excused >> checked.left_open;
    in.ignore();
    std::getline(in, checked.repaired);
    Finding finding;
    if (std::getline(in, finding.mode) && std::getline(in, finding.kind) && std::getline(in, finding.what))
      checked.finding = finding;
    return checked;
  }

  /// `make` and check in a process of its own; without empty inputs where the runtime itself dies of them.
  Checked checked_apart(const std::function<Model()>& make, std::uint64_t seed, Settings settings) const {
    Checked checked;
    for (const bool empty : {true, false}) {
      settings.empty = empty;
      const Answer answer = isolated(
          [&](const Say& say) {
            return encoded(check(make(), seed, settings, runtime_, [&] { say(std::string(kReady)); }));
          },
          arguments_.limit);
      checked = decoded(answer);
      if (answer.death.empty() || checked.finding) break;
    }
    if (checked.finding && checked.finding->kind == "crash" && stock_dies(make, seed)) return {};
    return checked;
  }

  bool stock_dies(const std::function<Model()>& make, std::uint64_t seed) const {
    const auto run = [&](const Say&) { return run_stock(make(), seed, *runtime_), std::string(); };
    return !isolated(run, arguments_.limit).death.empty();
  }

  void one(std::size_t index, std::mutex& lock) {
    const Settings settings = this->settings(index);
    const auto make = [&] {
      Generated made = generated(index);
      if (arguments_.show) {
        fmt::print("--- {} {}\n{}\n", index, made.story, made.model.to_text());
        std::fflush(stdout);  // the process that this is may end without
      }
      return std::move(made.model);
    };
    Checked checked = checked_apart(make, seed_of_graph(index), settings);
    // A process that was forked while another thread held a lock waits for it for ever: that does not happen twice.
    if (checked.finding && checked.finding->kind == "hangs")
      checked = checked_apart(make, seed_of_graph(index), settings);
    std::string blame;
    if (checked.finding && checked.finding->kind != "hangs") blame = examine(index, settings, *checked.finding, lock);
    const std::scoped_lock hold(lock);
    ++tally_.graphs;
    tally_.refused += !checked.runs;
    tally_.samples += static_cast<std::size_t>(checked.samples);
    tally_.excused += static_cast<std::size_t>(checked.excused);
    tally_.left_open += static_cast<std::size_t>(checked.left_open);
    if (!checked.repaired.empty()) {
      ++tally_.repaired;
      fmt::print("{}: verification: {}\n", index, checked.repaired);
      std::fflush(stdout);
    }
    if (!checked.finding) return;
    if (checked.finding->kind == "hangs") {
      ++tally_.unfinished;
      fmt::print("{}: not finished in {} s\n", index, arguments_.limit);
      return;
    }
    if (!tally_.findings[blame]++) fmt::print("  ({} for the first time)\n", blame);
    ++failures_;
    std::fflush(stdout);
  }

  /// Everything about one failure: its smallest form, who is to blame, a file of it.
  std::string examine(std::size_t index, Settings settings, const Finding& finding, std::mutex& lock) {
    const Answer source = isolated(
        [&](const Say&) {
          const Generated made = generated(index);
          return made.story + "\n" + made.model.to_bytes();
        },
        arguments_.limit);
    const auto line = source.text.find('\n');
    if (line == std::string::npos) {
      fmt::print("{}: the generator itself: {}\n", index, source.text + source.death);
      return "the generator";
    }
    const std::string story = source.text.substr(0, line), bytes = source.text.substr(line + 1);
    Model model = Model::from_bytes(std::as_bytes(std::span(bytes)));
    const std::uint64_t seed = seed_of_graph(index);
    if (!finding.mode.empty()) settings.modes = {finding.mode.substr(0, finding.mode.find(' '))};
    const auto same = [&](const Model& candidate, const Settings& with) {
      const Checked checked = checked_apart([&] { return candidate; }, seed, with);
      return checked.finding && checked.finding->kind == finding.kind && checked.finding->mode == finding.mode;
    };
    const std::string first = blamed(settings, [&](const Settings& with) { return same(model, with); });
    const bool known = [&] {
      const std::scoped_lock hold(lock);
      return ++seen_[first + finding.mode] > arguments_.alike;
    }();
    if (known) return first;
    if (!arguments_.no_shrink)
      model = shrunk(
          std::move(model), [&](const Model& candidate) { return same(candidate, settings); }, 250);
    const std::string blame =
        arguments_.no_shrink ? first : blamed(settings, [&](const Settings& with) { return same(model, with); });
    const Checked last = checked_apart([&] { return model; }, seed, settings);
    const std::string what = last.finding ? last.finding->what : finding.what;
    const std::string text =
        fmt::format("# tools/fuzz --seed {} --only {} --modes {}{}\n# {}\n# {} {}: {}\n# to blame: {}\n{}\n",
                    arguments_.seed, index, fmt::join(settings.modes, ","), arguments_.kinds ? " --kinds" : "", story,
                    finding.mode, finding.kind, what, blame, model.to_text());
    const std::scoped_lock hold(lock);
    fs::create_directories(arguments_.out);
    const fs::path stem = arguments_.out / fmt::format("{}-{}", arguments_.seed, index);
    std::ofstream(stem.string() + ".onnxtxt") << text;
    model.save(stem.string() + ".onnx");
    const std::vector<Sample> all = samples(model, seed, arguments_.kinds, true);
    for (std::size_t i = 0; i < all.size(); ++i) write_feeds(fmt::format("{}.{}.npz", stem.string(), i), all[i].feeds);
    fmt::print("\n{}", text);
    return blame;
  }

  /// The pass, and the rule of it, that must run for the failure.
  static std::string blamed(const Settings& settings, const std::function<bool(const Settings&)>& fails) {
    Options options;
    const std::string mode = settings.modes.front();
    if (mode == "raised" || mode == "merged") return "composition";
    if (std::string("types O1 O2 fused fallback inline verified again metamorphic").find(mode) == std::string::npos) {
      options.precision = parse_precision(mode);
      options.max_drop = 100;
    }
    if (mode == "O1") options.level = Level::O1;
    if (mode == "types") return "inference";
    if (settings.modes.size() > 1) return "a crash";
    std::vector<std::string> names;
    std::map<std::string, std::vector<std::string>> rules;
    for (const Stage& stage : stages(options))
      for (const Pass& pass : stage.passes) {
        if (std::find(names.begin(), names.end(), pass.name) == names.end()) names.push_back(pass.name);
        for (const Rule& rule : pass.rules) rules[pass.name].push_back(rule.name);
      }
    Settings with = settings;
    with.disabled = {names.begin(), names.end()};
    if (fails(with)) return "no pass: what reads, infers, writes or runs";
    std::vector<std::string> needed;  // each pass without which it is gone
    for (const std::string& name : names) {
      with.disabled = {name};
      if (!fails(with)) needed.push_back(name);
    }
    std::string text;
    for (const std::string& name : needed) {
      std::string inside;
      for (const std::string& rule : rules[name]) {
        with.disabled = {rule};
        if (!fails(with)) inside += (inside.empty() ? "" : "+") + rule;
      }
      text += (text.empty() ? "" : ", ") + name + (inside.empty() ? "" : "/" + inside);
    }
    return text.empty() ? "several passes, each of them alone" : text;
  }

  void summary(double seconds, std::size_t started) const {
    fmt::print(
        "{} graphs in {:.1f} s ({} started), {} samples, {} refused by the runtime, {} outputs excused as "
        "ill-conditioned, {} samples left open by the runtime, {} repaired by verification, {} "
        "not finished, {} wrong\n",
        tally_.graphs, seconds, started, tally_.samples, tally_.refused, tally_.excused, tally_.left_open,
        tally_.repaired, tally_.unfinished, failures_);
    for (const auto& [blame, count] : tally_.findings) fmt::print("  {:4} {}\n", count, blame);
  }

  const Arguments& arguments_;
  Material material_;
  Settings settings_;
  std::shared_ptr<Runtime> runtime_;
  std::vector<fs::path> files_;
  Tally tally_;
  std::map<std::string, int> seen_;  ///< findings by who is to blame
  int failures_ = 0;
};

int main_of(int argc, char** argv) {
  Arguments arguments;
  arguments.seed = std::random_device{}();
  CLI::App app{"Random models through the optimizer; the original without optimisations is what is right.", "fuzz"};
  app.add_option("--seed", arguments.seed, "everything follows from it (default: a fresh one, which is printed)");
  app.add_option("--count", arguments.count, "how many models (default: 300)");
  app.add_option("--first", arguments.first, "begin with this one, as a run that was stopped would go on");
  app.add_option("--only", arguments.only, "only this one of them, by number");
  app.add_option("--modes", arguments.modes,
                 fmt::format("any of {}, or all (default: the first five, and one of the others)",
                             fmt::join(all_modes(), ", ")))
      ->delimiter(',');
  app.add_flag("--kinds", arguments.kinds, "inputs with NaN and infinities: where results have them is compared");
  app.add_option("--jobs", arguments.jobs, "processes side by side (default: 2)");
  app.add_option("--seconds", arguments.seconds, "begin no further model after this time");
  app.add_option("--limit", arguments.limit, "seconds for one model (default: 60)");
  app.add_option("--failures", arguments.most_failures, "stop after so many (default: 40)");
  app.add_option("--alike", arguments.alike, "how many with the same to blame are made small and written (default: 2)");
  app.add_option("--out", arguments.out, "folder for the failures (default: fuzz-failures)");
  app.add_flag("--show", arguments.show, "print the models");
  app.add_flag("--no-shrink", arguments.no_shrink, "leave failures as large as they are");
  app.add_flag("--check-blocks", arguments.check_blocks, "only say which blocks make no models that run");
  app.add_option("models", arguments.models, "models from elsewhere in place of generated ones");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  if (arguments.modes == std::vector<std::string>{"all"}) arguments.modes = all_modes();
  const bool only_blocks = arguments.check_blocks;
  Fuzzer fuzzer(arguments);
  return only_blocks ? fuzzer.check_blocks() : fuzzer.run();
}

}  // namespace
}  // namespace modelflow::fuzz

int main(int argc, char** argv) {
  try {
    return modelflow::fuzz::main_of(argc, argv);
  } catch (const modelflow::Error& error) {
    fmt::print(stderr, "fuzz: {}\n", error.what());
    return static_cast<int>(error.kind());
  }
}
