// A wrong result made small and written down for whoever mends it.
#include "src/reproduce.h"

#include <algorithm>

#include "modelflow/data.h"
#include "src/core/new_file.h"
#include "src/core/stopwatch.h"
#include "src/measure/extract.h"
#include "src/verify/bisect.h"

namespace modelflow {
namespace {

constexpr double kSeconds = 30;  // for making it smaller

using Nodes = std::vector<const Node*>;

/// Every value of the main graph that the original computes from these inputs, and the inputs with their defaults.
Feeds all_values(Runtime& runtime, const Model& original, const Feeds& feeds, int threads) {
  Model model = original;
  Graph& graph = model.graph();
  for (const auto& node : graph.nodes())
    for (Value* value : node->outputs())
      if (value && !value->is_graph_output()) graph.add_output(*value);
  const auto session = open_session(runtime, model, {.threads = threads, .optimize = false});
  const std::vector<Tensor> results = session->run(feeds);
  const auto outputs = session->outputs();
  Feeds all = feeds;
  for (const Value* input : original.graph().inputs())
    if (input->is_initializer()) all.emplace(input->name(), *input->initializer());
  for (std::size_t i = 0; i < results.size(); ++i)
    if (results[i].dtype() != DType::undefined) all[outputs[i].first] = results[i];
  return all;
}

/// A model and what to feed it.
struct Specimen {
  Model model;
  Feed feed;
};

class Shrinker {
 public:
  Shrinker(const Finding& finding, const Without& without, const Outcome& found, Runtime& runtime, Feed feed)
      : finding_(finding), without_(without), found_(found), typed_(finding.original), feed_(std::move(feed)) {
    infer_types(typed_);
    values_ = all_values(runtime, finding.original, feed_.values, finding.options.threads);
  }

  /// The whole model where no part of it shows the fault.
  Specimen smallest() {
    Nodes nodes;
    for (const auto& node : typed_.graph().nodes()) nodes.push_back(node.get());
    const auto any_nested = [](const Node* node) { return !node->subgraphs().empty(); };
    if (std::any_of(nodes.begin(), nodes.end(), any_nested) || !fails(nodes)) return {finding_.original, feed_};
    const auto end = first_culprit(nodes.size(), [&](std::size_t count) { return fails(slice(nodes, 0, count)); }) + 1;
    nodes = slice(nodes, 0, end);
    const auto skipped =
        first_culprit(nodes.size(), [&](std::size_t count) { return !fails(slice(nodes, count, nodes.size())); });
    nodes = slice(nodes, skipped, nodes.size());
    for (std::size_t i = 0; i < nodes.size() && nodes.size() > 1;) {
      Nodes fewer = nodes;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (!is_late() && fails(fewer))
        nodes = std::move(fewer);
      else
        ++i;
    }
    return *specimen(nodes);
  }

 private:
  static Nodes slice(const Nodes& nodes, std::size_t begin, std::size_t end) {
    return {nodes.begin() + static_cast<std::ptrdiff_t>(begin), nodes.begin() + static_cast<std::ptrdiff_t>(end)};
  }

  bool is_late() const { return watch_.seconds() > kSeconds; }

  /// None where the nodes read what ONNX Runtime gives no tensor for.
  std::optional<Specimen> specimen(const Nodes& nodes) const {
    Specimen part{extract(typed_, nodes), feed_};
    part.feed.values.clear();
    for (const Value* input : part.model.graph().inputs()) {
      const auto value = values_.find(input->name());
      if (value == values_.end()) return std::nullopt;
      part.feed.values.insert(*value);
    }
    return part;
  }

  bool fails(const Nodes& nodes) const {
    if (nodes.empty()) return false;
    try {
      const std::optional<Specimen> part = specimen(nodes);
      if (!part) return false;
      const Verifier verifier = finding_.verifier.for_feeds(part->model, {part->feed});
      if (!verifier.possible()) return false;
      Report scratch;
      const Search search(part->model, finding_.pipeline, verifier);
      const Outcome outcome = search.outcome(search.laid_out(search.forms(without_, scratch), without_, scratch));
      return !outcome.ok && outcome.kernels_only == found_.kernels_only;
    } catch (const std::exception&) {
      return found_.feed.empty();  // the fault is an exception as well
    }
  }

  const Finding& finding_;
  const Without& without_;
  const Outcome& found_;
  Model typed_;
  Feed feed_;
  Feeds values_;
  Stopwatch watch_;
};

/// Large tensors have no text form.
bool is_whole(const std::string& text) {
  try {
    (void)Model::from_text(text);
    return true;
  } catch (const Error&) {
    return false;
  }
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  NewFile file(path);
  file.write(text.data(), text.size(), 0);
  file.replace();
}

std::filesystem::path folder_for(const Options& options, std::size_t faults) {
  const std::filesystem::path folder =
      faults == 0 ? options.reproducer : options.reproducer / std::to_string(faults + 1);
  make_folder(folder);
  return folder;
}

void write(const std::filesystem::path& folder, const Finding& finding, const Without& without, const Fault& fault,
           const Specimen& specimen) {
  const std::string text = specimen.model.to_text();
  std::string about = fault.what + "\n\n" + "feed: " + specimen.feed.name + "\n";
  about += "model.onnx, model.onnxtxt: the part of the model that shows it" +
           std::string(is_whole(text) ? "\n" : " (as text only to be read: its constants are too large)\n");
  about += "wrong.onnx: what became of it\nfeeds.npz: its inputs, where numpy has their types\n";
  specimen.model.save(folder / "model.onnx");
  write_text(folder / "model.onnxtxt", text);
  write_text(folder / "fault.txt", about);
  Report scratch;
  const Search search(specimen.model, finding.pipeline, finding.verifier);
  search.runnable(search.forms(without, scratch), without, scratch).save(folder / "wrong.onnx");
  if (!specimen.feed.values.empty()) write_feeds(folder / "feeds.npz", specimen.feed.values);
}

}  // namespace

void keep_reproducer(const Finding& finding, const Without& without, const Outcome& found, const Fault& fault,
                     Report& report) {
  Specimen specimen{finding.original, {}};
  try {
    const Feed* feed = finding.verifier.feed_of(found);
    const auto& feeds = finding.verifier.reference().feeds;
    if (feed || !feeds.empty())
      specimen = Shrinker(finding, without, found, finding.verifier.runtime(), feed ? *feed : feeds.front()).smallest();
  } catch (const Error&) {  // the model stays whole
    if (const Feed* feed = finding.verifier.feed_of(found)) specimen.feed = *feed;
  }
  const std::filesystem::path folder = folder_for(finding.options, report.faults.size());
  try {
    write(folder, finding, without, fault, specimen);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::output) throw;
    report.notes.push_back(std::string("the reproducer is not complete: ") + error.what());
  }
  report.notes.push_back("reproducer: " + std::to_string(specimen.model.graph().nodes().size()) + " nodes in " +
                         folder.string());
}

}  // namespace modelflow
