// Sessions that run at the same time, and what comes out of them.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>

#include "modelflow/serve.h"
#include "src/core/stopwatch.h"
#include "src/measure/sides.h"

namespace modelflow {
namespace {

/// One session, kept busy by a thread of its own.
struct Stream {
  std::unique_ptr<Session> session;
  std::vector<double> seconds = {};  ///< of each run
  std::exception_ptr error = nullptr;

  void run(const Feeds& feeds, double duration, const std::atomic<bool>& go) {
    try {
      while (!go) std::this_thread::yield();
      for (const Stopwatch watch; seconds.empty() || watch.seconds() < duration;)
        seconds.push_back(session->timed_run(feeds));
    } catch (...) {
      error = std::current_exception();
    }
  }
};

/// Seconds from the common start to the end of the last run.
double run_all(std::vector<Stream>& streams, const Feeds& feeds, double duration) {
  std::atomic<bool> go = false;
  std::vector<std::jthread> threads;
  threads.reserve(streams.size());
  try {
    for (Stream& stream : streams) threads.emplace_back([&] { stream.run(feeds, duration, go); });
  } catch (const std::system_error& error) {
    go = true;  // for those that are there already
    throw Error(ErrorKind::limit,
                fmt::format("no {} threads can run at once ({}): ask for fewer", streams.size(), error.what()));
  }
  const Stopwatch watch;
  go = true;
  for (std::jthread& thread : threads) thread.join();
  const double took = watch.seconds();
  for (const Stream& stream : streams)
    if (stream.error) std::rethrow_exception(stream.error);
  return took;
}

double at_percent(const std::vector<double>& sorted, double percent) {
  const auto rank = static_cast<std::size_t>(percent / 100 * static_cast<double>(sorted.size()));
  return sorted[std::min(rank, sorted.size() - 1)];
}

}  // namespace

std::vector<Split> splits_of(int threads) {
  std::vector<Split> splits;
  for (int streams = 1; streams <= threads; ++streams)
    if (threads % streams == 0) splits.push_back({streams, threads / streams});
  return splits;
}

Load measure_load(Runtime& runtime, const Served& served, const Split& split, const Feeds& feeds, double seconds) {
  Load load{.split = split};
  const SessionOptions options{.threads = split.threads, .plugin = served.plugin};
  load.memory_bytes = growth_of_memory([&] {
    std::vector<Stream> streams;
    for (int i = 0; i < split.streams; ++i) {
      streams.push_back({runtime.load(served.model, options)});
      for (int warm = 0; warm < 2; ++warm) streams.back().session->timed_run(feeds);
    }
    const double took = run_all(streams, feeds, seconds);
    std::vector<double> all;
    for (const Stream& stream : streams) all.insert(all.end(), stream.seconds.begin(), stream.seconds.end());
    std::ranges::sort(all);
    load.runs = all.size();
    load.runs_per_second = static_cast<double>(all.size()) / took;
    load.p50_ms = at_percent(all, 50) * 1e3;
    load.p99_ms = at_percent(all, 99) * 1e3;
  });
  return load;
}

const Load& best_of(const std::vector<Load>& loads) {
  constexpr double kAsGood = 0.97;
  const Load* best = &*std::ranges::max_element(loads, {}, &Load::runs_per_second);
  const double enough = kAsGood * best->runs_per_second;
  for (const Load& load : loads)
    if (load.runs_per_second >= enough && load.p99_ms < best->p99_ms) best = &load;
  return *best;
}

}  // namespace modelflow
