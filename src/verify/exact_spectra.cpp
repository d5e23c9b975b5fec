// Fourier transforms of the reference in double precision.
#include "src/verify/exact_spectra.h"

#include "modelflow/pass.h"

namespace modelflow {
namespace {

constexpr auto kDouble = static_cast<std::int64_t>(DType::f64), kFloat = static_cast<std::int64_t>(DType::f32);

bool is_spectrum(const Node& node) { return node.is("STFT") || node.is("DFT"); }

bool has_spectra(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (is_spectrum(*node)) return true;
    for (const Graph* inner : node->subgraphs())
      if (has_spectra(*inner)) return true;
  }
  return false;
}

void make_exact(Node& node) {
  Graph& graph = node.graph();
  for (const std::size_t i : {0, 2}) {  // the signal; the window of an STFT, the axis of a DFT
    if (!node.input(i) || (i == 2 && node.is("DFT"))) continue;
    Node& cast = graph.add("Cast", {node.input(i)}, {.before = &node, .attrs = {{"to", kDouble}}});
    graph.set_input(node, i, cast.output());
  }
  Node& wide = graph.add(node.op(), node.inputs(), {.before = &node, .attrs = node.attrs});
  Node& narrow = graph.add("Cast", {wide.output()}, {.before = &node, .attrs = {{"to", kFloat}}});
  graph.replace(*node.output(), *narrow.output());
  wide.output()->type = {};
  graph.erase(node);
}

void make_exact(Graph& graph) {
  std::vector<Node*> found;
  for (const auto& node : graph.nodes()) {
    if (is_spectrum(*node) && node->input(0)->dtype() == DType::f32 && node->output()) found.push_back(node.get());
    for (Graph* inner : node->subgraphs()) make_exact(*inner);
  }
  for (Node* node : found) make_exact(*node);
}

}  // namespace

std::optional<Model> with_exact_spectra(const Model& model) {
  if (!has_spectra(model.graph())) return {};
  Model exact = model;
  infer_types(exact);  // float32 or not
  make_exact(exact.graph());
  return exact;
}

}  // namespace modelflow
