// Opsets, functions and metadata of models that become one.
#include "src/compose/together.h"

#include <fmt/format.h>

#include <algorithm>

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

bool same_call(const Function& a, const Function& b) {
  return a.domain == b.domain && a.name == b.name && a.overload == b.overload;
}

bool clashes(const Model& whole, const Model& part) {
  return std::ranges::any_of(part.functions, [&](const Function& function) {
    return std::ranges::any_of(whole.functions, [&](const Function& other) { return same_call(function, other); });
  });
}

void take_functions(Model& whole, Part& part, std::vector<std::string>& notes) {
  if (clashes(whole, part.model)) {
    part.model = inline_functions(std::move(part.model));
    notes.push_back(
        fmt::format("functions of '{}' are written out: another model has some of the same name", part.name));
    if (clashes(whole, part.model)) refuse(part, "it has functions of another opset than its own");
  }
  for (Function& function : part.model.functions) whole.functions.push_back(std::move(function));
  part.model.functions.clear();
}

/// What two parts say under one name is told apart by the name of the part.
void take_metadata(Model& whole, const Part& part) {
  for (const auto& [key, value] : part.model.metadata) {
    const auto found = std::ranges::find(whole.metadata, key, [](const auto& entry) { return entry.first; });
    if (found == whole.metadata.end())
      whole.metadata.emplace_back(key, value);
    else if (found->second != value)
      whole.metadata.emplace_back(part.name + "." + key, value);
  }
}

}  // namespace

Model bring_together(std::vector<Part>& parts, std::vector<std::string>& notes) {
  for (Part& part : parts) {
    refuse_what_has_no_place(part);
    absorb_functions(part.model);  // our own ops are fused anew, over all borders
  }
  Model whole;
  whole.opsets = newest_opsets(parts);
  whole.ir_version = 0;
  for (Part& part : parts) {
    raise(part, whole.opsets, notes);
    take_functions(whole, part, notes);
    take_metadata(whole, part);
    whole.ir_version = std::max(whole.ir_version, part.model.ir_version);
    whole.had_external_data |= part.model.had_external_data;
    whole.graph().name += (whole.graph().name.empty() ? "" : "+") + part.name;
    whole.doc += whole.doc.empty() || part.model.doc.empty() ? part.model.doc : "\n" + part.model.doc;
  }
  const Model& first = parts.front().model;
  whole.producer_name = first.producer_name;
  whole.producer_version = first.producer_version;
  whole.domain = first.domain;
  whole.model_version = first.model_version;
  return whole;
}

}  // namespace modelflow
