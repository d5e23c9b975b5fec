// Edges between models: said by the user or told by names, found and checked.
#include "src/compose/edges.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "src/compose/wording.h"
#include "src/core/nearest.h"

namespace modelflow {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorKind::usage, why); }

/// Inputs that wait for data or have a default; initializers that are listed as inputs are weights of old files.
bool waits(const Value& input) { return !input.is_initializer(); }

std::size_t part_of(const std::vector<Part>& parts, const std::string& name) {
  const auto found = std::ranges::find(parts, name, &Part::name);
  if (found != parts.end()) return static_cast<std::size_t>(found - parts.begin());
  std::vector<std::string> names(parts.size());
  std::ranges::transform(parts, names.begin(), &Part::name);
  refuse(fmt::format("no model is called '{}': there are {}{}", name, listed(names), did_you_mean(name, names)));
}

std::string quoted(const Part& part) { return "'" + part.name + "'"; }

Value* source(const Part& part, const std::string& name) {
  const Graph& graph = part.model.graph();
  Value* value = graph.find(name);
  if (value && value->is_graph_input()) return value;
  return graph.outputs()[place_of(graph.outputs(), name, "output", quoted(part))];
}

std::size_t target(const Part& part, const std::string& name) {
  return place_of(part.model.graph().inputs(), name, "input", quoted(part));
}

/// Why a value of the one type cannot be read where the other is expected; empty: it can.
std::string misfit(const Type& from, const Type& to) {
  if (from.kind == Type::Kind::unknown || to.kind == Type::Kind::unknown) return "";
  if (from.kind != to.kind) return "one is no tensor";
  if (!from.is_tensor()) return "";
  if (from.dtype != to.dtype && from.dtype != DType::undefined && to.dtype != DType::undefined)
    return "their types differ";
  if (!from.shape.has_rank() || !to.shape.has_rank()) return "";
  if (from.shape.rank() != to.shape.rank()) return "their ranks differ";
  for (std::size_t i = 0; i < from.shape.rank(); ++i)
    if (from.shape[i].known() && to.shape[i].known() && !(from.shape[i] == to.shape[i]))
      return fmt::format("axis {} has {} and {} places", i, from.shape[i].value(), to.shape[i].value());
  return "";
}

/// What of the other model would fit, for the end of a message.
std::string fitting(const Part& from, const Part& to, const Value& input) {
  std::vector<std::string> all;
  for (const Value* output : from.model.graph().outputs())
    if (misfit(output->type, input.type).empty()) all.push_back(from.name + "." + output->name());
  if (all.empty()) return fmt::format("; nothing that '{}' gives fits", from.name);
  return fmt::format("; {} would fit {}.{}", listed(all), to.name, input.name());
}

void check(const std::vector<Part>& parts, const Link& link) {
  const Part &from = parts[link.from], &to = parts[link.to];
  const Value& input = *to.model.graph().inputs()[link.input];
  const std::string ends = fmt::format("{}.{} {} cannot go into {}.{} {}", from.name, link.value->name(),
                                       text(link.value->type), to.name, input.name(), text(input.type));
  if (link.from == link.to)
    refuse(ends + ": a model does not feed itself; state goes out of one run and into the next one");
  const std::string why = misfit(link.value->type, input.type);
  if (!why.empty()) refuse(ends + ": " + why + fitting(from, to, input));
}

/// The last part before `to` that gives an output of this name and type.
const Part* giver(const std::vector<Part>& parts, std::size_t to, const Value& input) {
  for (std::size_t i = to; i-- > 0;) {
    const Value* value = parts[i].model.graph().find(input.name());
    if (value && value->is_graph_output() && misfit(value->type, input.type).empty()) return &parts[i];
  }
  return nullptr;
}

/// The only output of one part into the only input of the next.
void join_ends(const Part& from, const Part& to, std::vector<Edge>& edges) {
  std::vector<const Value*> waiting;
  for (const Value* input : to.model.graph().inputs())
    if (waits(*input)) waiting.push_back(input);
  const auto& outputs = from.model.graph().outputs();
  if (outputs.size() != 1 || waiting.size() != 1)
    refuse(fmt::format("which of {} of '{}' goes into which of {} of '{}'? Say it with --map {}.{}={}.{}",
                       listed(names_of(from.model.graph().outputs())), from.name,
                       listed(names_of(to.model.graph().inputs())), to.name, from.name,
                       outputs.empty() ? "OUTPUT" : outputs.front()->name(), to.name,
                       waiting.empty() ? "INPUT" : waiting.front()->name()));
  edges.push_back({from.name, outputs.front()->name(), to.name, waiting.front()->name()});
}

}  // namespace

