// Opsets, functions and metadata of models that become one.
#include "src/compose/together.h"

#include <fmt/format.h>

#include <algorithm>

#include "modelflow/function.h"
#include "modelflow/modelflow.h"
#include "modelflow/pass.h"
#include "src/emit/emit.h"
#include "src/onnx/operators.h"

namespace modelflow {
namespace {

[[noreturn]] void refuse(const Part& part, const std::string& why) {
  throw Error(ErrorKind::unsupported, fmt::format("'{}' cannot be part of another model: {}", part.name, why));
}

void refuse_what_has_no_place(const Part& part) {
  if (!part.model.graph().pinned.empty())
    refuse(part,
           "it has sparse initializers, quantization annotations or training information, which are not carried over");
}

/// Every operator of this domain means the same in both versions.
void check_same(const Part& part, const Graph& graph, const std::string& domain, std::int64_t version,
                std::int64_t wanted) {
  for (const auto& node : graph.nodes()) {
    if (node->domain() == domain && !same_operator(*node, version, wanted))
      refuse(part, fmt::format("{} has version {} of domain {}, another model has {}", node->label(), version, domain,
                               wanted));
    for (const Graph* inner : node->subgraphs()) check_same(part, *inner, domain, version, wanted);
  }
}

std::map<std::string, std::int64_t> newest_opsets(const std::vector<Part>& parts) {
  std::map<std::string, std::int64_t> newest;
  for (const Part& part : parts)
    for (const auto& [domain, version] : part.model.opsets) newest[domain] = std::max(newest[domain], version);
  return newest;
}

void raise(Part& part, const std::map<std::string, std::int64_t>& newest, std::vector<std::string>& notes) {
  for (const auto& [domain, version] : part.model.opsets)
    if (!domain.empty() && version != newest.at(domain))
      check_same(part, part.model.graph(), domain, version, newest.at(domain));
  const std::int64_t from = part.model.opset();
  if (from == 0 || from == newest.at("")) return;
  part.model = inline_functions(std::move(part.model));
  infer_types(part.model);
  if (const Verdict raised = raise_opset(part.model, newest.at("")); !raised) refuse(part, raised.reason);
  notes.push_back(fmt::format("'{}' raised from opset {} to {}", part.name, from, newest.at("")));
}

bool share_a_name(const Model& one, const Model& other) {
  const auto same_call = [](const Function& a, const Function& b) {
    return a.domain == b.domain && a.name == b.name && a.overload == b.overload;
  };
  return std::ranges::any_of(one.functions, [&](const Function& a) {
    return std::ranges::any_of(other.functions, [&](const Function& b) { return same_call(a, b); });
  });
}

template <class Visit>
void each_node(const Graph& graph, const Visit& visit) {
  for (const auto& node : graph.nodes()) {
    visit(*node);
    for (const Graph* inner : node->subgraphs()) each_node(*inner, visit);
  }
}

/// Whether nodes of `other`, which mean an operator, would call functions of `model` in one file with it.
bool captures(const Model& model, const Model& other) {
  bool any = false;
  const auto look = [&](const Node& node) { any |= find_function(model, node) && !find_function(other, node); };
  if (model.functions.empty()) return any;
  each_node(other.graph(), look);
  for (const Function& function : other.functions) each_node(*function.body, look);
  return any;
}

/// Whether the name of a function means something else in another part. Of functions of one name the first keeps it.
bool clashes(const std::vector<Part>& parts, const Part& part) {
  return std::ranges::any_of(parts, [&](const Part& other) {
    if (&other == &part) return false;
    return captures(part.model, other.model) || (&other < &part && share_a_name(part.model, other.model));
  });
}

void write_out_clashing(const std::vector<Part>& parts, Part& part, std::vector<std::string>& notes) {
  if (!clashes(parts, part)) return;
  part.model = inline_functions(std::move(part.model));
  notes.push_back(fmt::format(
      "functions of '{}' are written out: another model has functions or operators of the same name", part.name));
  if (clashes(parts, part))
    refuse(part, "it has functions of another opset than its own, and another model something else of the same name");
}

void take_functions(Model& whole, Model& part) {
  for (Function& function : part.functions) whole.functions.push_back(std::move(function));
  part.functions.clear();
}

/// What two parts say under one name is told apart by the name of the part. What optimize() remembers of a part is not
/// true of the whole.
void take(Metadata& whole, const Metadata& metadata, const std::string& part) {
  for (const auto& [key, value] : metadata) {
    if (key.starts_with(std::string(kDomain) + ".")) continue;
    const auto found = std::ranges::find(whole, key, [](const auto& entry) { return entry.first; });
    if (found == whole.end())
      whole.emplace_back(key, value);
    else if (found->second != value)
      whole.emplace_back(part + "." + key, value);
  }
}

void take(std::string& whole, const std::string& doc) { whole += whole.empty() || doc.empty() ? doc : "\n" + doc; }

}  // namespace

Model bring_together(std::vector<Part>& parts, std::vector<std::string>& notes) {
  for (Part& part : parts) {
    refuse_what_has_no_place(part);
    absorb_functions(part.model);  // our own ops are fused anew, over all borders
  }
  Model whole;
  whole.opsets = newest_opsets(parts);
  whole.ir_version = 0;
  for (Part& part : parts) raise(part, whole.opsets, notes);
  for (Part& part : parts) write_out_clashing(parts, part, notes);
  for (Part& part : parts) {
    take_functions(whole, part.model);
    const Graph& graph = part.model.graph();
    take(whole.metadata, part.model.metadata, part.name);
    take(whole.graph().metadata, graph.metadata, part.name);
    take(whole.doc, part.model.doc);
    take(whole.graph().doc, graph.doc);
    whole.ir_version = std::max(whole.ir_version, part.model.ir_version);
    whole.had_external_data |= part.model.had_external_data;
    whole.graph().name += (whole.graph().name.empty() ? "" : "+") + part.name;
  }
  const Model& first = parts.front().model;
  whole.producer_name = first.producer_name;
  whole.producer_version = first.producer_version;
  whole.domain = first.domain;
  whole.model_version = first.model_version;
  return whole;
}

}  // namespace modelflow
