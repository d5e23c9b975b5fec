// Every form that the optimizer makes of a random model, run and judged.
#include "tests/fuzz/forms.h"

#include <algorithm>

#include "modelflow/compose.h"
#include "modelflow/error.h"
#include "modelflow/modelflow.h"
#include "src/graph/verify.h"
#include "src/pipeline.h"
#include "src/verify/compare.h"
#include "tests/fuzz/dice.h"
#include "tests/fuzz/judge.h"
#include "tests/fuzz/metamorphic.h"
#include "tests/left_open.h"

namespace modelflow::fuzz {
namespace {

struct Form {
  std::string mode;
  Model model;
  bool plugin = false;
  double share = 0;                      ///< lower precision: half a step of what products read; 0: float
  std::optional<std::size_t> only = {};  ///< the one sample that it is made for
  std::string how = {};                  ///< metamorphic: what was said otherwise
};

Options options_of(const Settings& settings) {
  Options options;
  options.measure = options.verify = false;
  options.threads = settings.threads;
  options.disabled = settings.disabled;
  return options;
}

/// Half a step of the coarsest operand, as a share of its largest magnitude.
double share_of(Precision precision) {
  if (precision == Precision::f16) return 0x1p-11;
  if (precision == Precision::bf16 || precision == Precision::bf16_weights) return 0x1p-8;
  return precision == Precision::i4_weights ? 0.5 / 7 : 1.0 / 127;
}

class Bench {
 public:
  Bench(const Model& model, std::uint64_t seed, const Settings& settings, std::shared_ptr<Runtime> runtime)
      : model_(model),
        seed_(seed),
        settings_(settings),
        runtime_(std::move(runtime)),
        judge_(*runtime_, model, seed, settings.kinds, settings.empty && !dies_of_empty_batches(model)) {}

  Checked run() {
    Checked checked;
    checked.runs = judge_.runs();
    checked.samples = static_cast<int>(judge_.samples().size());
    for (const std::string& mode : settings_.modes) {
      if (!checked.runs || checked.finding) break;
      try {
        for (const Form& form : forms(mode, checked))
          if (!checked.finding) checked.finding = verdict(form);
      } catch (const Error& error) {
        // What no run of the original tells, calibrating does not tell either.
        const bool of_sample = std::string_view(error.what()).starts_with("calibration sample");
        if (of_sample && any_left_open()) continue;
        if (error.kind() != ErrorKind::unsupported && error.kind() != ErrorKind::limit)
          checked.finding = Finding{mode, "throws", error.what()};
      }
    }
    checked.excused = judge_.excused();
    checked.left_open = static_cast<int>(left_open_.size());
    return checked;
  }

 private:
  std::vector<Form> forms(const std::string& mode, Checked& checked) {
    Options options = options_of(settings_);
    if (mode == "types") return {typed()};
    if (mode == "O1") {
      options.level = Level::O1;
      return {{mode, optimize(model_, options).model, false, 0, {}, {}}};
    }
    if (mode == "O2") return {{mode, optimize(model_, options).model, true, 0, {}, {}}};
    if (mode == "verified") {
      options.verify = true;
      Result result = optimize(model_, options);
      for (const std::string& note : result.report.notes)
        if (note.find(", and is left out (") != std::string::npos) checked.repaired += note + "; ";
      return {{mode, std::move(result.model), true, 0, {}, {}}};
    }
    if (mode == "again") {
      const Model once = optimize(model_, options).model;
      return {{mode, optimize(once, options).model, true, 0, {}, {}}};
    }
    if (mode == "fused" || mode == "fallback" || mode == "inline") {
      if (!fused_) fused_ = fused(model_, options);
      return {{mode, mode == "inline" ? inline_functions(*fused_) : *fused_, mode == "fused", 0, {}, {}}};
    }
    if (mode == "metamorphic") return otherwise(options, checked);
    if (mode == "raised") return raised();
    if (mode == "merged") return merged();
    return lowered(mode, options);
  }

  /// The original in the form of a newer opset, where it has one.
  std::vector<Form> raised() const {
    Model copy = inline_functions(model_);
    infer_types(copy);
    if (copy.opset() >= kNewestOpset || !raise_opset(copy, kNewestOpset)) return {};
    return {{"raised", std::move(copy), false, 0, {}, {}}};
  }

  /// The second of two copies of the original that are one model and have one set of inputs.
  std::vector<Form> merged() const {
    std::vector<Edge> shared;
    for (const Value* input : model_.graph().inputs()) shared.push_back({"a", input->name(), "b", input->name()});
    if (shared.empty()) return {};
    Merged both = merge({{"a", model_}, {"b", model_}}, shared);
    std::vector<std::string> outputs;
    for (const Value* output : model_.graph().outputs()) outputs.push_back("b." + output->name());
    Model second = keep_outputs(std::move(both.model), outputs);
    Graph& graph = second.graph();
    for (const Joint& input : both.inputs) {  // as the samples have it
      const std::string name = input.from.substr(2);
      if (Value* taken = graph.find(name)) graph.rename(*taken, graph.unique_name(name));
      if (Value* value = graph.find(input.name)) graph.rename(*value, name);
    }
    return {{"merged", std::move(second), false, 0, {}, {}}};
  }