std::vector<Edge> edges_by_name(const std::vector<Part>& parts) {
  std::vector<Edge> edges;
  for (std::size_t to = 1; to < parts.size(); ++to) {
    const std::size_t before = edges.size();
    // Before IR version 4 all weights are inputs as well, and none of them waits for another part.
    const bool weights_wait = parts[to].model.ir_version >= 4;
    for (const Value* input : parts[to].model.graph().inputs())
      if (const Part* from = waits(*input) || weights_wait ? giver(parts, to, *input) : nullptr)
        edges.push_back({from->name, input->name(), parts[to].name, input->name()});
    if (edges.size() == before) join_ends(parts[to - 1], parts[to], edges);
  }
  return edges;
}

Edge fitting_edge(const Part& from, const std::string& output, const Part& to) {
  const Value& value = *source(from, output);
  std::vector<std::string> fit;
  for (const Value* input : to.model.graph().inputs())
    if (waits(*input) && misfit(value.type, input->type).empty()) fit.push_back(input->name());
  if (fit.size() == 1) return {from.name, output, to.name, fit.front()};
  const std::string given = fmt::format("{}.{} {}", from.name, output, text(value.type));
  if (fit.empty())
    refuse(fmt::format("{} fits no input of '{}': it has {}", given, to.name,
                       listed(names_of(to.model.graph().inputs()))));
  refuse(fmt::format("{} fits {} of '{}': say which with --map {}.{}={}.{}", given, listed(fit), to.name, from.name,
                     output, to.name, fit.front()));
}

std::vector<Link> links(const std::vector<Part>& parts, const std::vector<Edge>& edges) {
  std::vector<Link> all;
  std::map<std::pair<std::size_t, std::size_t>, const Edge*> fed;
  for (const Edge& edge : edges) {
    Link link = {.from = part_of(parts, edge.from_part), .to = part_of(parts, edge.to_part)};
    link.value = source(parts[link.from], edge.from);
    link.input = target(parts[link.to], edge.to);
    check(parts, link);
    const auto [former, first] = fed.try_emplace({link.to, link.input}, &edge);
    if (!first)
      refuse(fmt::format("{}.{} is given twice: by {}.{} and by {}.{}", edge.to_part, edge.to,
                         former->second->from_part, former->second->from, edge.from_part, edge.from));
    all.push_back(link);
  }
  return all;
}

Edge parse_edge(std::string_view text, const std::vector<Part>& parts) {
  // Names may hold '=' and '.': the places where both sides name something are what counts.
  const auto side = [&](std::string_view name, bool inputs) -> std::vector<std::pair<std::string, std::string>> {
    std::vector<std::pair<std::string, std::string>> found;
    for (const Part& part : parts) {
      if (!name.starts_with(part.name + ".")) continue;
      const std::string rest(name.substr(part.name.size() + 1));
      const Value* value = part.model.graph().find(rest);
      if (value && (value->is_graph_input() || (!inputs && value->is_graph_output())))
        found.emplace_back(part.name, rest);
    }
    return found;
  };
  std::vector<Edge> edges;
  for (std::size_t at = text.find('='); at != std::string_view::npos; at = text.find('=', at + 1))
    for (const auto& [from_part, from] : side(text.substr(0, at), false))
      for (const auto& [to_part, to] : side(text.substr(at + 1), true)) edges.push_back({from_part, from, to_part, to});
  if (edges.size() == 1) return edges.front();
  if (!edges.empty()) refuse(fmt::format("'{}' can be read in several ways: give the models other names", text));
  const std::size_t equals = text.find('=');
  const auto split = [&](std::string_view name) {
    const std::size_t dot = name.find('.');
    if (dot == std::string_view::npos || dot == 0 || dot + 1 == name.size())
      refuse(fmt::format("'{}' is no edge: expected MODEL.OUTPUT=MODEL.INPUT", text));
    return std::pair(std::string(name.substr(0, dot)), std::string(name.substr(dot + 1)));
  };
  if (equals == std::string_view::npos) refuse(fmt::format("'{}' is no edge: expected MODEL.OUTPUT=MODEL.INPUT", text));
  const auto [from_part, from] = split(text.substr(0, equals));
  const auto [to_part, to] = split(text.substr(equals + 1));
  Edge edge = {from_part, from, to_part, to};
  (void)links(parts, {edge});  // says what is not there
  return edge;
}

}  // namespace modelflow
