// Mutants judged by workers in processes of their own.
#include "tests/obligations/campaign.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tests/obligations/mutation.h"

extern "C" [[gnu::weak]] void __asan_init();  // there with AddressSanitizer, whose shadow takes terabytes of addresses

namespace modelflow::obligations {
namespace {

using Number = unsigned long long;
constexpr unsigned kLongest = 20;  // seconds of CPU time of one mutant: a Loop may have been told to run for ever
constexpr rlim_t kMostMemory = 6ULL << 30;  // an Expand may have been told to be huge
constexpr int kTimeOver = 0, kCrashed = 1;

/// What a worker shares with the process that started it.
struct Progress {
  Number next;
  int work;
  double cpu_seconds;
};

struct Mutant {
  std::size_t seed = 0;
  std::string change;
  Model model;
};

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Numbers to mutants: first every seed as it is; then changes in order, or drawn ones.
class Source {
 public:
  explicit Source(const Plan& plan) : plan_(plan), counts_(plan.seeds.size()) {}
  /// False behind the last.
  bool make(Number number, Mutant& mutant) {
    const std::size_t count = plan_.seeds.size();
    mutant.seed = number % count;
    mutant.change.clear();
    if (plan_.every && number >= count) return listed(number - count, mutant);
    mutant.model = plan_.seeds[mutant.seed].model;
    if (number < count) return true;
    std::mt19937_64 random(plan_.seed * 1'000'003 + number);
    const Number kind = random() % 10;
    for (int left = kind < 5 ? 1 : kind < 8 ? 2 : 3; left > 0; --left) {
      const Mutations all = mutations(mutant.model);
      if (all.empty()) break;
      change(all[random() % all.size()], mutant);
    }
    return true;
  }

 private:
  bool listed(Number rest, Mutant& mutant) {
    for (mutant.seed = 0; mutant.seed < plan_.seeds.size(); ++mutant.seed) {
      const Model& model = plan_.seeds[mutant.seed].model;
      if (!counts_[mutant.seed]) counts_[mutant.seed] = mutations(model).size();
      if (rest < counts_[mutant.seed]) break;
      rest -= counts_[mutant.seed];
    }
    if (mutant.seed == plan_.seeds.size()) return false;
    if (at_ != mutant.seed) all_ = mutations(plan_.seeds[mutant.seed].model);
    at_ = mutant.seed;
    mutant.model = plan_.seeds[mutant.seed].model;
    change(all_[rest], mutant);
    return true;
  }
  static void change(const Mutation& mutation, Mutant& mutant) {
    const Model before = mutant.model;
    try {
      mutation.apply(mutant.model);
      if (!settle(mutant.model)) mutant.model = Model();
    } catch (const std::exception&) {  // it does not fit: nothing is left to try
      mutant.model = Model();
    }
    mutant.change += (mutant.change.empty() ? "" : "; ") + mutation.what;
  }

  const Plan& plan_;
  std::vector<std::size_t> counts_;
  std::size_t at_ = SIZE_MAX;
  Mutations all_;
};

/// Ends the process behind so much time of its own, or ten times that by the clock; 0: it may go on.
void limit_time(unsigned seconds) {
  const itimerval own{{}, {static_cast<time_t>(seconds), 0}};
  setitimer(ITIMER_PROF, &own, nullptr);
  alarm(10 * seconds);
}

class Worker {
 public:
  Worker(const Plan& plan, int index, Progress& progress, const std::filesystem::path& file)
      : plan_(plan), index_(index), progress_(progress), out_(file, std::ios::app) {}

  int run() {
    signal(SIGALRM, SIG_DFL);
    const rlimit memory{kMostMemory, kMostMemory};
    if (!__asan_init) setrlimit(RLIMIT_AS, &memory);
    Judge judge(Runtime::find(), [this](Work work) { progress_.work = static_cast<int>(work); });
    Source source(plan_);
    const double before = progress_.cpu_seconds;
    Mutant mutant;
    for (;; progress_.next += static_cast<Number>(plan_.jobs)) {
      const Number number = progress_.next;
      progress_.cpu_seconds = before + cpu_seconds();
      const bool first_round = number < plan_.seeds.size();
      if (plan_.seconds > 0 && !first_round && progress_.cpu_seconds > plan_.seconds / plan_.jobs) break;
      if (static_cast<int>(number % static_cast<Number>(plan_.jobs)) != index_) continue;
      limit_time(kLongest);
      progress_.work = static_cast<int>(Work::passes);
      if (!source.make(number, mutant)) break;
      tell(number, mutant, one(judge, number, mutant));
      limit_time(0);
      if (plan_.only >= 0) break;
    }
    return kTimeOver;
  }

