// A merged model run beside its parts, one after the other.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "modelflow/compose.h"
#include "modelflow/modelflow.h"
#include "modelflow/random.h"
#include "modelflow/weights.h"
#include "src/core/stopwatch.h"
#include "src/verify/difference.h"
#include "src/verify/open_results.h"
#include "src/verify/reference.h"

namespace modelflow {
namespace {

constexpr double kSeconds = 2;  // for feeds behind the first
constexpr std::size_t kMostFeeds = 4;

/// Results of parts and inputs of the whole, by what they are called in the whole.
using Values = std::map<std::string, Tensor>;

SessionOptions session_options(const Options& options) { return {.threads = options.threads, .optimize = false}; }

void tell(const Options& options, double done) {
  if (options.progress) options.progress("compare with the parts in turn", done);
}

class InTurn {
 public:
  InTurn(Runtime& runtime, const std::vector<Part>& parts, const Merged& merged, const Options& options)
      : parts_(parts) {
    for (const std::vector<Joint>* joints : {&merged.inputs, &merged.edges, &merged.outputs})
      for (const Joint& joint : *joints) {
        names_[joint.from] = joint.name;
        for (const std::string& to : joint.to) taken_[to] = joint.name;
      }
    for (const Part& part : parts) sessions_.push_back(open_session(runtime, taking(part), session_options(options)));
  }

  /// False where no order of the parts will do.
  bool run(Values& values) {
    std::set<std::size_t> left;
    for (std::size_t i = 0; i < parts_.size(); ++i) left.insert(i);
    while (!left.empty()) {
      const auto ready = std::ranges::find_if(left, [&](std::size_t i) { return is_ready(i, values); });
      if (ready == left.end()) return false;
      run(*ready, values);
      left.erase(ready);
    }
    return true;
  }

 private:
  /// What the whole calls the value that an input takes; null for weights, which take none.
  const std::string* taken(const Part& part, const Value& input) const {
    const auto found = taken_.find(part.name + "." + input.name());
    return found == taken_.end() ? nullptr : &found->second;
  }

  /// Before IR 4 ONNX Runtime lets nobody give a weight; an edge may.
  Model taking(const Part& part) const {
    Model model = part.model;
    std::set<const Value*> given;
    for (const Value* input : model.graph().inputs())
      if (taken(part, *input)) given.insert(input);
    unlist_weights(model.graph(), model.ir_version, given);
    model.ir_version = std::max<std::int64_t>(model.ir_version, 4);
    return model;
  }

  bool is_ready(std::size_t part, const Values& values) const {
    return std::ranges::all_of(parts_[part].model.graph().inputs(), [&](const Value* input) {
      const std::string* name = taken(parts_[part], *input);
      return !name || values.contains(*name);
    });
  }

  void run(std::size_t part, Values& values) {
    Feeds feeds;
    for (const Value* input : parts_[part].model.graph().inputs())
      if (const std::string* name = taken(parts_[part], *input)) feeds[input->name()] = values.at(*name);
    const std::vector<Tensor> results = sessions_[part]->run(feeds);
    const auto& outputs = parts_[part].model.graph().outputs();
    for (std::size_t i = 0; i < outputs.size(); ++i)
      values[names_.at(parts_[part].name + "." + outputs[i]->name())] = results[i];
  }

