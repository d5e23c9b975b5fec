// Whether two results of a random model differ by more than they may.
#include "tests/fuzz/judge.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "modelflow/error.h"
#include "modelflow/modelflow.h"
#include "src/verify/compare.h"
#include "src/verify/exact_spectra.h"
#include "src/verify/probe.h"
#include "tests/fuzz/noise.h"
#include "tests/left_open.h"

namespace modelflow::fuzz {
namespace {

constexpr std::size_t kNoisyRuns = 8;
constexpr std::size_t kRunsBeforeBlame = 64;
constexpr double kMargin = 8;  // eight runs do not meet the worst order of a sum
constexpr double kIllConditioned = 0.01;
constexpr double kNoise = 0.5;  // of the largest: such a result says nothing in 8 bits (1 / x near a zero of x)
constexpr double kMostElements = 1 << 22;  // of a value: more of them tell no more
constexpr double kTiny = 1e-37;            // smaller numbers are 0 to some kernels

double last_digit(DType dtype) {
  return dtype == DType::f64 ? 0x1p-52 : dtype == DType::f16 ? 0x1p-10 : dtype == DType::bf16 ? 0x1p-7 : 0x1p-23;
}

int kind(double x) { return std::isnan(x) ? 1 : std::isinf(x) ? (x > 0 ? 2 : 3) : 0; }

struct Gap {
  double largest = 0, scale = 0;
  std::int64_t kinds = 0, unequal = 0;
  std::size_t at = 0, kind_at = 0;
};

std::vector<double> numbers(const Tensor& tensor) {
  return tensor.dtype() == DType::c64 || tensor.dtype() == DType::c128 || bits(tensor.dtype()) < 8
             ? std::vector<double>()
             : tensor.to_doubles();
}

bool has_endless(const Tensor& tensor) {
  return std::ranges::any_of(numbers(tensor), [](double x) { return kind(x) != 0; });
}

Gap gap(const Tensor& a, const Tensor& b) {
  Gap found;
  const std::vector<double> x = numbers(a), y = numbers(b);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isfinite(x[i])) found.scale = std::max(found.scale, std::abs(x[i]));
    if (kind(x[i]) != kind(y[i])) {
      if (!found.kinds++) found.kind_at = i;
    } else if (kind(x[i]) == 0 && x[i] != y[i]) {
      ++found.unequal;
      if (std::abs(x[i] - y[i]) > found.largest) found.largest = std::abs(x[i] - y[i]), found.at = i;
    }
  }
  return found;
}

std::string dims_text(const Tensor& tensor) {
  return Shape::of(tensor.dims()).str() + " " + std::string(name(tensor.dtype()));
}

bool same_strings(const Tensor& a, const Tensor& b) { return a.dtype() != DType::string || a.strings() == b.strings(); }

std::string at_text(const Tensor& a, const Tensor& b, std::size_t i) {
  char text[120];
  std::snprintf(text, sizeof(text), "element %zu is %.9g, not %.9g", i, b.to_doubles()[i], a.to_doubles()[i]);
  return text;
}

}  // namespace

Judge::Judge(Runtime& runtime, const Model& original, std::uint64_t seed, bool kinds, bool empty)
    : runtime_(runtime), original_(original), kinds_(kinds), runs_(kNoisyRuns) {
  try {
    look_at(inline_functions(original).graph());
    // The transforms of ONNX Runtime in float32 are rougher than ours.
    const Model exact = with_exact_spectra(original).value_or(original);
    const auto session = open_session(runtime, exact, {.threads = 1, .optimize = false});
    for (const auto& [name, type] : session->outputs()) names_.push_back(name);
    random_.assign(names_.size(), false);
    const std::set<std::string> open = kinds ? with_open_kinds(original) : std::set<std::string>();
    for (std::size_t k = 0; k < names_.size(); ++k) random_[k] = open.contains(names_[k]);
    for (Sample& sample : fuzz::samples(original, seed, kinds, empty)) {
      if (outlook(original, sample.feeds).largest > kMostElements) continue;
      try {
        references_.push_back(session->run(sample.feeds));
      } catch (const Error&) {
        continue;
      }
      const std::vector<Tensor> again = session->run(sample.feeds);
      for (std::size_t k = 0; k < again.size(); ++k)
        if (again[k].dtype() != DType::undefined && !again[k].same_content(references_.back()[k])) random_[k] = true;
      samples_.push_back(std::move(sample));
    }
  } catch (const Error&) {
    references_.clear();
    samples_.clear();
  }
}

