// Constant folding: nodes whose inputs are constant become what they compute.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "modelflow/modelflow.h"
#include "passes/clean/clean.h"
#include "passes/clean/evaluate.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {

namespace {

using Nodes = std::vector<Node*>;

bool holds_text(const Value* value) { return value && value->dtype() == DType::string; }

/// DequantizeLinear of weights stays: it is how a quantized model says what its weights are.
bool foldable_op(const Node& node, const Model& model) {
  if (!deterministic(node) || node.op() == "Constant" || node.op() == "DequantizeLinear") return false;
  if (std::none_of(node.inputs().begin(), node.inputs().end(), [](Value* v) { return v != nullptr; })) return false;
  if (std::any_of(node.inputs().begin(), node.inputs().end(), holds_text)) return false;
  for (const Value* out : node.outputs()) {
    if (!out) continue;
    if (out->is_graph_output() || out->type.kind == Type::Kind::other || holds_text(out)) return false;
  }
  return std::none_of(model.functions.begin(), model.functions.end(),
                      [&](const Function& f) { return f.domain.empty() && f.name == node.op(); });
}

/// The lowest integer divided by -1 stops the processor, and this process with it: nothing runs such a node ahead of
/// time, for it may never be reached. False as well while the operands are not known.
bool divides_safely(const Node& node) {
  if (!node.is("Div") && !node.is("Mod")) return true;
  if (is_float(node.input(0)->dtype())) return true;
  const std::optional<Ints> divisor = const_ints(node.input(1)), dividend = const_ints(node.input(0));
  if (!divisor || !dividend) return false;
  const auto has = [](const Ints& list, std::int64_t number) { return std::ranges::find(list, number) != list.end(); };
  return !has(*divisor, -1) || !(has(*dividend, INT64_MIN) || has(*dividend, INT32_MIN));
}

/// ONNX Runtime makes tensors of negative extents where Expand asks for them, and ends the process where one is read.
bool expands_safely(const Node& node) {
  const std::optional<Ints> shape = node.is("Expand") ? const_ints(node.input(1)) : std::nullopt;
  return !shape || std::ranges::none_of(*shape, [](std::int64_t extent) { return extent < 0; });
}

double size_of(const Value* value) {
  if (!value || !value->type.is_tensor() || !value->shape().has_rank() || !value->shape().known()) return 0;
  double size = bits(value->dtype()) / 8.0;
  for (const std::int64_t d : value->shape().values()) size *= static_cast<double>(std::max<std::int64_t>(d, 0));
  return size;
}

/// True when the size of the output follows from the values of the inputs: such nodes wait until these are known.
bool grows(const Node& node) {
  for (const char* op : {"ConstantOfShape", "Expand", "Tile", "Range", "OneHot", "Pad", "Resize", "Upsample"})
    if (node.is(op)) return true;
  return false;
}

/// Bytes of the outputs as far as they can be told before the node runs; 0 when nothing is known.
double predicted_bytes(Node& node, const Model& model) {
  // Inference has seen these nodes before their inputs became constants.
  if (grows(node)) infer_types(node, model);
  double bytes = 0;
  for (const Value* out : node.outputs()) bytes += size_of(out);
  if (bytes > 0 || !node.is("Range")) return bytes;
  const auto start = const_number(node.input(0)), limit = const_number(node.input(1)),
             step = const_number(node.input(2));
  return start && limit && step && *step != 0 ? 8 * std::max(0.0, (*limit - *start) / *step) : 0;
}

/// Bytes that earlier calls of optimize() on this model added, where they came to the end of what they may add: what
/// they refused is refused again, not folded with a budget that begins anew.
constexpr std::string_view kSpent = "modelflow.folded_bytes";

double spent_before(const Model& model) {
  const auto found = std::ranges::find(model.metadata, kSpent, &Metadata::value_type::first);
  std::int64_t bytes = 0;
  if (found != model.metadata.end())
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), bytes);
  return static_cast<double>(std::max<std::int64_t>(bytes, 0));
}

void remember_spent(Model& model, double bytes) {
  const std::string text = std::to_string(std::llround(bytes));
  const auto found = std::ranges::find(model.metadata, kSpent, &Metadata::value_type::first);
  if (found != model.metadata.end())
    found->second = text;
  else
    model.metadata.emplace_back(kSpent, text);
}

/// One call of the pass on one graph. Folding goes in waves: each evaluates, in one session, every node that is ready.
class Folding {
 public:
  Folding(Graph& graph, Context& context, double& budget) : graph_(graph), context_(context), budget_(budget) {}

  bool came_to_the_limit() const { return limited_; }

  int run() {
    int folded = 0;
    do {
      const std::size_t refused = refused_.size();
      deferred_ = false;
      const int more = wave();
      folded += more;
      if (more == 0 && (!deferred_ || refused_.size() == refused)) break;
    } while (true);
    return folded;
  }

 private:
  int wave();
  bool ready(Node& node);
  bool fits_in_wave(double bytes, double most);
  int commit(const Nodes& part, const Known& results);

  Graph& graph_;
  Context& context_;
  double& budget_;
  std::set<const Node*> refused_;
  std::set<const Value*> pending_;  // what this wave will compute
  double wave_bytes_ = 0;           // of it, as far as that can be told
  bool deferred_ = false;           // whether something waits for the next wave
  bool limited_ = false;            // whether something was refused for its size
};

