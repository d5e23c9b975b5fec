// What the original gives, and which of its results are nobody's promise.
#include "src/verify/reference.h"

#include <algorithm>
#include <map>
#include <set>

#include "modelflow/pass.h"
#include "modelflow/random.h"
#include "src/core/stopwatch.h"
#include "src/input_shape.h"
#include "src/onnx/model_folder.h"
#include "src/verify/bounded.h"
#include "src/verify/difference.h"
#include "src/verify/exact_spectra.h"
#include "src/verify/feeds.h"
#include "src/verify/open_results.h"
#include "src/verify/probe.h"

namespace modelflow {
namespace {

constexpr double kRuns = 4;                // of the first set: so long all runs may take in any case
constexpr double kRunsPerSecond = 2;       // of Options::verify_seconds, where these are fewer
constexpr double kRunsAsLong = 20;         // so many runs of the first set may one of another set take
constexpr double kMostLoad = 0.5;          // seconds of loading, for feeds that are tried in another process first
constexpr double kMostElements = 1 << 24;  // of a set that is no first choice, or of a value that it leads to: symbols
                                           // that occur twice make huge ones
constexpr double kMostBytes = 1 << 30;     // of all results

std::map<std::string, std::string> shapes_of(const Feeds& feeds) {
  std::map<std::string, std::string> shapes;
  for (const auto& [input, tensor] : feeds)
    shapes[input] = std::string(name(tensor.dtype())) + Shape::of(tensor.dims()).str();
  return shapes;
}

double bytes_of(const std::vector<Tensor>& tensors) {
  double sum = 0;
  for (const Tensor& tensor : tensors)
    if (tensor.dtype() != DType::undefined && tensor.dtype() != DType::string)
      sum += static_cast<double>(tensor.bytes());
  return sum;
}

/// With its functions written out and, as far as it contradicts itself nowhere, its types inferred.
Model written_out(const Model& model) {
  Model flat = inline_functions(model);
  try {
    infer_types(flat);
  } catch (const Error&) {  // what is known of it says less
  }
  return flat;
}

/// Runs feeds one after the other and keeps what came of each.
class Maker {
 public:
  Maker(Runtime& runtime, const Model& original, const Options& options)
      : runtime_(runtime),
        original_(original),
        options_(options),
        flat_(written_out(original)),
        recurrent_(any_node(flat_.graph(), is_recurrent)),
        nan_means_something_(!any_node(flat_.graph(), leaves_nan_open)) {
    reference_.exact = with_exact_spectra(original);
    const Stopwatch watch;
    reference_.folder = std::make_shared<ModelFolder>();
    session_ = open_session(sessions(), reference_.exact ? *reference_.exact : original, plain());
    load_ = watch.seconds();
    for (const auto& [name, type] : session_->outputs()) {
      const Value* value = flat_.graph().find(name);
      reference_.names.push_back(name);
      reference_.floors.push_back(value ? floor_of(*value) : 0);
      reference_.sections.push_back(value ? sections_of(*value) : Sections());
    }
    reference_.random.assign(reference_.names.size(), false);
  }

  void make_up() {
    const Idea first = typical_idea(original_);
    for (const Extents& extents : first.extents) {
      const AllDims dims = input_dims(original_, extents, options_.input_shapes);
      if (&extents != &first.extents.front() && elements(dims) > kMostElements) continue;
      if (!attempt(first, extents, dims)) {
        if (reference_.why_not.empty()) reference_.why_not = refusal_;  // the likeliest sizes say most
        continue;
      }
      reference_.why_not.clear();
      keep_row(first, "");
      once_ = spent_ - spent_before_;
      typical_elements_ = elements(dims);
      const bool half = has_half(flat_.graph()), open = leaves_masked_rows_open(flat_.graph());
      for (Idea idea : further_ideas(original_, extents, options_.input_shapes)) {
        if (half && idea.style == Style::extreme) continue;
        idea.kinds = open && idea.style == Style::masked_rows;
        pursue(idea);
      }
      return;
    }
  }

  void run_given(std::vector<Feed> feeds) {
    for (Feed& feed : feeds) {
      const std::string name = feed.name;
      if (!run(std::move(feed))) throw Error(ErrorKind::usage, "given data: " + refusal_);
      keep_row({.name = name, .why = "given"}, "");
    }
  }

  Reference finished() {
    if (draws(original_.graph(), &original_) || any_node(flat_.graph(), is_foreign)) {
      for (std::size_t i = 0; i < reference_.feeds.size(); ++i) {
        const std::vector<Tensor> again = session_->run(reference_.feeds[i].values);
        for (std::size_t k = 0; k < again.size(); ++k)
          if (!difference("", reference_.outputs[i][k], again[k], 0).ok) reference_.random[k] = true;
      }
    }
    return std::move(reference_);
  }

