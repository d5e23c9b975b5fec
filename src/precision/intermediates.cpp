// Inner values of a model on samples, in groups that fit into memory.
#include "src/precision/intermediates.h"

#include <map>
#include <set>

#include "src/verify/compare.h"

namespace modelflow {
namespace {

using Names = std::vector<std::string>;

/// Results of one run that are kept at a time; the runtime's own copy of them is there as well.
constexpr double kMostBytes = 256 << 20;

/// The model with the shapes of these values as outputs, behind its own.
Model with_shapes(const Model& model, const Names& values) {
  Model extended = model;
  Graph& graph = extended.graph();
  for (const std::string& name : values) {
    Value* shape = graph.add("Shape", {graph.find(name)}, {.attrs = {}, .name = "shape_of_" + name}).output();
    shape->type = Type::tensor(DType::i64, Shape(std::vector<Dim>(1)));
    graph.add_output(*shape);
  }
  return extended;
}

std::map<std::string, double> bytes_of(const Sessions& sessions, const Model& model, const Names& values,
                                       const Feeds& sample, const SessionOptions& options) {
  std::map<std::string, double> bytes;
  Names unknown;
  for (const std::string& name : values) {
    const Shape& shape = model.graph().find(name)->shape();
    bytes[name] = shape.known_elements() * sizeof(float);
    if (!shape.has_rank() || !shape.known()) unknown.push_back(name);
  }
  if (unknown.empty()) return bytes;
  const std::vector<Tensor> outputs = open_session(sessions, with_shapes(model, unknown), options)->run(sample);
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    double& size = bytes[unknown[i]] = sizeof(float);
    for (const std::int64_t extent : outputs.at(outputs.size() - unknown.size() + i).as<std::int64_t>())
      size *= static_cast<double>(extent);
  }
  return bytes;
}

}  // namespace

Model with_outputs(const Model& model, const Names& values) {
  Model extended = model;
  Graph& graph = extended.graph();
  for (const std::string& name : values) {
    Value* value = graph.find(name);
    if (!value->is_graph_output() && !value->is_graph_input()) graph.add_output(*value);
  }
  return extended;
}

std::vector<Names> groups_in_memory(const Sessions& sessions, const Model& model, const Names& values,
                                    const Feeds& sample, const SessionOptions& session) {
  const std::map<std::string, double> bytes = bytes_of(sessions, model, values, sample, session);
  std::vector<Names> groups;
  double sum = 0;
  for (const std::string& name : values) {
    sum += bytes.at(name);
    if (groups.empty() || sum > kMostBytes) {
      groups.emplace_back();
      sum = bytes.at(name);
    }
    groups.back().push_back(name);
  }
  return groups;
}

void see_values(const Sessions& sessions, const Model& model, const Names& values, const CalibrationData& samples,
                std::size_t most, const SessionOptions& options,
                const std::function<void(const std::string&, const Tensor&)>& show) {
  const std::optional<Feeds> first = samples(0);
  if (!first || values.empty()) return;
  for (const Names& group : groups_in_memory(sessions, model, values, *first, options)) {
    const auto session = open_session(sessions, with_outputs(model, group), options);
    const auto outputs = session->outputs();
    const std::set<std::string> wanted(group.begin(), group.end());
    for (std::size_t i = 0; i < most; ++i) {
      const std::optional<Feeds> sample = samples(i);
      if (!sample) break;
      for (const std::string& name : group)
        if (const auto fed = sample->find(name); fed != sample->end()) show(name, fed->second);
      const std::vector<Tensor> results = session->run(*sample);
      for (std::size_t k = 0; k < outputs.size(); ++k)
        if (wanted.contains(outputs[k].first)) show(outputs[k].first, results[k]);
    }
  }
}

}  // namespace modelflow