bool Folding::ready(Node& node) {
  if (refused_.contains(&node) || !foldable_op(node, context_.model)) return false;
  double in_bytes = 0;
  for (const Value* input : node.inputs()) {
    if (!input) continue;
    if (!input->constant() && (grows(node) || !pending_.contains(input))) return false;
    if (input->constant()) in_bytes += static_cast<double>(input->constant()->bytes());
  }
  // What is folded further may be much smaller: the limit proper is checked on the results.
  if (!divides_safely(node) || !expands_safely(node)) return false;
  const double most = 4 * budget_ + 4096, bytes = predicted_bytes(node, context_.model);
  if (bytes - in_bytes <= most) return fits_in_wave(bytes, most);
  context_.miss("fold-constants", &node,
                fmt::format("its result is larger than what is left of the {:.0f} MiB that folding may add",
                            context_.options.max_fold_bytes / (1 << 20)));
  refused_.insert(&node), limited_ = true;
  return false;
}

/// All results of a wave are in memory together: what does not fit beside the others waits for the next one.
bool Folding::fits_in_wave(double bytes, double most) {
  const bool fits = wave_bytes_ == 0 || wave_bytes_ + bytes <= most;
  if (fits) wave_bytes_ += bytes;
  deferred_ |= !fits;
  return fits;
}

/// Nodes that share results are kept or given up together: their growth is judged as one.
std::vector<Nodes> parts_of(const Nodes& nodes) {
  std::map<const Node*, std::size_t> part;
  std::vector<Nodes> parts;
  for (Node* node : nodes) {
    std::set<std::size_t> joined;
    for (const Value* input : node->inputs())
      if (input && input->producer() && part.contains(input->producer())) joined.insert(part[input->producer()]);
    if (joined.empty()) joined.insert(parts.size()), parts.emplace_back();
    const std::size_t home = *joined.begin();
    parts[home].push_back(node);
    part[node] = home;
    joined.erase(joined.begin());
    for (const std::size_t other : joined) {
      for (Node* moved : parts[other]) part[moved] = home;
      parts[home].insert(parts[home].end(), parts[other].begin(), parts[other].end());
      parts[other].clear();
    }
  }
  std::erase_if(parts, [](const Nodes& p) { return p.empty(); });
  return parts;
}

int Folding::commit(const Nodes& part, const Known& results) {
  const std::set<const Node*> inside(part.begin(), part.end());
  const auto outside = [&](const Use& use) { return !inside.contains(use.node); };
  const auto read_inside_only = [&](const Value& v) { return std::none_of(v.uses().begin(), v.uses().end(), outside); };
  double growth = 0;
  std::set<const Value*> freed;
  for (const Node* node : part) {
    for (const Value* out : node->outputs())
      if (out && !read_inside_only(*out)) growth += static_cast<double>(results.at(out).bytes());
    for (const Value* input : node->inputs())
      if (input && input->constant() && &input->graph() == &graph_ && !input->is_graph_output() &&
          read_inside_only(*input))
        freed.insert(input);
  }
  for (const Value* input : freed) growth -= static_cast<double>(input->constant()->bytes());
  if (growth > budget_) {
    context_.miss("fold-constants", part.back(),
                  "the model would grow by " + std::to_string(std::llround(growth)) + " bytes");
    refused_.insert(part.begin(), part.end()), limited_ = true;
    return 0;
  }
  budget_ -= std::max(0.0, growth);
  for (const Node* node : part)
    for (Value* out : node->outputs())
      if (out && !read_inside_only(*out)) graph_.replace(*out, graph_.add_constant(results.at(out), out->name()));
  return static_cast<int>(part.size());
}

int Folding::wave() {
  if (context_.options.progress) context_.options.progress("clean: fold-constants", 0);
  Nodes nodes;
  pending_.clear();
  wave_bytes_ = 0;
  for (const auto& node : graph_.nodes()) {
    if (!ready(*node)) continue;
    nodes.push_back(node.get());
    for (const Value* out : node->outputs())
      if (out) pending_.insert(out);
  }
  if (nodes.empty()) return 0;
  if (!context_.runtime) {
    context_.note("constant folding left " + std::to_string(nodes.size()) + " nodes: no ONNX Runtime was found");
    return 0;
  }
  Known results;
  for (const Failure& failure : evaluate(nodes, context_, results)) {
    context_.miss("fold-constants", failure.node, failure.reason);
    refused_.insert(failure.node);
  }
  std::erase_if(nodes, [&](const Node* node) {
    return std::any_of(node->outputs().begin(), node->outputs().end(),
                       [&](Value* out) { return out && !results.contains(out); });
  });
  int folded = 0;
  for (const Nodes& part : parts_of(nodes)) folded += commit(part, results);
  graph_.prune();
  return folded;
}

}  // namespace

Pass fold_constants() {
  // The budget belongs to the pass, that is to one optimize(): all calls on all graphs share it.
  auto budget = std::make_shared<std::optional<double>>();
  return {
      .name = "fold-constants",
      .doc = "Evaluates nodes whose inputs are constant with ONNX Runtime, as far as the model does not grow too much.",
      .run = [budget](Graph& graph, Context& context) {
        const double most = context.options.max_fold_bytes;
        if (!*budget) *budget = std::max(most - spent_before(context.model), 0.0);
        Folding folding(graph, context, **budget);
        const int folded = folding.run();
        if (folding.came_to_the_limit())
          remember_spent(context.model, std::max(most - **budget, spent_before(context.model)));
        if (folded) context.hit("fold-constants", folded);
        return folded;
      }};
}

}  // namespace modelflow::passes
