// Whether an optimized mutant is right.
#include "tests/obligations/judge.h"

#include <algorithm>
#include <cmath>

#include "passes/graph/facts.h"
#include "passes/passes.h"
#include "src/core/half.h"
#include "src/emit/emit.h"
#include "src/graph/verify.h"
#include "src/pipeline.h"
#include "src/verify/compare.h"
#include "src/verify/exact_spectra.h"
#include "tests/left_open.h"
#include "tests/obligations/difference.h"
#include "tests/obligations/feeds.h"
#include "tests/obligations/licences.h"
#include "tests/obligations/mutation.h"
#include "tests/obligations/said.h"
#include "tests/pass_cases.h"

namespace modelflow::obligations {
namespace {

constexpr double kNoise = 32;  // how many times what a last digit of every number changes

bool random_ops(const Model& model) {
  return std::ranges::any_of(all_nodes(model), [](const Node* node) {
    return node->op().starts_with("Random") || node->is("Multinomial") || node->is("Bernoulli") ||
           (node->is("Dropout") && node->inputs().size() > 2);
  });
}

/// The coarsest type that a number passes through.
double digits(const Model& model) {
  bool half = false, brain = false, single = false;
  const auto see = [&](const Value* value) {
    if (!value) return;
    half |= value->dtype() == DType::f16;
    brain |= value->dtype() == DType::bf16;
    single |= value->dtype() == DType::f32;
  };
  for (const Node* node : all_nodes(model)) {
    for (const Value* value : node->inputs()) see(value);
    for (const Value* value : node->outputs()) see(value);
  }
  return brain ? 0x1p-5 : half ? 0x1p-8 : single ? 1e-5 : 1e-13;
}

void drop_output_shapes(Model& model) {
  for (Value* output : model.graph().outputs()) output->type.shape = {};
}

std::string against_declared(const std::vector<Type>& declared, const std::vector<Tensor>& results,
                             const std::vector<std::string>& names) {
  for (std::size_t k = 0; k < results.size() && k < declared.size(); ++k)
    if (results[k].dtype() != DType::undefined &&
        contradict(declared[k], Type::tensor(results[k].dtype(), Shape::of(results[k].dims()))))
      return "'" + names[k] + "' is said to be " + declared[k].shape.str() + " and is " +
             Shape::of(results[k].dims()).str();
  return "";
}

/// Weights and scales are: where they are not, which kinds come about is an accident of the order of things.
bool finite_constants(const Model& model) {
  for (const Graph* graph : all_graphs(model))
    for (const Value* value : graph->initializers())
      if (is_float(value->initializer()->dtype()))
        for (const double number : value->initializer()->to_doubles())
          if (!std::isfinite(number)) return false;
  return true;
}

/// Reductions of ONNX Runtime keep the axes of what has no elements, and what stands behind them does likewise; of what
/// a loop would have collected it knows the extents or not.
bool of_nothing(const Tensor& a, const Tensor& b, bool loops) {
  return a.dtype() == b.dtype() && a.elements() == 0 && b.elements() == 0 && (loops || a.rank() != b.rank());
}

bool of_nothing_at_all(const std::vector<Tensor>& results) {
  return std::ranges::any_of(results,
                             [](const Tensor& t) { return t.dtype() != DType::undefined && t.elements() == 0; });
}

/// A target that copies one extent and leaves another open: for some empty tensors there is no such.
bool refuses_empty(const Model& model) {
  return std::ranges::any_of(all_nodes(model), [](const Node* node) {
    const Value* target = node->is("Reshape") ? node->input(1) : nullptr;
    if (!target || !target->initializer() || target->dtype() != DType::i64) return false;
    return passes::refuses_empty(target->initializer()->to_ints());
  });
}

bool stock_refuses(Runtime& runtime, const Model& model) {
  try {
    open_session(runtime, model, {.threads = 1});
    return false;
  } catch (const Error&) {
    return true;
  }
}

/// Finite numbers that float16 does not hold become its ends there, as the lowest number that masks hold.
void clip_to_half(std::vector<Tensor>& results) {
  const double end = largest(DType::f16);
  for (Tensor& result : results) {
    if (!is_float(result.dtype())) continue;
    std::vector<double> numbers = result.to_doubles();
    for (double& number : numbers)
      if (std::isfinite(number)) number = std::clamp(number, -end, end);
    result = encode(result.dtype(), result.dims(), numbers);
  }
}

SessionOptions quiet() { return {.threads = 1, .optimize = false}; }

std::string short_text(const Model& model) {
  std::string text = model.to_text();
  constexpr std::size_t kMost = 6000;
  return text.size() > kMost ? text.substr(0, kMost) + " ..." : text;
}

Model all_of(Level level, const Model& model, Options options, const std::shared_ptr<Runtime>& runtime,
             std::map<std::string, int>& hits) {
  options.level = level;
  options.precision = Precision::f32;
  const Pipeline pipeline(options, runtime);
  Report report;
  Pipeline::Forms forms = pipeline.fuse(model, {}, report);
  Model result = pipeline.lay_out(level == Level::O2 ? forms.whole() : forms.portable, {}, report);
  verify(result, "all of it");
  for (const StepReport& step : report.steps)
    for (const auto& [rule, times] : step.hits) hits[rule] += times, hits[step.name] += times;
  return result;
}

}  // namespace

namespace {

/// Runtimes take axes that are named twice, but mean nothing by them.
bool repeats_axes(const Model& model) {
  const auto repeats = [](const Node* node) {
    const bool views = node->is("Squeeze") || node->is("Unsqueeze") || node->op().starts_with("Reduce");
    const std::size_t index = node->is("Slice") ? 3 : views ? 1 : SIZE_MAX;
    Ints named = node->attrs.ints("axes");
    std::ranges::sort(named);
    if (std::ranges::adjacent_find(named) != named.end()) return true;
    const Value* axes = node->input(index);
    if (!axes || !axes->initializer() || axes->dtype() == DType::f32) return false;
    std::vector<double> all = axes->initializer()->to_doubles();
    std::ranges::sort(all);
    return std::ranges::adjacent_find(all) != all.end();
  };
  return std::ranges::any_of(all_nodes(model), repeats);
}

}  // namespace

bool settle(Model& model) {
  if (repeats_axes(model)) return false;
  for (Graph* graph : all_graphs(model))
    for (const auto& node : graph->nodes())
      for (Value* output : node->outputs())
        if (output) output->type = {};
  try {
    verify(model, "mutant");
    const std::string bytes = model.to_bytes();  // what is refused where models are read is no model
    Model::from_bytes(std::as_bytes(std::span(bytes)));
    infer_types(model);
  } catch (const Error&) {
    return false;
  }
  return true;
}

/// The original as ONNX Runtime has it, and what it gives for the feeds that it takes.
struct Judge::Reference {
  const Model& model;
  std::mt19937_64& random;
  bool half = false;  ///< the result computes in float16
  double tolerance = 0;
  std::unique_ptr<Session> session = {}, jittered = {};
  std::vector<Feed> feeds = {};
  std::vector<std::vector<Tensor>> outputs = {};
  std::vector<std::string> names = {};
  bool prepared = false;
};

bool Judge::prepare(Reference& reference) {
  if (reference.prepared) return !reference.feeds.empty();
  reference.prepared = true;
  at_(Work::original);
  try {
    // The transforms of ONNX Runtime in float32 are rougher than ours.
    Model bare = with_exact_spectra(reference.model).value_or(reference.model);
    drop_output_shapes(bare);
    reference.session = open_session(*runtime_, bare, quiet());
    for (const auto& [name, type] : reference.session->outputs()) reference.names.push_back(name);
    for (Feed& feed : feeds_of(reference.model, reference.random)) {
      try {
        reference.outputs.push_back(reference.session->run(feed.values));
        if (reference.half) clip_to_half(reference.outputs.back());
        reference.feeds.push_back(std::move(feed));
      } catch (const Error&) {  // extents that the model does not take
      }
    }
  } catch (const Error&) {
  }
  return !reference.feeds.empty();
}

/// How far the original itself moves where every number of it moves by a last digit.
double Judge::noise(Reference& reference, std::size_t feed, std::size_t output) {
  at_(Work::original);
  try {
    if (!reference.jittered) {
      Model copy = reference.model;
      drop_output_shapes(copy);
      for (Graph* graph : all_graphs(copy))
        for (Value* value : graph->initializers())
          graph->set_initializer(*value, jittered(*value->initializer(), false, reference.random));
      reference.jittered = open_session(*runtime_, copy, quiet());
    }
    double most = 0;
    for (int i = 0; i < 12; ++i) {
      Feeds moved = reference.feeds[feed].values;
      for (auto& [name, tensor] : moved) tensor = jittered(tensor, true, reference.random);
      const Distance d = distance(reference.outputs[feed][output], reference.jittered->run(moved)[output]);
      if (!d.other_kind.empty() || !d.other_shape.empty()) return HUGE_VAL;
      most = std::max(most, d.largest);
    }
    return most;
  } catch (const Error&) {
    return 0;
  }
}

std::string Judge::compare_run(Reference& reference, std::size_t feed, const std::vector<Tensor>& results,
                               bool any_kind, bool everywhere) {
  const std::vector<Tensor>& expected = reference.outputs[feed];
  if (results.size() != expected.size()) return "another number of outputs";
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const Distance d = distance(expected[k], results[k]);
    const std::string where = " in '" + reference.names[k] + "', " + reference.feeds[feed].what;
    if (!d.other_shape.empty() && !of_nothing(expected[k], results[k], all_graphs(reference.model).size() > 1))
      return d.other_shape + where;
    if (!d.other_shape.empty()) continue;
    const bool eight_bits = expected[k].dtype() == DType::u8 || expected[k].dtype() == DType::i8;
    // Below the smallest normal number digits are missing, however few a rewrite rounds.
    const double scale = std::max(d.scale, smallest_normal(expected[k].dtype()));
    const double allowed = is_float(expected[k].dtype()) ? reference.tolerance * scale : eight_bits ? 1 : 0;
    if (d.other_kind.empty() && d.largest <= allowed) continue;
    const double unsure = noise(reference, feed, k);
    if (std::isinf(unsure) || (any_kind && !d.finite)) continue;
    if (!d.other_kind.empty() && everywhere) continue;
    if (!d.other_kind.empty()) return d.other_kind + where;
    if (d.largest <= allowed + kNoise * unsure) continue;
    return "off by " + std::to_string(d.largest) + " of " + std::to_string(d.scale) + where;
  }
  return "";
}

