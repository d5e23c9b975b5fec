// Choices of a domain combined into cases.
#include "tests/domains/cases.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "backends/ops/activation_body.h"

namespace modelflow::domains {
namespace {

/// Axes of the domain and the one of special numbers, by which they are drawn.
std::vector<std::size_t> sizes(const Domain& domain) {
  std::vector<std::size_t> sizes;
  for (const Axis& axis : domain.axes) sizes.push_back(axis.values.size());
  sizes.push_back(1 + domain.specials.size());
  return sizes;
}

Chosen chosen(const Case& which) {
  const Domain& domain = *which.domain;
  Chosen chosen;
  for (std::size_t i = 0; i < domain.axes.size(); ++i)
    chosen.set(domain.axes[i].name, domain.axes[i].values[which.choices[i]]);
  return chosen;
}

Special special(const Case& which) {
  const std::size_t i = which.choices.back();
  return i == 0 ? Special::none : which.domain->specials[i - 1];
}

/// The attributes that axes are named after, and what goes with an activation.
Attrs attributes(const FusedOp& op, const Chosen& chosen) {
  Attrs attrs = op.defaults;
  for (const auto& [name, value] : chosen.all())
    if (attrs.has(name)) attrs.set(name, value);
  if (!attrs.has("alpha") || !attrs.has("activation")) return attrs;
  const std::string activation = attrs.text("activation");
  for (const auto& [name, value] : ops::activation_sample(activation)) attrs.set(name, value);
  if (chosen.is("post") && activation != "None") attrs.set("post_scale", 1.5f).set("post_shift", -0.25f);
  return attrs;
}

/// Two choices that stand together.
struct Pair {
  std::size_t axis, choice, other_axis, other_choice;
  auto operator<=>(const Pair&) const = default;
};

class Covering {
 public:
  Covering(const Domain& domain, std::uint64_t seed) : domain_(domain), sizes_(sizes(domain)), random_(seed) {
    for (std::size_t i = 0; i < sizes_.size(); ++i)
      for (std::size_t j = i + 1; j < sizes_.size(); ++j)
        for (std::size_t a = 0; a < sizes_[i]; ++a)
          for (std::size_t b = 0; b < sizes_[j]; ++b) left_.insert({i, a, j, b});
  }

  Case random() {
    Case drawn{.domain = &domain_, .choices = {}};
    for (const std::size_t size : sizes_) drawn.choices.push_back(random_() % size);
    if (random_() % 2) drawn.choices.back() = 0;  // half of them with usual numbers
    drawn.seed = random_();
    return drawn;
  }

  /// The best of some cases with a pair that is left; nothing when no pair is.
  std::optional<Case> next() {
    while (!left_.empty()) {
      const Pair wanted = *left_.begin();
      std::optional<Case> best;
      std::size_t most = 0;
      for (int i = 0; i < kCandidates; ++i) {
        Case candidate = random();
        candidate.choices[wanted.axis] = wanted.choice;
        candidate.choices[wanted.other_axis] = wanted.other_choice;
        const std::size_t fresh = covers(candidate, false);
        if (fresh <= most || !made(candidate)) continue;
        most = fresh;
        best = std::move(candidate);
      }
      if (best) {
        covers(*best, true);
        return best;
      }
      left_.erase(left_.begin());  // contradicts itself, whatever stands beside it
    }
    return {};
  }

 private:
  static constexpr int kCandidates = 24;

  std::size_t covers(const Case& which, bool take) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < sizes_.size(); ++i)
      for (std::size_t j = i + 1; j < sizes_.size(); ++j) {
        const Pair pair{i, which.choices[i], j, which.choices[j]};
        count += take ? left_.erase(pair) : left_.count(pair);
      }
    return count;
  }

  const Domain& domain_;
  std::vector<std::size_t> sizes_;
  std::mt19937_64 random_;
  std::set<Pair> left_;
};

}  // namespace

std::unique_ptr<Operands> made(const Case& which) {
  const Domain& domain = *which.domain;
  const FusedOp& op = *find_fused_op(domain.op);
  const Chosen choice = chosen(which);
  auto operands = std::make_unique<Operands>(which.seed, special(which));
  operands->call.op = domain.op;
  operands->call.attrs = attributes(op, choice);
  if (!domain.make(choice, *operands) || !op.infer(operands->call)) return nullptr;
  Call& call = operands->call;
  for (std::size_t i = 0; i < call.outputs.size(); ++i) call.outputs[i].name = "y" + (i ? std::to_string(i) : "");
  return operands;
}

std::string describe(const Case& which) {
  constexpr const char* kSpecials[] = {"none", "nan", "infinite", "huge", "largest", "tiny"};
  std::string text = which.domain->op + ":";
  const Chosen choice = chosen(which);
  for (const auto& [name, value] : choice.all()) {
    text += " " + name + "=";
    if (const auto* word = std::get_if<std::string>(&value)) text += *word;
    if (const auto* number = std::get_if<std::int64_t>(&value)) text += std::to_string(*number);
    if (const auto* real = std::get_if<float>(&value)) text += std::to_string(*real);
  }
  return text + " special=" + kSpecials[static_cast<int>(special(which))] + " seed=" + std::to_string(which.seed);
}

std::vector<Case> cases(std::string_view op, const Plan& plan) {
  const Target host = Target::host();
  std::vector<Covering> coverings;
  for (const Domain& domain : all_domains())
    if (domain.op == op) coverings.emplace_back(domain, plan.seed);
  std::vector<Case> drawn;
  std::map<const Kernel*, std::size_t> missing;
  for (const Kernel* kernel : kernels())
    if (kernel->op == op) missing[kernel] = plan.per_kernel;
  const auto keep = [&](Case&& which, bool only_if_missing) {
    const std::unique_ptr<Operands> operands = made(which);
    if (!operands) return;
    bool wanted = !only_if_missing;
    for (auto& [kernel, count] : missing) {
      if (count == 0 || !kernel->accepts(operands->call, host)) continue;
      --count;
      wanted = true;
    }
    if (wanted) drawn.push_back(std::move(which));
  };
  for (Covering& covering : coverings) {
    while (std::optional<Case> next = covering.next()) keep(std::move(*next), false);
    if (&covering != &coverings.front()) continue;
    for (std::size_t tries = 0; drawn.size() < plan.least && tries < 10 * plan.least; ++tries)
      keep(covering.random(), false);
  }
  constexpr std::size_t kTries = 20'000;
  const auto any_missing = [&] {
    return std::ranges::any_of(missing, [](const auto& each) { return each.second > 0; });
  };
  for (std::size_t tries = 0; tries < kTries && any_missing(); ++tries)
    keep(coverings[tries % coverings.size()].random(), true);
  return drawn;
}

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace modelflow::domains
