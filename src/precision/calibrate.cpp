// Samples run through the model, their values shown to observers in memory that is bounded.
#include "src/precision/calibrate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "src/precision/intermediates.h"
#include "src/precision/observer.h"
#include "src/precision/samples.h"
#include "src/verify/compare.h"

namespace modelflow {
namespace {

using Clock = std::chrono::steady_clock;
using Names = std::vector<std::string>;

/// Calls body(0) .. body(count - 1), which must not throw, on some threads.
void for_each(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& body) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) body(i);
  };
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < std::min(threads, count); ++i) others.emplace_back(work);
  work();
}

class Calibration {
 public:
  Calibration(const Sessions& sessions, const Model& model, const Options& options, const std::filesystem::path& plugin,
              Report& report)
      : sessions_(sessions), model_(model), options_(options), report_(report) {
    session_ = {.threads = options.threads, .config = {{"session.force_spinning_stop", "1"}}};
    if (uses_our_domain(model)) session_.plugin = plugin;
    const bool both = options.observer == Observer::automatic;
    for (const Observer how : both ? std::vector{Observer::mse, Observer::minmax} : std::vector{options.observer})
      found_.push_back({how, {}});
    threads_ = options.threads > 0 ? static_cast<std::size_t>(options.threads)
                                   : std::max(1U, std::thread::hardware_concurrency());
  }

  std::vector<ObservedRanges> run(const Names& values) {
    const std::vector<Names> groups = groups_of(computed(values));
    std::size_t samples = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::size_t seen = observe(groups[i], static_cast<double>(i) / static_cast<double>(groups.size()),
                                       static_cast<double>(i + 1) / static_cast<double>(groups.size()));
      samples = i == 0 ? seen : std::min(samples, seen);
    }
    if (!report_.quantization) report_.quantization.emplace();
    report_.quantization->samples = samples;
    return std::move(found_);
  }

 private:
  /// What `body` throws names the sample.
  template <class Body>
  static auto of_sample(std::size_t index, Body body) {
    try {
      return body();
    } catch (const Error& error) {
      throw Error(ErrorKind::usage, error.what()).within("calibration sample " + std::to_string(index));
    }
  }

  /// Takes what needs no run into the ranges; returns the rest.
  Names computed(const Names& values) {
    Names rest;
    for (const std::string& name : values) {
      const Value* value = model_.graph().find(name);
      if (!value) throw Error(ErrorKind::internal, "no such value in the main graph").within("'" + name + "'");
      if (value->dtype() != DType::undefined && value->dtype() != DType::f32) continue;
      if (const Tensor* constant = value->constant())
        keep(name, see_one(*constant));
      else
        rest.push_back(name);
    }
    return rest;
  }

  ValueObserver see_one(const Tensor& tensor) const {
    ValueObserver observer(options_.observer);
    see(observer, tensor);
    return observer;
  }

  static void see(ValueObserver& observer, const Tensor& tensor) {
    if (tensor.dtype() == DType::f32 && tensor.rank() > 0) observer.see(tensor.as<float>());
  }

  void keep(const std::string& name, const ValueObserver& observer) {
    for (ObservedRanges& found : found_)
      if (const auto range = observer.range_as(found.observer)) found.ranges[name] = *range;
    if (observer.skipped() > 0)
      report_.notes.push_back("calibration: value '" + name + "' has " + std::to_string(observer.skipped()) +
                              " NaN or infinite elements, left out");
    if (observer.beyond_bytes())
      report_.notes.push_back("calibration: value '" + name +
                              "' stays in float32: it holds numbers that stand for infinity, and steps that reach them "
                              "leave nothing of the others");
  }

  std::vector<Names> groups_of(const Names& values) const {
    const Feeds sample = *calibration_sample(model_, options_, 0);  // also says at once when there is no data
    return of_sample(0, [&] { return groups_in_memory(sessions_, model_, values, sample, session_); });
  }

  /// A graph input: as the sample has it, else its default.
  const Tensor& fed(const Feeds& sample, const std::string& name) const {
    const auto found = sample.find(name);
    return found != sample.end() ? found->second : *model_.graph().find(name)->initializer();
  }

  /// Goes through the samples until the share `until` of the time is used up; returns their number.
  std::size_t observe(const Names& names, double done, double until) {
    const auto session = open_session(sessions_, with_outputs(model_, names), session_);
    std::map<std::string, std::size_t, std::less<>> place;
    for (const auto& [name, type] : session->outputs()) place.emplace(name, place.size());
    std::vector<ValueObserver> observers(names.size(), ValueObserver(options_.observer));
    std::size_t index = 0;
    for (auto sample = calibration_sample(model_, options_, 0); sample;
         sample = calibration_sample(model_, options_, index)) {
      if (options_.progress) options_.progress("calibrate: sample " + std::to_string(index + 1), done);
      const std::vector<Tensor> results = of_sample(index, [&] { return session->run(*sample); });
      for_each(names.size(), threads_, [&](std::size_t i) {
        if (const auto output = place.find(names[i]); output != place.end())
          see(observers[i], results[output->second]);
        else
          see(observers[i], fed(*sample, names[i]));
      });
      ++index;
      if (seconds() > until * options_.max_seconds) {
        if (calibration_sample(model_, options_, index))
          report_.notes.push_back("calibration stopped after " + std::to_string(index) +
                                  " samples: the time allowed (max_seconds) was used up");
        break;
      }
    }
    for (std::size_t i = 0; i < names.size(); ++i) keep(names[i], observers[i]);
    return index;
  }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  Sessions sessions_;
  const Model& model_;
  const Options& options_;
  Report& report_;
  SessionOptions session_;
  std::size_t threads_ = 1;
  Clock::time_point start_ = Clock::now();
  std::vector<ObservedRanges> found_;
};

}  // namespace

std::vector<ObservedRanges> calibrate(const Sessions& sessions, const Model& runnable,
                                      const std::vector<std::string>& values, const Options& options,
                                      const std::filesystem::path& plugin, Report& report) {
  return Calibration(sessions, runnable, options, plugin, report).run(values);
}

}  // namespace modelflow