std::string Judge::compare(Reference& reference, const Model& result, const Options& options,
                           const std::map<std::string, int>& hits) {
  const bool any_kind =
      !may_change_kinds(hits).empty() || !finite_constants(reference.model) || options.precision != Precision::f32;
  const bool everywhere = !may_spread_kinds(hits).empty();
  at_(Work::passes);
  Model runnable = result;
  std::vector<Type> declared;
  for (const Value* output : result.graph().outputs()) declared.push_back(output->type);
  try {
    emit_functions(runnable);
    drop_output_shapes(runnable);
  } catch (const Error& error) {
    return std::string("cannot be written: ") + error.what();
  }
  const bool rough = options.precision != Precision::f32, skips_empty = dies_of_empty_batches(runnable) ||
                                                                        !may_refuse_empty(hits).empty() ||
                                                                        refuses_empty(reference.model);
  at_(Work::result);
  try {
    const auto session = open_session(*runtime_, runnable, quiet());
    for (std::size_t i = 0; i < reference.feeds.size(); ++i) {
      const Feed& feed = reference.feeds[i];
      if (rough && feed.what != "usual extents") continue;
      if (skips_empty && has_empty(feed.values)) continue;
      std::string why;
      try {
        const std::vector<Tensor> results = session->run(feed.values);
        why = against_declared(declared, results, reference.names);
        if (!why.empty() && of_nothing_at_all(results)) why.clear();
        if (why.empty()) why = compare_run(reference, i, results, any_kind, everywhere);
      } catch (const Error& error) {
        why = std::string("does not run, ") + feed.what + ": " + error.what();
      }
      if (why.empty()) continue;
      at_(Work::original);
      const std::string otherwise = misjudged(*runtime_, reference.model, feed.values);
      const bool open = !left_open(*runtime_, reference.model, feed.values).empty();
      at_(Work::result);
      if (open) continue;
      if (otherwise.empty()) return why;
      if (!has_empty(feed.values)) return "TYPES " + otherwise + ", hence " + why;
    }
  } catch (const Error& error) {
    // Knowing more, the runtime may see what is wrong with the original: with its own optimizations it does so, too.
    const bool wrong_itself =
        stock_refuses(*runtime_, reference.model) || std::ranges::all_of(reference.feeds, [&](const Feed& feed) {
          return !left_open(*runtime_, reference.model, feed.values).empty();
        });
    return wrong_itself ? "" : std::string("does not load: ") + error.what();
  }
  return "";
}