  Model fused(const Model& model, const Options& options) {
    Report report;
    const Pipeline pipeline(options, runtime_);
    return Pipeline::emit(pipeline.lay_out(pipeline.fuse(model, {}, report).whole(), {}, report));
  }

  /// The same model said otherwise. Names alone change nothing of what is made of it.
  std::vector<Form> otherwise(const Options& options, Checked& checked) {
    Dice dice(seed_of(seed_, "metamorphic"));
    Model copy = model_;
    const std::string how = say_otherwise(copy, dice);
    if (how.empty()) return {};
    verify(copy, how);
    Form form{"metamorphic", fused(copy, options), true, 0, {}, how + ": "};
    if (!fused_) fused_ = fused(model_, options);
    if (how == kOtherNames && ops(form.model) != ops(*fused_))
      checked.finding = Finding{form.mode, "differs", how + " make other nodes of it"};
    return {std::move(form)};
  }

  static std::vector<std::string> ops(const Model& model) {
    std::vector<std::string> list;
    for (const auto& node : model.graph().nodes()) list.push_back(node->op());
    return list;
  }

  std::vector<Form> lowered(const std::string& mode, Options options) {
    options.precision = parse_precision(mode);
    options.max_drop = 100;
    if (options.precision == Precision::i8) options.observer = Observer::minmax;
    std::vector<Feeds> feeds;
    std::size_t first = judge_.samples().size();
    for (std::size_t i = 0; i < judge_.samples().size(); ++i) {
      if (is_empty(judge_.samples()[i])) continue;
      feeds.push_back(judge_.samples()[i].feeds);
      first = std::min(first, i);
    }
    if (feeds.empty()) return {};
    options.inputs = feeds;
    // Steps follow from the largest value of all samples: what they do to one sample is known where it is the only one.
    std::optional<std::size_t> only;
    if (options.precision == Precision::i8) {
      only = first;
      options.inputs = {feeds.front()};
      options.calibration = [one = feeds.front()](std::size_t i) { return i < 8 ? std::optional(one) : std::nullopt; };
    }
    const Model made = optimize(model_, options).model;
    const double share = share_of(options.precision);
    return {{mode, made, true, share, only, {}}, {mode + " fallback", made, false, share, only, {}}};
  }

  /// The original with what inference says, every value of the main graph an output.
  Form typed() {
    Model copy = model_;
    for (const auto& node : copy.graph().nodes())
      for (Value* output : node->outputs())
        if (output && !output->is_graph_output()) output->type = {};
    infer_types(copy);
    return {"types", std::move(copy), false, 0, {}, {}};
  }

  std::optional<Finding> verdict(const Form& form) {
    if (form.mode == "types") return check_types(form.model);
    std::unique_ptr<Session> session;
    try {
      session = open_session(*runtime_, form.model,
                             {.threads = settings_.threads,
                              .optimize = false,
                              .plugin = form.plugin ? plugin_path() : std::filesystem::path()});
    } catch (const Error& error) {
      // Newer forms of some operators ONNX Runtime has for some types only.
      const bool is_missing =
          std::string_view(error.what()).find("Could not find an implementation") != std::string::npos;
      if (form.mode == "raised" && is_missing) return std::nullopt;
      return Finding{form.mode, "load", error.what()};
    }
    first_.clear();
    const bool dies_of_nothing = dies_of_empty_batches(form.model, form.plugin);  // where a loop was, too
    for (std::size_t i = 0; i < judge_.samples().size(); ++i) {
      // The bodies of lower precision take the largest of nothing there, which ONNX Runtime gives a wrong shape.
      if ((form.share > 0 || dies_of_nothing) && is_empty(judge_.samples()[i])) continue;
      if (form.only && *form.only != i) continue;
      std::optional<Finding> finding = verdict(form, *session, i);
      if (finding && !left_open(i)) return finding;
    }
    return form.plugin && !form.only ? once_more(form, *session) : std::nullopt;
  }

  /// Asked where something differs: whether the original's result is a reference at all.
  bool left_open(std::size_t i) {
    if (judge_.left_open(i).empty()) return false;
    left_open_.insert(i);
    return true;
  }

  bool any_left_open() {
    bool any = false;
    for (std::size_t i = 0; i < judge_.samples().size(); ++i) any = left_open(i) || any;
    return any;
  }

  std::optional<Finding> verdict(const Form& form, Session& session, std::size_t i) {
    const std::string sample = form.how + "sample " + std::to_string(i) + ", ";
    std::vector<Tensor> results;
    try {
      results = session.run(judge_.samples()[i].feeds);
    } catch (const Error& error) {
      return Finding{form.mode, "run", sample + error.what()};
    }
    if (i == 0) first_ = results;
    try {
      const std::string wrong =
          form.share > 0 ? judge_.coarse_difference(i, results, form.share) : judge_.difference(i, results);
      if (!wrong.empty()) return Finding{form.mode, "differs", sample + wrong};
    } catch (const Error& error) {  // nothing is known of the form then
      return Finding{form.mode, "judge", sample + "the original does not run with noise: " + error.what()};
    }
    const std::string lie = wrong_types(form.model.graph().outputs(), results, judge_.samples()[i]);
    return lie.empty() ? std::nullopt : std::optional(Finding{form.mode, "type", sample + lie});
  }

