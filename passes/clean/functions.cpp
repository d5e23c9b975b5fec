// Exporters that write a local function for every layer or operator (pkg.torch, pkg.onnxscript) hide what could be
// fused across the calls, and no pass looks into a body. In place of the calls both are open.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "modelflow/function.h"
#include "modelflow/modelflow.h"
#include "passes/clean/clean.h"

namespace modelflow::passes {

namespace {

/// Functions that call functions grow exponentially; a model of more nodes than this is no faster for it.
constexpr double kMostNodes = 100'000;

/// Domains that runtimes have kernels for: a function there is what runs where the kernel is missing, and ours are
/// written out before the first pass.
constexpr std::array kServed = {"ai.onnx", "com.microsoft", "org.pytorch.aten", "modelflow"};

bool served(const std::string& domain) {
  return domain.empty() ||
         std::any_of(kServed.begin(), kServed.end(), [&](const char* prefix) { return domain.starts_with(prefix); });
}

class Calls {
 public:
  Calls(Model& model, Context& context) : model_(model), context_(context) {}

  int write_out() {
    nodes_ = count(model_.graph(), false);
    walk(model_.graph());
    return changes_;
  }

 private:
  void walk(Graph& graph) {
    std::vector<Node*> nodes;
    for (const auto& node : graph.nodes()) nodes.push_back(node.get());
    for (Node* node : nodes) {
      const Function* function = find_function(model_, *node);
      if (!function || !write_out(*node, *function))
        for (Graph* inner : node->subgraphs()) walk(*inner);
    }
  }

  bool write_out(Node& call, const Function& function) {
    const std::string why_not = call.subgraphs().empty() ? reason(function) : "it hands a graph over";
    if (!why_not.empty()) {
      context_.miss("inline-function", &call, why_not);
      return false;
    }
    nodes_ += size(function) - 1;
    for (const auto& [domain, version] : function.opsets) model_.opsets.emplace(domain, version);
    inline_call(call, function);
    context_.hit("inline-function");
    ++changes_;
    return true;
  }

  /// Why calls of the function stay; empty: they need not.
  std::string reason(const Function& function) {
    if (served(function.domain)) return "runtimes may have a kernel for " + function.domain + ":" + function.name;
    for (const auto& [domain, version] : function.opsets) {
      const auto imported = model_.opsets.find(domain);
      if (imported != model_.opsets.end() && imported->second != version)
        return "its body is written for opset " + std::to_string(version) + " of '" + domain + "', the model for " +
               std::to_string(imported->second);
    }
    if (nodes_ + size(function) > kMostNodes) return "with its body in place the model would be too large";
    return "";
  }

  /// Nodes of the body with all calls in it written out.
  double size(const Function& function) {
    const auto [known, fresh] = sizes_.emplace(&function, INFINITY);  // a function that calls itself never ends
    return fresh ? sizes_[&function] = count(*function.body, true) : known->second;
  }

  double count(const Graph& graph, bool inside_of_calls) {
    double nodes = 0;
    for (const auto& node : graph.nodes()) {
      const Function* callee = inside_of_calls ? find_function(model_, *node) : nullptr;
      nodes += callee ? size(*callee) : 1;
      for (const Graph* inner : node->subgraphs()) nodes += count(*inner, inside_of_calls);
    }
    return nodes;
  }

  Model& model_;
  Context& context_;
  std::map<const Function*, double> sizes_;
  double nodes_ = 0;
  int changes_ = 0;
};

void add_domains(const Graph& graph, std::set<std::string>& domains) {
  for (const auto& node : graph.nodes()) {
    domains.insert(node->domain());
    for (const Graph* inner : node->subgraphs()) add_domains(*inner, domains);
  }
}

int drop_uncalled(Model& model) {
  const std::set<const Function*> called = called_functions(model);
  std::set<std::string> domains;
  add_domains(model.graph(), domains);
  for (const Function* function : called) add_domains(*function->body, domains);
  std::vector<Function> kept;
  for (Function& function : model.functions) {
    if (called.contains(&function))
      kept.push_back(std::move(function));
    else if (!function.domain.empty() && !domains.contains(function.domain))
      model.opsets.erase(function.domain);
  }
  const auto dropped = static_cast<int>(model.functions.size() - kept.size());
  model.functions = std::move(kept);
  return dropped;
}

int inline_all(Context& context) {
  Model& model = context.model;
  int changes = 0;
  // What a call leaves behind may be calls itself.
  for (int more = 1; more; changes += more) more = Calls(model, context).write_out();
  if (changes) infer_types(model);
  return changes + drop_uncalled(model);
}

}  // namespace

Pass inline_functions() {
  return {.name = "inline-functions",
          .doc = "Writes local functions out in place of their calls, unless runtimes may have kernels for them.",
          .run = [](Graph&, Context& context) { return context.model.functions.empty() ? 0 : inline_all(context); },
          .whole_model = true};
}

}  // namespace modelflow::passes