Judgement Judge::judge(const Seed& seed, const Model& mutant, bool whole, unsigned long long number) {
  std::mt19937_64 random(number);
  Reference reference{mutant, random, half_type(seed.options) == DType::f16};
  reference.tolerance = std::max(
      digits(mutant), 8 * (seed.options.precision == Precision::f32 ? 0 : tolerance_of(seed.options.precision)));
  Judgement judgement;
  if (random_ops(mutant)) return judgement;
  bool changed = false;
  const auto attempt = [&](const char* name, const std::function<bool(Model&, std::map<std::string, int>&)>& run) {
    if (judgement.kind == Judgement::Kind::wrong) return;
    Model result = mutant;
    std::map<std::string, int> hits;
    std::string why;
    at_(Work::passes);
    try {
      if (!run(result, hits)) return;
      changed = true;
    } catch (const Error& error) {
      why = std::string("refused: ") + error.what();
    } catch (const std::exception& error) {
      why = std::string("failed: ") + error.what();
    }
    if (!prepare(reference)) return;
    if (why.empty()) why = compare(reference, result, seed.options, hits);
    for (const auto& [rule, times] : hits) judgement.hits[rule] += times;
    judgement.kind = why.empty() ? Judgement::Kind::equal : Judgement::Kind::wrong;
    judgement.why = std::string(name) + ": " + why;
    std::string rules;
    for (const auto& [rule, times] : hits) rules += " " + rule;
    if (!why.empty())
      judgement.what =
          judgement.why + "\nrules:" + rules + "\n" + short_text(mutant) + "\nbecame\n" + short_text(result);
  };
  attempt("its passes", [&](Model& model, auto& hits) {
    Transformed done = transform(seed.passes, seed.options, std::move(model), runtime_, seed.rounds);
    for (const std::string& pass : done.changed) ++hits[pass];
    for (const auto& [rule, times] : done.report.hits) hits[rule] += times;
    model = std::move(done.model);
    return done.changes > 0;
  });
  const auto level = [&](Level l) {
    return [&, l](Model& model, std::map<std::string, int>& hits) {
      model = all_of(l, model, seed.options, runtime_, hits);
      return !hits.empty();
    };
  };
  if (whole && seed.options.precision == Precision::f32) attempt("O1", level(Level::O1));
  if (whole && seed.options.precision == Precision::f32) attempt("O2", level(Level::O2));
  if (judgement.kind == Judgement::Kind::invalid && !changed) judgement.kind = Judgement::Kind::unchanged;
  return judgement;
}

}  // namespace modelflow::obligations
