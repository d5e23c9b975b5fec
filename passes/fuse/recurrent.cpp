// LSTM and GRU -> modelflow.LSTM and modelflow.GRU. Initial states of zeros are dropped, and the Transposes with which
// exporters swap the axes of time and batch become x_layout and y_layout.
#include <algorithm>
#include <cctype>

#include "modelflow/modelflow.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/recurrent_result.h"
#include "passes/graph/edits.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

/// Inputs of the standard ops.
enum Input : std::size_t { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kPeepholes };

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// Activations as the standard has them where nothing is said.
bool usual_activations(const Node& node, std::int64_t dirs) {
  const Attr* given = node.attrs.find("activations");
  if (!given) return true;
  const Strings usual = node.is("LSTM") ? Strings{"sigmoid", "tanh", "tanh"} : Strings{"sigmoid", "tanh"};
  const auto* names = std::get_if<Strings>(given);
  if (!names || names->size() != usual.size() * static_cast<std::size_t>(dirs)) return false;
  for (std::size_t i = 0; i < names->size(); ++i)
    if (lower((*names)[i]) != usual[i % usual.size()]) return false;
  return true;
}

struct States {
  Value* h = nullptr;
  Value* c = nullptr;
};

States states_of(const Node& node) {
  States states{node.input(kInitialH), node.is("LSTM") ? node.input(kInitialC) : nullptr};
  if (states.h && is_zero(*states.h) && (!states.c || is_zero(*states.c))) return {};
  if (!states.h && states.c && is_zero(*states.c)) return {};
  return states;
}

Verdict check(const Node& node, std::int64_t dirs) {
  if (!node.input(kX) || node.input(kX)->dtype() != DType::f32) return no("x is not float32");
  for (const std::size_t i : {kW, kR, kB}) {
    if (node.input(i) && !node.input(i)->constant()) return no("is not constant", node.input(i)->name());
  }
  for (const std::size_t i : {kW, kR})
    if (node.input(i)->constant()->rank() != 3) return no("is not of rank 3", node.input(i)->name());
  if (!usual_activations(node, dirs)) return no("its activations are not the usual ones");
  if (node.is("LSTM") && node.input(kPeepholes) && !is_zero(*node.input(kPeepholes))) return no("it has peepholes");
  if (node.attrs.integer("input_forget") != 0) return no("its input and forget gates are coupled");
  const States states = states_of(node);
  if (node.is("LSTM") && !states.h != !states.c) return no("it has one initial state only");
  return yes();
}

/// The other order of time and batch behind it; null when `value` is anything else, or has other readers.
Value* behind_swap(const Value& value) {
  const Node* node = value.producer();
  if (!node || &node->graph() != &value.graph() || !only_reader(value) || !node->is("Transpose")) return nullptr;
  return node->attrs.ints("perm") == Ints{1, 0, 2} ? node->input(0) : nullptr;
}

/// The same tensor with its first two axes in the other order, computed in front of `before`.
Value& swapped(Value& value, Node& before, Context& context) {
  Node& made = before.graph().add("Transpose", {&value}, {.before = &before, .attrs = {{"perm", Ints{1, 0, 2}}}});
  infer_types(made, context.model);
  return *made.output();
}

Attrs attrs_of(const Node& node, const States& states) {
  Attrs attrs;
  attrs.set("hidden_size", node.input(kR)->constant()->dims()[2]);
  attrs.set("direction", Attr(node.attrs.text("direction", "forward")));
  attrs.set("has_bias", node.input(kB) ? 1 : 0).set("has_lengths", node.input(kLengths) ? 1 : 0);
  attrs.set("has_state", states.h ? 1 : 0).set("clip", Attr(node.attrs.number("clip")));
  if (node.is("GRU")) attrs.set("linear_before_reset", node.attrs.integer("linear_before_reset"));
  std::string outputs;
  for (std::size_t i = 0; i < node.outputs().size(); ++i) {
    const Value* output = node.output(i);
    if (!output || (output->uses().empty() && !output->is_graph_output())) continue;
    outputs += std::string(outputs.empty() ? "" : " ") + (i == 0 ? "Y" : i == 1 ? "Y_h" : "Y_c");
  }
  return attrs.set("outputs", Attr(outputs));
}

/// All outputs of `node` are those of `fused`, in order; with `batch_first` the states have the batch first.
void take_outputs(Node& node, Node& fused, bool batch_first, Context& context) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < node.outputs().size(); ++i) {
    Value* output = node.output(i);
    if (!output || (output->uses().empty() && !output->is_graph_output())) continue;
    Value* by = fused.output(next++);
    node.graph().replace(*output, i > 0 && batch_first ? swapped(*by, node, context) : *by);
  }
}

/// The fused form of one node in its place; null when it stays.
Node* convert(Node& node, Context& context) {
  const bool batch_first = node.attrs.integer("layout") != 0;
  const std::int64_t dirs = node.attrs.text("direction", "forward") == "bidirectional" ? 2 : 1;
  const std::string rule = lower(node.op());
  if (const Verdict verdict = check(node, dirs); !verdict) {
    context.miss(rule, &node, verdict.reason);
    return nullptr;
  }
  Graph& graph = node.graph();
  const States states = states_of(node);
  Attrs attrs = attrs_of(node, states);
  if (attrs.text("outputs").empty()) return nullptr;
  Value* x = node.input(kX);
  Value* turned = batch_first ? nullptr : behind_swap(*x);
  attrs.set("x_layout", batch_first || turned ? "BSI" : "SBI").set("y_layout", batch_first ? "BSDH" : "SDBH");
  std::vector<Value*> inputs = {turned ? turned : x};
  for (const std::size_t i : {kW, kR, kB})
    if (node.input(i)) inputs.push_back(in_graph(graph, node.input(i)));
  if (Value* lengths = node.input(kLengths)) {
    Node& cast = graph.add("Cast", {lengths}, {.before = &node, .attrs = {{"to", std::int64_t{1}}}});
    infer_types(cast, context.model);
    inputs.push_back(cast.output());
  }
  for (Value* state : {states.h, states.c})
    if (state) inputs.push_back(batch_first ? &swapped(*state, node, context) : state);
  const auto outputs = static_cast<std::size_t>(1 + std::ranges::count(attrs.text("outputs"), ' '));
  Node* fused = make_fused(graph, context, rule, "modelflow." + node.op(), std::move(inputs), attrs, node, outputs);
  if (!fused) return nullptr;
  fused->name = node.name;
  fused->doc = node.doc;
  take_outputs(node, *fused, batch_first, context);
  graph.erase(node);
  context.hit(rule);
  return fused;
}

int run(Graph& graph, Context& context) {
  std::vector<Node*> nodes, fused;
  for (const auto& node : graph.nodes()) {
    if (node->is("LSTM") || node->is("GRU")) nodes.push_back(node.get());
  }
  for (Node* node : nodes) {
    if (Node* made = convert(*node, context)) fused.push_back(made);
  }
  auto changes = static_cast<int>(fused.size());
  for (Node* node : fused) changes += order_y(*node, context);
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass fuse_recurrent() {
  return {
      .name = "fuse-recurrent",
      .doc =
          "LSTM and GRU with constant weights, and the Transposes of time and batch around them -> modelflow.LSTM, GRU",
      .run = run};
}

}  // namespace modelflow::passes
