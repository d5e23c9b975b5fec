// Two models cut at the values that they share, compared part by part.
#include "src/verify/parts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

#include "modelflow/error.h"
#include "modelflow/pass.h"
#include "src/verify/bounded.h"
#include "src/verify/difference.h"
#include "src/verify/exact_means.h"
#include "src/verify/nudge.h"
#include "src/verify/probe.h"
#include "src/verify/twins.h"

namespace modelflow {
namespace {

using Names = std::vector<std::string>;
using Values = std::map<std::string, Tensor>;

constexpr double kOften = 32;
constexpr double kMostElements = 1 << 29;  // of all values together, which both models give out

bool decides(const Node& node) {
  static const std::set<std::string, std::less<>> ops = {
      "TopK",    "ArgMax",      "ArgMin", "NonMaxSuppression",     "Round",      "Floor",   "Ceil",
      "Less",    "LessOrEqual", "Equal",  "GreaterOrEqual",        "Sign",       "Greater", "QuantizeLinear",
      "NonZero", "Unique",      "Mod",    "DynamicQuantizeLinear", "GridSample", "RoiAlign"};
  if (node.is("Cast")) return !is_float(static_cast<DType>(node.attrs.integer("to")));
  return !node.subgraphs().empty() || ops.contains(node.op());
}

bool may_be_border(const Value& value, const Model& other) {
  const Value* twin = other.graph().find(value.name());
  if (!twin || !twin->producer() || value.dtype() != twin->dtype()) return false;
  if (!value.type.is_tensor() || value.dtype() == DType::string || value.dtype() == DType::undefined) return false;
  return !value.shape().has_rank() || !twin->shape().has_rank() || value.shape().rank() == twin->shape().rank();
}

/// Values that both models compute, in running order.
Names shared_values(const Model& original, const Model& other) {
  Names names;
  for (const auto& node : original.graph().nodes())
    for (const Value* value : node->outputs())
      if (value && may_be_border(*value, other)) names.push_back(value->name());
  return names;
}

Values run(const Sessions& sessions, Model model, const Names& extra, const Feeds& feeds, SessionOptions options) {
  for (const std::string& name : extra) {
    Value* value = model.graph().find(name);
    if (!value->is_graph_output()) model.graph().add_output(*value);
  }
  options.optimize = false;
  const auto session = open_session(sessions, model, options);
  const std::vector<Tensor> results = session->run(feeds);
  Values values;
  const auto outputs = session->outputs();
  for (std::size_t i = 0; i < results.size(); ++i) values[outputs[i].first] = results[i];
  return values;
}

/// The original, whose readers of the borders read inputs instead; feeds for these are added.
Model cut(const Model& original, const Names& borders, const Values& values, Feeds& feeds) {
  Model model = original;
  Graph& graph = model.graph();
  for (const std::string& name : borders) {
    Value* value = graph.find(name);
    const Tensor& tensor = values.at(name);
    const std::vector<Use> uses = value->uses();
    if (uses.empty()) continue;
    Value& input =
        graph.add_input(graph.unique_name(name + "_border"), Type::tensor(tensor.dtype(), Shape::of(tensor.dims())));
    feeds[input.name()] = tensor;
    for (const Use& use : uses) use.node->graph().set_input(*use.node, use.index, &input);
  }
  return model;
}

void add(std::vector<double>& moved, const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_doubles(), y = b.to_doubles();
  moved.resize(x.size());
  for (std::size_t i = 0; a.dims() == b.dims() && i < x.size(); ++i)
    moved[i] = std::max(moved[i], std::isfinite(x[i] - y[i]) ? std::abs(x[i] - y[i]) : 0);
}

/// What is no difference in each cell of floats: what difference() lets pass.
std::vector<double> bounds_of(const std::vector<double>& x, const Cells& cells) {
  std::vector<double> bounds = cells.floors;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (double& bound = bounds[cells.of[i]]; std::isfinite(x[i])) bound = std::max(bound, kTolerance * std::abs(x[i]));
  return bounds;
}

bool is_rounding(const std::vector<double>& moved, const Tensor& a, const Tensor& b, double often,
                 const Sections& sections) {
  if (a.dtype() != b.dtype() || a.dims() != b.dims()) return false;
  const std::vector<double> x = a.to_doubles(), y = b.to_doubles();
  const Cells cells = cells_of(a.dims(), sections, 0);
  const std::vector<double> bounds =
      is_float(a.dtype()) ? bounds_of(x, cells) : std::vector<double>(cells.floors.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    if (!(std::abs(x[i] - y[i]) <= bounds[cells.of[i]] + often * moved[i])) return false;
  }
  return true;
}

class Comparison {
 public:
  Comparison(const Sessions& sessions, const Model& original, const Model& other, const Feeds& feeds,
             const Reference& reference, const SessionOptions& session)
      : sessions_(sessions),
        original_(original),
        feeds_(feeds),
        reference_(reference),
        session_{.threads = session.threads} {
    infer_types(original_);
    const Model comparable = with_twins(other, original_);
    borders_ = shared_values(original_, comparable);
    values_ = run(sessions, comparable, borders_, feeds, session);
    std::erase_if(borders_, [&](const std::string& name) { return values_.at(name).dtype() == DType::undefined; });
  }

  Parts parts() {
    std::set<std::string> wrong(borders_.begin(), borders_.end());
    wrong.insert(reference_.names.begin(), reference_.names.end());
    keep_wrong(original_, wrong);
    if (!wrong.empty()) excuse_by_exact_form(wrong);
    return {.agree = wrong.empty(), .first = first_node(wrong)};
  }