void Judge::look_at(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    reduces_ = reduces_ || node->op().starts_with("Reduce");
    for (const char* op : {"GRU", "LSTM", "RNN", "Scan", "Loop"}) recurrent_ = recurrent_ || node->is(op);
    for (const Graph* inner : node->subgraphs()) look_at(*inner);
  }
}

/// Random numbers are other ones in each run of a session, and dust is 0 in every second session; where there are no
/// random numbers (see draws.h), others stand in each session.
Judge::Sessions Judge::open(const std::function<Model(std::uint64_t seed)>& noisy) const {
  Sessions sessions;
  for (std::uint64_t i = 0; i < (original_.opset() < 22 ? 2 : runs_); ++i)
    sessions.push_back(open_session(runtime_, noisy(i), {.threads = 1, .optimize = false}));
  return sessions;
}

const std::string& Judge::left_open(std::size_t sample) {
  const auto [known, fresh] = left_open_.try_emplace(sample);
  if (fresh) known->second = modelflow::left_open(runtime_, original_, samples_[sample].feeds);
  return known->second;
}

Judge::Moved Judge::moved(const Sessions& noisy, const Sessions& once, std::size_t sample) const {
  const std::vector<Tensor>& reference = references_[sample];
  Moved result{std::vector<double>(reference.size(), 0), std::vector<bool>(reference.size(), false)};
  for (std::size_t run = 0; run < runs_ + once.size(); ++run) {
    const auto& session = run < runs_ ? noisy[run % noisy.size()] : once[run - runs_];
    const std::vector<Tensor> results = session->run(samples_[sample].feeds);
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (reference[k].dims() != results[k].dims()) {
        result.kinds[k] = true;
        continue;
      }
      if (reference[k].dtype() == DType::undefined || reference[k].dtype() == DType::string) continue;
      const Gap g = gap(reference[k], results[k]);
      result.by[k] = std::max(result.by[k], g.largest);
      if (g.kinds || (!is_float(reference[k].dtype()) && g.unequal)) result.kinds[k] = true;
    }
  }
  return result;
}

const Judge::Moved& Judge::rounding(std::size_t sample) {
  if (const auto found = rounding_.find(sample); found != rounding_.end()) return found->second;
  Moved result{std::vector<double>(names_.size(), 0), std::vector<bool>(names_.size(), false)};
  try {
    if (noisy_.empty()) noisy_ = open([&](std::uint64_t seed) { return with_noise(original_, 2, seed); });
    result = moved(noisy_, {}, sample);
  } catch (const Error& error) {  // no excuse then
    no_noise_ = error.what();
  }
  return rounding_[sample] = result;
}

void Judge::forget_noise() {
  noisy_.clear(), rounding_.clear();
  coarse_.clear(), in_steps_.clear(), coarse_moved_.clear();
}

std::string Judge::certain(const std::function<std::string()>& found) {
  const int excused = excused_;
  if (found().empty()) return "";
  excused_ = excused;
  runs_ = kRunsBeforeBlame;
  forget_noise();
  const std::string still = found();
  runs_ = kNoisyRuns;
  forget_noise();
  return still;
}

std::string Judge::difference(std::size_t sample, const std::vector<Tensor>& results) {
  return certain([&] { return difference_now(sample, results); });
}

std::string Judge::coarse_difference(std::size_t sample, const std::vector<Tensor>& results, double share) {
  return certain([&] { return coarse_difference_now(sample, results, share); });
}