  const std::vector<Part>& parts_;
  std::map<std::string, std::string> names_, taken_;  ///< "part.output" and "part.input" to names of the whole
  std::vector<std::unique_ptr<Session>> sessions_;
};

/// What the parts give in turn, on the first feeds that they take, and the outputs that another run makes others.
struct Expected {
  std::vector<Feeds> feeds = {};
  std::vector<Values> values = {};
  std::set<std::string> random = {};
};

void compare(const Merged& merged, const Expected& expected, std::size_t feed, const std::vector<Tensor>& results,
             MergeCheck& check) {
  for (std::size_t i = 0; i < merged.outputs.size(); ++i) {
    const std::string& name = merged.outputs[i].name;
    const OutputDiff diff = difference(name, expected.values[feed].at(name), results[i], kTolerance);
    if (!diff.ok && expected.random.contains(name)) check.random.insert(name);
    if (check.random.contains(name)) continue;
    check.max_rel = std::max(check.max_rel, diff.max_rel);
    if (!diff.ok)
      throw Error(ErrorKind::verification,
                  "the merged model is not its parts in turn: output '" + name + "' " + describe(diff));
  }
}

/// What there is before any part has run.
Values given_values(const Merged& merged, const Feeds& feeds) {
  Values values(feeds.begin(), feeds.end());
  for (const Value* input : merged.model.graph().inputs())
    if (input->is_initializer()) values.emplace(input->name(), *input->initializer());
  return values;
}

bool reads(const Node& node, const std::set<const Value*>& values) {
  const auto is_read = [&](const Value* input) { return values.contains(input); };
  if (std::ranges::any_of(node.inputs(), is_read)) return true;
  return std::ranges::any_of(node.subgraphs(), [&](const Graph* inner) {
    return any_node(*inner, [&](const Node& each) { return reads(each, values); }) ||
           std::ranges::any_of(inner->outputs(), is_read);
  });
}

/// Two runs may draw numbers from which an output of few values, such as a comparison, comes out the same.
std::set<std::string> outputs_behind_draws(const Model& model) {
  std::set<const Value*> drawn;
  for (const auto& node : model.graph().nodes()) {
    const bool draws_itself = !node->attrs.has("seed") && draws(*node, &model);
    if (draws_itself || reads(*node, drawn)) drawn.insert(node->outputs().begin(), node->outputs().end());
  }
  drawn.erase(nullptr);
  std::set<std::string> names;
  for (const Value* output : model.graph().outputs())
    if (drawn.contains(output)) names.insert(output->name());
  return names;
}

/// Without a seed in the file ONNX Runtime takes one by the place of the node, which is another in the whole. Custom
/// operators tell by their results alone.
std::set<std::string> random_outputs(InTurn& in_turn, const std::vector<Part>& parts, const Merged& merged,
                                     const Expected& expected) {
  std::set<std::string> random = outputs_behind_draws(merged.model);
  const auto may_vary = [](const Part& part) {
    return draws(part.model.graph(), &part.model) || any_node(part.model.graph(), is_foreign);
  };
  if (std::ranges::none_of(parts, may_vary)) return random;
  for (std::size_t i = 0; i < expected.feeds.size(); ++i) {
    Values again = given_values(merged, expected.feeds[i]);
    in_turn.run(again);
    for (const Joint& output : merged.outputs)
      if (!difference("", expected.values[i].at(output.name), again.at(output.name), 0).ok) random.insert(output.name);
  }
  return random;
}

Expected run_parts(Runtime& runtime, const std::vector<Part>& parts, const Merged& merged, const Options& options,
                   std::string& why_not) {
  const Stopwatch watch;
  InTurn in_turn(runtime, parts, merged, options);
  Expected expected;
  for (const Feeds& feeds : options.inputs.empty() ? synthetic_feeds(merged.model, options) : options.inputs) {
    const std::size_t done = expected.feeds.size();
    if (done == kMostFeeds || (done > 0 && watch.seconds() > kSeconds)) break;
    tell(options, 0);
    Values values = given_values(merged, feeds);
    try {
      if (!in_turn.run(values)) {
        why_not = "no order of the models runs them one after the other";
        break;
      }
    } catch (const Error& error) {
      why_not = error.what();  // data that a part does not take
      continue;
    }
    expected.feeds.push_back(feeds);
    expected.values.push_back(std::move(values));
  }
  expected.random = random_outputs(in_turn, parts, merged, expected);
  return expected;
}

void run_whole(Runtime& runtime, const Merged& merged, const Expected& expected, const Options& options,
               MergeCheck& check) {
  const std::unique_ptr<Session> whole = open_session(runtime, merged.model, session_options(options));
  for (std::size_t i = 0; i < expected.feeds.size(); ++i) {
    tell(options, 0.5);
    compare(merged, expected, i, whole->run(expected.feeds[i]), check);
    ++check.feeds;
  }
  if (check.random.size() < merged.outputs.size()) return;
  check.feeds = 0;
  check.why_not = "all of its outputs are random";
}

}  // namespace

std::string MergeCheck::text() const {
  if (feeds == 0) return "the merged model was not compared with its parts: " + why_not;
  std::string text = fmt::format(
      "the merged model gives what its parts give in turn, on {} sets of inputs (largest difference {:.1e})", feeds,
      max_rel);
  for (const std::string& name : random) text += fmt::format("; '{}' was not compared: it is random", name);
  return text;
}

MergeCheck check_merge(Runtime& runtime, const std::vector<Part>& parts, const Merged& merged, const Options& options) {
  MergeCheck check;
  Expected expected;
  try {
    // The parts' sessions are gone before that of the whole is there: large models are in memory once.
    expected = run_parts(runtime, parts, merged, options, check.why_not);
    if (!expected.feeds.empty()) run_whole(runtime, merged, expected, options, check);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::unsupported && !expected.feeds.empty())
      throw Error(ErrorKind::verification,
                  fmt::format("the models run, what was merged from them does not: {}", error.what()));
    if (error.kind() == ErrorKind::verification || error.kind() == ErrorKind::limit) throw;
    check.why_not = error.what();
  }
  return check;
}

MergeCheck check_merge(const std::vector<Part>& parts, const Merged& merged, const Options& options) {
  std::string why;
  const std::shared_ptr<Runtime> runtime = Runtime::find(&why, options.custom_ops);
  return runtime ? check_merge(*runtime, parts, merged, options) : MergeCheck{.why_not = why};
}

}  // namespace modelflow