 private:
  /// Where that does not run, nothing is excused by it.
  void excuse_by_exact_form(std::set<std::string>& wrong) {
    try {
      const Model& spectra = reference_.exact ? *reference_.exact : original_;
      const std::optional<Model> exact = with_exact_means(spectra);
      if (!exact && !reference_.exact) return;
      std::set<std::string> left = wrong;
      keep_wrong(exact ? *exact : spectra, left);
      wrong = std::move(left);
    } catch (const Error&) {
    }
  }

  /// Of these values those that the original, in one of its forms, computes otherwise too from what the other model has
  /// at the borders.
  void keep_wrong(const Model& original, std::set<std::string>& wrong) {
    Feeds feeds = feeds_;
    const Model model = cut(original, borders_, values_, feeds);
    const Values computed = run(sessions_, model, {wrong.begin(), wrong.end()}, feeds, session_);
    std::erase_if(wrong, [&](const std::string& name) { return is_close(name, computed.at(name)); });
    if (!wrong.empty()) excuse_rounding(model, feeds, computed, wrong);
  }

  bool is_close(const std::string& name, const Tensor& computed) const {
    const Value& value = *original_.graph().find(name);
    return difference(name, computed, values_.at(name), kTolerance, floor_of(value), sections_of(value)).ok;
  }

  /// Sums round more than once: a smooth part may be off by kOften times what a digit changes. What is decided comes
  /// out as if values were so many digits apart, and in no third way.
  void excuse_rounding(const Model& model, const Feeds& feeds, const Values& computed, std::set<std::string>& wrong) {
    for (const bool smooth : {true, false}) {
      std::set<std::string> left;
      std::ranges::copy_if(wrong, std::inserter(left, left.end()),
                           [&](const std::string& name) { return is_smooth(name) == smooth; });
      const double digits = smooth ? 1 : kOften, often = smooth ? kOften : 1;
      std::map<std::string, std::vector<double>> moved;
      for (unsigned i = 0; i < kNudges && !left.empty(); ++i) {
        const Values results = run(sessions_.runtime, with_nudged_constants(model, digits, i),
                                   {left.begin(), left.end()}, nudged(model, feeds, digits, i), session_);
        for (const std::string& name : left) add(moved[name], computed.at(name), results.at(name));
        std::erase_if(left, [&](const std::string& name) {
          const bool rounding = is_rounding(moved[name], computed.at(name), values_.at(name), often,
                                            sections_of(*original_.graph().find(name)));
          return rounding && wrong.erase(name) > 0;
        });
      }
      if (!left.empty()) return;  // one is enough
    }
  }

  /// No part of it decides by its values, as far back as the borders.
  bool is_smooth(const std::string& name) const {
    const std::unordered_set<std::string> stops(borders_.begin(), borders_.end());
    std::unordered_set<const Node*> seen;
    std::vector<const Value*> left = {original_.graph().find(name)};
    for (bool first = true; !left.empty(); first = false) {
      const Value* value = left.back();
      left.pop_back();
      const Node* node = value ? value->producer() : nullptr;
      if (!node || (!first && stops.contains(value->name())) || !seen.insert(node).second) continue;
      if (decides(*node)) return false;
      left.insert(left.end(), node->inputs().begin(), node->inputs().end());
    }
    return true;
  }

  std::string first_node(const std::set<std::string>& wrong) const {
    for (const auto& node : original_.graph().nodes())
      for (const Value* value : node->outputs())
        if (value && wrong.contains(value->name())) return node->label();
    return "";
  }

  Sessions sessions_;
  Model original_;
  const Feeds& feeds_;
  const Reference& reference_;
  SessionOptions session_;
  Names borders_;
  Values values_;
};

}  // namespace

bool decides(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const auto& node) { return decides(*node); });
}

Parts compare_parts(const Sessions& sessions, const Model& original, const Model& other, const Feeds& feeds,
                    const Reference& reference, const SessionOptions& session) {
  if (outlook(original, feeds).all > kMostElements)
    throw Error(ErrorKind::limit, "the values of the model are too large to compare its parts");
  return Comparison(sessions, original, other, feeds, reference, session).parts();
}

namespace {

/// How far each nudge in turn has moved an output of the original by then, until `enough` of it.
void nudge(const Sessions& sessions, const Model& original, const Reference& reference, std::size_t feed,
           std::size_t output, const std::function<bool(const std::vector<double>&)>& enough) {
  const Feeds& feeds = reference.feeds[feed].values;
  std::vector<double> moved;
  for (unsigned i = 0; i < kNudges; ++i) {
    const auto session =
        open_session(sessions.runtime, with_nudged_constants(original, kOften, i), {.optimize = false});
    add(moved, reference.outputs[feed][output], session->run(nudged(original, feeds, kOften, i)).at(output));
    if (enough(moved)) return;
  }
}

}  // namespace

bool is_rounding(const Sessions& sessions, const Model& original, const Reference& reference, std::size_t feed,
                 std::size_t output, const Tensor& result) {
  bool found = false;
  nudge(sessions, original, reference, feed, output, [&](const std::vector<double>& moved) {
    return found = is_rounding(moved, reference.outputs[feed][output], result, 1, reference.sections[output]);
  });
  return found;
}

bool digits_move(const Sessions& sessions, const Model& original, const Reference& reference, std::size_t feed,
                 std::size_t output, double far) {
  bool found = false;
  nudge(sessions, original, reference, feed, output, [&](const std::vector<double>& moved) {
    return found = std::ranges::any_of(moved, [&](double each) { return each >= far; });
  });
  return found;
}

}  // namespace modelflow