 private:
  using AllDims = std::map<std::string, Dims>;

  /// False when the original refuses it; refusal_ says why.
  bool run(Feed feed) {
    if (options_.progress) options_.progress("run the original: " + feed.name, 0);
    const Stopwatch watch;
    spent_before_ = spent_;
    refusal_.clear();
    try {
      feed.empty = look_ahead(feed.values).empty;
      if (feed.empty) try_first(feed.values);
      reference_.outputs.push_back(session_->run_within(feed.values, patience()));
      if (feed.empty) expect_an_answer(feed.values);
      bytes_ += bytes_of(reference_.outputs.back());
      reference_.feeds.push_back(std::move(feed));
    } catch (const Error& error) {
      refusal_ = error.what();
    }
    spent_ += watch.seconds();
    return refusal_.empty();
  }

  static AllDims dims_of(const Feeds& feeds) {
    AllDims dims;
    for (const auto& [input, tensor] : feeds) dims[input] = tensor.dims();
    return dims;
  }

  const Outlook& look_ahead(const Feeds& feeds) {
    const AllDims dims = dims_of(feeds);
    const auto known = outlooks_.find(dims);
    return known != outlooks_.end() ? known->second : outlooks_.emplace(dims, outlook(original_, feeds)).first->second;
  }

  /// Once for each set of extents; of a model that takes long to load only for the first feed of all.
  void try_first(const Feeds& feeds) {
    const AllDims dims = dims_of(feeds);
    if (survived_.contains(dims)) return;
    if (load_ > kMostLoad && !reference_.feeds.empty())
      throw Error(ErrorKind::unsupported, "no time: the model would be loaded again for each try");
    if (!survives(sessions(), original_, feeds, plain(), options_.limits))
      throw Error(ErrorKind::unsupported, "ONNX Runtime does not survive it");
    survived_.insert(dims);
  }

  /// Where there is nothing to compute, ONNX Runtime's recurrent layers leave their results as the memory was, other
  /// ops do at times, and reductions give shapes of their own.
  void expect_an_answer(const Feeds& feeds) {
    try {
      if (recurrent_ && look_ahead(feeds).recurrence_of_nothing)
        throw Error(ErrorKind::unsupported, "recurrent layers leave open what they make of nothing");
      if (look_ahead(feeds).contradicts) throw Error(ErrorKind::unsupported, "ONNX allows no such sizes");
      expect_shapes(feeds);
      expect_the_same(feeds);
    } catch (const Error&) {
      reference_.outputs.pop_back();
      throw;
    }
  }

  void expect_shapes(const Feeds& feeds) {
    const std::vector<Shape>& shapes = look_ahead(feeds).outputs;
    const std::vector<Tensor>& results = reference_.outputs.back();
    for (std::size_t k = 0; k < std::min(shapes.size(), results.size()); ++k)
      if (shapes[k].known() && results[k].dtype() != DType::undefined && shapes[k].values() != results[k].dims())
        throw Error(ErrorKind::unsupported, "ONNX Runtime gives '" + reference_.names[k] + "' another shape than ONNX");
  }

  void expect_the_same(const Feeds& feeds) {
    if (!reference_.feeds.empty()) session_->run(reference_.feeds[0].values);
    const std::vector<Tensor> again = session_->run(feeds);
    for (std::size_t k = 0; k < again.size(); ++k)
      if (!difference("", reference_.outputs.back()[k], again[k], 0).ok)
        throw Error(ErrorKind::unsupported, "the results differ from run to run");
  }

  bool attempt(const Idea& idea, const Extents& extents, const AllDims& dims) {
    Feed feed{.name = idea.name, .values = {}, .kinds_only = idea.kinds_only(), .ordinary = idea.usual};
    try {
      feed.values = made_up(original_, dims, extents, idea.style);
    } catch (const Error& error) {  // no memory, or a type that nothing can be made up of
      refusal_ = error.what();
      return false;
    }
    const bool first = reference_.feeds.empty() && &extents == &idea.extents.front();
    const auto tried = tried_.find({dims, extents.scalars});
    const bool known = tried != tried_.end() && tried->second;  // the original takes these sizes
    const bool too_large = !first && !known && look_ahead(feed.values).largest > kMostElements;
    if (too_large) refusal_ = "no memory: a value within the model is too large";
    const bool ran = !too_large && run(std::move(feed));
    if (idea.style == Style::typical) tried_[{dims, extents.scalars}] = ran;
    return ran;
  }