 private:
  Judgement one(Judge& judge, Number number, const Mutant& mutant) const {
    if (mutant.model.graph().outputs().empty()) return {};
    const bool whole = plan_.every || plan_.only >= 0 || number < plan_.seeds.size() || number % 3 == 0;
    return judge.judge(plan_.seeds[mutant.seed], mutant.model, whole, number);
  }
  void tell(Number number, const Mutant& mutant, const Judgement& judgement) {
    nlohmann::json line = {{"kind", static_cast<int>(judgement.kind)}, {"hits", judgement.hits}};
    if (judgement.kind == Judgement::Kind::wrong)
      line.update({{"mutant", number},
                   {"seed", plan_.seeds[mutant.seed].name},
                   {"change", mutant.change},
                   {"why", judgement.why},
                   {"text", judgement.what}});
    out_ << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  }

  const Plan& plan_;
  int index_;
  Progress& progress_;
  std::ofstream out_;
};

void count(const std::filesystem::path& file, Tally& tally) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
    if (entry.is_discarded()) continue;  // written by a process that died
    ++tally.tried;
    const auto kind = static_cast<Judgement::Kind>(entry["kind"].get<int>());
    tally.invalid += kind == Judgement::Kind::invalid;
    tally.fired += kind != Judgement::Kind::unchanged && kind != Judgement::Kind::invalid;
    tally.compared += kind == Judgement::Kind::equal || kind == Judgement::Kind::wrong;
    for (const auto& [name, times] : entry["hits"].items()) ++tally.hits[name];
    if (kind == Judgement::Kind::wrong)
      tally.findings.push_back({entry["mutant"], entry["seed"], entry["change"], entry["why"], entry["text"]});
  }
}

/// A worker died: whose fault it was, and what it tried.
void mourn(const Plan& plan, const Progress& progress, int status, Tally& tally) {
  const auto work = static_cast<Work>(progress.work);
  if (work == Work::original) {
    ++tally.died_in_original;
    return;
  }
  Source source(plan);
  Mutant mutant;
  source.make(progress.next, mutant);
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  const std::string what =
      signal == SIGALRM || signal == SIGPROF ? "takes for ever" : "dies of signal " + std::to_string(signal);
  const std::string why = std::string(work == Work::passes ? "a pass " : "the result ") + what;
  tally.findings.push_back(
      {progress.next, plan.seeds[mutant.seed].name, mutant.change, why, why + "\n" + mutant.model.to_text()});
}

pid_t start(const Plan& plan, int index, Progress& progress, const std::filesystem::path& file) {
  const pid_t child = fork();
  if (child != 0) return child;
  int code = kCrashed;
  try {
    code = Worker(plan, index, progress, file).run();
  } catch (const std::exception& error) {
    std::cerr << "obligations: " << error.what() << "\n";
  }
  std::_Exit(code);
}

}  // namespace

Tally run(const Plan& plan) {
  Tally tally;
  const auto jobs = static_cast<std::size_t>(plan.jobs);
  auto* progress = static_cast<Progress*>(
      mmap(nullptr, jobs * sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::map<pid_t, std::size_t> workers;
  std::vector<std::filesystem::path> files;
  const auto begin = [&](std::size_t i) { workers[start(plan, static_cast<int>(i), progress[i], files[i])] = i; };
  for (std::size_t i = 0; i < jobs; ++i) {
    progress[i] = {plan.only >= 0 ? static_cast<Number>(plan.only) : i, 0, 0};
    files.push_back(std::filesystem::temp_directory_path() /
                    ("modelflow-obligations-" + std::to_string(getpid()) + "-" + std::to_string(i)));
    begin(i);
  }
  while (!workers.empty()) {
    int status = 0;
    const pid_t ended = wait(&status);
    const auto worker = workers.find(ended);
    if (worker == workers.end()) break;
    const std::size_t i = worker->second;
    workers.erase(worker);
    if (WIFEXITED(status) && WEXITSTATUS(status) == kTimeOver) continue;
    mourn(plan, progress[i], status, tally);
    progress[i].next += jobs;
    if (plan.only < 0) begin(i);
  }
  for (const std::filesystem::path& file : files) {
    count(file, tally);
    std::filesystem::remove(file);
  }
  munmap(progress, jobs * sizeof(Progress));
  return tally;
}

}  // namespace modelflow::obligations
