#include <onnx/checker.h>
#include <onnx/defs/schema.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "modelflow/error.h"
#include "src/onnx/read_graph.h"

namespace modelflow::proto {
namespace {

constexpr std::size_t kMaxFunctions = 10'000;
constexpr int kMaxCallDepth = 100;

using FunctionId = std::tuple<std::string, std::string, std::string>;

void collect_calls(const Graph& graph, const std::map<FunctionId, std::size_t>& ids, std::vector<std::size_t>& calls) {
  for (const auto& node : graph.nodes()) {
    auto found = ids.find({node->domain(), node->op(), node->overload});
    if (found != ids.end()) calls.push_back(found->second);
    for (const Graph* inner : node->subgraphs()) collect_calls(*inner, ids, calls);
  }
}

// Longest chain of calls below each function; a function that is met again on its own chain is recursive.
class CallDepth {
 public:
  CallDepth(const Model& model, std::vector<std::vector<std::size_t>> calls)
      : model_(model), calls_(std::move(calls)), depth_(calls_.size(), 0) {}
  int of(std::size_t function, int level = 1) {
    if (level > kMaxCallDepth) {
      throw Error(ErrorKind::limit,
                  "local functions call each other more than " + std::to_string(kMaxCallDepth) + " levels deep");
    }
    int& depth = depth_[function];
    if (depth < 0) {
      throw Error(ErrorKind::invalid_input,
                  "local function '" + model_.functions[function].name + "' calls itself, directly or indirectly");
    }
    if (depth > 0) return depth;
    depth = -1;
    int deepest = 0;
    for (std::size_t callee : calls_[function]) deepest = std::max(deepest, of(callee, level + 1));
    return depth_[function] = deepest + 1;
  }

 private:
  const Model& model_;
  std::vector<std::vector<std::size_t>> calls_;
  std::vector<int> depth_;
};

}  // namespace

std::string one_line(std::string_view text) {
  std::string result;
  for (char c : text) {
    bool blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!blank) {
      result += c;
    } else if (!result.empty() && result.back() != ' ') {
      result += ' ';
    }
  }
  while (!result.empty() && result.back() == ' ') result.pop_back();
  return result;
}

void check_schema(const NodeProto& node, const GraphReader::Opsets& opsets) {
  auto import = opsets.find(read_domain(node.domain()));
  if (import == opsets.end()) return;
  const auto* schema = OpSchemaRegistry::Schema(node.op_type(), static_cast<int>(import->second), import->first);
  if (!schema || schema->Deprecated()) return;
  try {
    schema->Verify(node);
  } catch (const std::exception& error) {
    throw Error(ErrorKind::invalid_input, one_line(error.what()));
  }
}

void check_functions(const Model& model) {
  if (model.functions.size() > kMaxFunctions) {
    throw Error(ErrorKind::limit, "more than " + std::to_string(kMaxFunctions) + " local functions");
  }
  std::map<FunctionId, std::size_t> ids;
  for (std::size_t i = 0; i < model.functions.size(); ++i) {
    const Function& function = model.functions[i];
    if (!ids.emplace(FunctionId{function.domain, function.name, function.overload}, i).second) {
      throw Error(ErrorKind::invalid_input, "local function '" + function.name + "' is there twice");
    }
  }
  std::vector<std::vector<std::size_t>> calls(model.functions.size());
  for (std::size_t i = 0; i < calls.size(); ++i) collect_calls(*model.functions[i].body, ids, calls[i]);
  CallDepth depth(model, std::move(calls));
  for (std::size_t i = 0; i < model.functions.size(); ++i) depth.of(i);
}

}  // namespace modelflow::proto