  /// The first of its alternatives that the original takes. No row where that is a set that was run before.
  void pursue(const Idea& idea) {
    if (idea.kinds_only() && !nan_means_something_) return;
    if ((idea.style == Style::nan || idea.style == Style::infinite) && any_node(flat_.graph(), picks_extremes))
      return;  // infinities come to NaN in sums and differences
    if (idea.style == Style::infinite && any_node(flat_.graph(), adds_parallel_convolutions))
      return keep_row(idea, "infinities of convolutions that are added cancel, of their summed weights they do not");
    if (idea.style == Style::infinite && any_node(flat_.graph(), scales_by_data))
      return keep_row(idea, "ONNX Runtime multiplies the scale of a normalization with the mean first");
    std::string why_not;
    for (const Extents& extents : idea.extents) {
      const AllDims dims = input_dims(original_, extents, options_.input_shapes);
      const auto tried = idea.style == Style::typical ? tried_.find({dims, extents.scalars}) : tried_.end();
      if (tried != tried_.end() && tried->second) return;
      if (tried != tried_.end() || elements(dims) > kMostElements) continue;
      why_not = no_room(elements(dims));
      if (!why_not.empty()) break;
      if (attempt(idea, extents, dims)) return keep_row(idea, "");
      why_not = refusal_;
    }
    if (!why_not.empty()) keep_row(idea, why_not);
  }

  void keep_row(const Idea& idea, std::string dropped) {
    FeedReport row{.name = idea.name, .why = idea.why, .kinds_only = idea.kinds_only(), .dropped = std::move(dropped)};
    if (row.dropped.empty()) row.shapes = shapes_of(reference_.feeds.back().values);
    reference_.list.push_back(std::move(row));
  }

  std::string no_room(double elements) const {
    const double expected = once_ * std::max(elements / std::max(typical_elements_, 1.0), 0.01);
    const double runs = std::min(kRuns, kRunsPerSecond * options_.verify_seconds);
    if (spent_ + expected > std::max(options_.verify_seconds, runs * once_))
      return "no time: the original runs too long";
    return bytes_ > kMostBytes ? "no memory: the results are too large" : "";
  }

  /// Seconds for a run on made-up values: a loop may go on for ever on them. The first set and given ones have no
  /// limit.
  double patience() const { return once_ > 0 ? std::max(2 * options_.verify_seconds, kRunsAsLong * once_) : 0; }

  SessionOptions plain() const { return {.threads = options_.threads, .optimize = false}; }
  Sessions sessions() const { return {runtime_, reference_.folder.get()}; }

  Runtime& runtime_;
  const Model& original_;
  const Options& options_;
  const Model flat_;  ///< the original with its functions written out: what nodes there are, and what they make
  const bool recurrent_, nan_means_something_;
  std::unique_ptr<Session> session_;
  Reference reference_;
  std::map<std::pair<AllDims, bool>, bool> tried_;  ///< with typical values, and whether scalars vary: the original ran
  std::map<AllDims, Outlook> outlooks_;
  std::set<AllDims> survived_;  ///< ONNX Runtime makes something of nothing there
  std::string refusal_;
  double load_ = 0, spent_ = 0, spent_before_ = 0, once_ = 0, bytes_ = 0, typical_elements_ = 1;
};

std::vector<Feed> named(const std::vector<Feeds>& inputs) {
  std::vector<Feed> feeds;
  for (const Feeds& one : inputs)
    feeds.push_back(
        {.name = inputs.size() == 1 ? "given" : "given " + std::to_string(feeds.size() + 1), .values = one});
  return feeds;
}

}  // namespace

std::vector<Feeds> Reference::ordinary() const {
  std::vector<Feeds> list;
  for (const Feed& feed : feeds)
    if (feed.ordinary) list.push_back(feed.values);
  return list;
}

std::string Reference::not_compared(std::size_t output) const {
  if (random[output]) return "it is random";
  for (std::size_t i = 0; i < feeds.size(); ++i)
    if (!feeds[i].kinds_only && outputs[i][output].dtype() != DType::undefined && outputs[i][output].elements() > 0)
      return "";
  return "it has no element on any of the inputs";
}

Reference make_reference(Runtime& runtime, const Model& original, const Options& options, std::vector<Feed> feeds) {
  if (feeds.empty()) check_input_shapes(original, options.input_shapes);
  try {
    Maker maker(runtime, original, options);
    const bool given = !feeds.empty();
    if (!given && options.calibration)  // the first is what users have; others are made up beside it
      if (std::optional<Feeds> sample = options.calibration(0))
        feeds = {{.name = "sample", .values = std::move(*sample)}};
    maker.run_given(std::move(feeds));
    if (!given) maker.make_up();
    return maker.finished();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::usage || error.kind() == ErrorKind::limit) throw;
    Reference none;
    none.why_not = error.what();
    return none;
  }
}

Reference make_reference(Runtime& runtime, const Model& original, const Options& options) {
  return make_reference(runtime, original, options, named(options.inputs));
}

}  // namespace modelflow