std::string Judge::difference_now(std::size_t sample, const std::vector<Tensor>& results) {
  const std::vector<Tensor>& reference = references_[sample];
  if (results.size() != reference.size()) return "the number of outputs has changed";
  for (std::size_t k = 0; k < results.size(); ++k) {
    const Tensor &a = reference[k], &b = results[k];
    if (random_[k] || a.dtype() == DType::undefined) continue;
    const std::string where = "output '" + names_[k] + "' " + dims_text(a) + ": ";
    if (a.elements() == 0 && (b.elements() == 0 || reduces_) && a.dtype() == b.dtype())
      continue;  // ONNX Runtime gets such shapes wrong
    if (a.dtype() != b.dtype() || (a.dims() != b.dims() && !rounding(sample).kinds[k]))
      return where + "is " + dims_text(b);
    if (a.dims() != b.dims()) continue;
    if (!same_strings(a, b)) return where + "strings differ";
    if (a.dtype() == DType::string) continue;
    const Gap g = gap(a, b);
    if (g.kinds && !rounding(sample).kinds[k])
      return where + at_text(a, b, g.kind_at) + " (" + std::to_string(g.kinds) + " of another kind)";
    if (kinds_ || g.unequal == 0) continue;
    if (!is_float(a.dtype())) {
      if (!rounding(sample).kinds[k]) return where + at_text(a, b, g.at) + no_noise_;
      ++excused_;
      continue;
    }
    const double least = (recurrent_ ? 8 : 2) * last_digit(a.dtype()) * scale_of(g.scale);
    if (g.largest <= least + kTiny) continue;
    const double by = rounding(sample).by[k];
    if (g.largest > kMargin * by + least)
      return where + at_text(a, b, g.at) + " (largest " + std::to_string(g.scale) + ", rounding moves " +
             std::to_string(by / g.scale * 0x1p23) + " digits)" + no_noise_;
    if (by > kIllConditioned * g.scale) ++excused_;
  }
  return "";
}

std::string Judge::coarse_difference_now(std::size_t sample, const std::vector<Tensor>& results, double share) {
  const std::vector<Tensor>& reference = references_[sample];
  if (results.size() != reference.size()) return "the number of outputs has changed";
  // One step for a whole tensor in which anything is NaN or infinite makes all of it so.
  const bool is_endless = std::ranges::any_of(reference, has_endless);
  for (std::size_t k = 0; k < results.size(); ++k) {
    const Tensor &a = reference[k], &b = results[k];
    if (random_[k] || a.dtype() == DType::undefined || a.dtype() == DType::string) continue;
    const std::string where = "output '" + names_[k] + "' " + dims_text(a) + ": ";
    if (a.dtype() != b.dtype()) return where + "is " + dims_text(b);
    if (a.dims() == b.dims() && (gap(a, b).largest <= 1e-6 * gap(a, b).scale) && !gap(a, b).kinds) continue;
    if (coarse_share_ != share) coarse_.clear(), in_steps_.clear(), coarse_moved_.clear();  // of another precision
    auto found = coarse_moved_.find(sample);
    if (found == coarse_moved_.end()) {
      if (coarse_.empty()) {
        coarse_ = open([&](std::uint64_t seed) { return with_coarse_products(original_, share, seed, false); });
        for (const double size : {0.5, 1.0, 2.0}) {  // where a step ends decides which numbers become 0
          const Model in_steps = with_coarse_products(original_, size * share, 1, true);
          in_steps_.push_back(open_session(runtime_, in_steps, {.threads = 1, .optimize = false}));
        }
      }
      coarse_share_ = share;
      found = coarse_moved_.emplace(sample, moved(coarse_, in_steps_, sample)).first;
    }
    // What rounding in float32 moves, 8 bits of the model's own say, lower precision may move as well.
    const Moved& fine = rounding(sample);
    if (found->second.kinds[k] || fine.kinds[k]) continue;
    if (a.dims() != b.dims()) return where + "is " + dims_text(b);
    const Gap g = gap(a, b);
    if (g.kinds && is_endless) {
      ++excused_;
      continue;
    }
    if (g.kinds) return where + at_text(a, b, g.kind_at);
    const double by = std::max(found->second.by[k], fine.by[k]);
    if (by > kNoise * g.scale) {
      ++excused_;
      continue;
    }
    if (is_float(a.dtype()) &&
        g.largest > kTiny + kMargin * by + (1e-4 + 4 * last_digit(a.dtype())) * scale_of(g.scale))
      return where + at_text(a, b, g.at) + " (coarse products move " + std::to_string(by) + ", largest " +
             std::to_string(g.scale) + ")";
  }
  return "";
}

}  // namespace modelflow::fuzz