  /// Kernels keep scratch memory from run to run: behind inputs of other extents the first ones give what they gave.
  std::optional<Finding> once_more(const Form& form, Session& session) {
    if (form.share > 0 || judge_.samples().size() < 2 || first_.empty() || !judge_.left_open(0).empty())
      return std::nullopt;
    const std::vector<Tensor> results = session.run(judge_.samples()[0].feeds);
    for (std::size_t k = 0; k < results.size(); ++k)
      if (!judge_.random(k) && results[k].dtype() != DType::undefined && !results[k].same_content(first_[k]))
        return Finding{form.mode, "differs", form.how + "the same inputs give other results behind others"};
    return std::nullopt;
  }

  static bool is_empty(const Sample& sample) {
    return std::any_of(sample.feeds.begin(), sample.feeds.end(),
                       [](const auto& feed) { return feed.second.elements() == 0; });
  }

  static std::string wrong_types(const std::vector<Value*>& values, const std::vector<Tensor>& results,
                                 const Sample& sample) {
    for (std::size_t k = 0; k < std::min(values.size(), results.size()); ++k) {
      const Value& value = *values[k];
      if (!value.type.is_tensor() || !value.shape().has_rank() || results[k].dtype() == DType::undefined) continue;
      if (results[k].elements() == 0) continue;  // of these ONNX Runtime gets shapes wrong itself (ReduceSum)
      bool ok = value.shape().rank() == results[k].rank() &&
                (value.dtype() == results[k].dtype() || value.dtype() == DType::undefined);
      for (std::size_t i = 0; ok && i < value.shape().rank(); ++i) {
        const auto number = value.shape()[i].evaluate(sample.symbols);
        ok = !number || *number == results[k].dims()[i];
      }
      if (!ok)
        return "'" + value.name() + "' is said to be " + std::string(name(value.dtype())) + value.shape().str() +
               " and is " + std::string(name(results[k].dtype())) + Shape::of(results[k].dims()).str();
    }
    return "";
  }

  std::optional<Finding> check_types(const Model& typed) {
    Model bare = model_;  // ONNX Runtime must not take what we infer for what the user says
    std::vector<Value*> said;
    Graph& graph = bare.graph();
    for (const auto& node : graph.nodes())
      for (Value* output : node->outputs()) {
        const Value* known = output ? typed.graph().find(output->name()) : nullptr;
        if (!known || !known->type.is_tensor() || known->dtype() == DType::undefined || output->is_graph_output())
          continue;
        output->type = Type::tensor(known->dtype());
        graph.add_output(*output);
      }
    for (Value* output : graph.outputs()) said.push_back(typed.graph().find(output->name()));
    const auto session = open_session(*runtime_, bare, {.threads = 1, .optimize = false});
    for (std::size_t i = 0; i < judge_.samples().size(); ++i) {
      const std::string lie = wrong_types(said, session->run(judge_.samples()[i].feeds), judge_.samples()[i]);
      if (!lie.empty() && !left_open(i)) return Finding{"types", "type", "sample " + std::to_string(i) + ", " + lie};
    }
    return std::nullopt;
  }

  static constexpr std::int64_t kNewestOpset = 21;  // of 22 ONNX Runtime lacks RandomNormalLike and others

  const Model& model_;
  const std::uint64_t seed_;
  const Settings& settings_;
  std::shared_ptr<Runtime> runtime_;
  Judge judge_;
  std::optional<Model> fused_;
  std::vector<Tensor> first_;        ///< results on the first sample; none where it was left out
  std::set<std::size_t> left_open_;  ///< samples that differ, and no wonder
};

}  // namespace

const std::vector<std::string>& all_modes() {
  static const std::vector<std::string> modes = {
      "types",        "O1",           "fused",       "fallback", "inline",       "O2",
      "again",        "int8-dynamic", "int8",        "bf16",     "bf16-weights", "int8-weights",
      "int4-weights", "verified",     "metamorphic", "raised",   "merged"};
  return modes;
}

Checked check(const Model& model, std::uint64_t seed, const Settings& settings, const std::shared_ptr<Runtime>& runtime,
              const std::function<void()>& ready) {
  Bench bench(model, seed, settings, runtime);
  ready();
  return bench.run();
}

void run_stock(const Model& model, std::uint64_t seed, Runtime& runtime) {
  try {
    const auto session = open_session(runtime, model, {.threads = 1});
    for (const Sample& sample : samples(model, seed, false, true)) session->run(sample.feeds);
  } catch (const Error&) {  // which is no crash
  }
}

bool runs(const Model& model, std::uint64_t seed, Runtime& runtime) {
  return Judge(runtime, model, seed, false, false).runs();
}

}  // namespace modelflow::fuzz
