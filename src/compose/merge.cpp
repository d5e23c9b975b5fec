// Several models as one: each becomes a call of itself in a new graph, the calls are tied to each other, and then their
// contents written out in place of them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "modelflow/compose.h"
#include "modelflow/function.h"
#include "modelflow/weights.h"
#include "src/compose/edges.h"
#include "src/compose/symbols.h"
#include "src/compose/together.h"
#include "src/compose/wording.h"
#include "src/core/printable.h"

namespace modelflow {
namespace {

using Place = std::pair<std::size_t, std::size_t>;  ///< a part, and one of its inputs

class Assembly {
 public:
  Assembly(const std::vector<Part>& parts, const std::vector<Link>& links, Merged& merged)
      : parts_(parts), links_(links), merged_(merged), graph_(merged.model.graph()) {
    for (const Link& link : links) fed_[{link.to, link.input}] = &link;
    for (const Part& part : parts) count_names(part.model.graph());
  }

  void run() {
    for (std::size_t i = 0; i < parts_.size(); ++i) add_inputs(i);
    for (std::size_t i = 0; i < parts_.size(); ++i) add_call(i);
    for (const Link& link : links_) tie(link);
    for (std::size_t i = 0; i < parts_.size(); ++i) write_out(i);
    sort();
    drop_inner_results();
    for (const auto& [name, all] : inputs_by_name_)
      if (all.size() > 1)
        merged_.notes.push_back(
            fmt::format("{} are inputs of their own; {}={} would make them one", listed(all), all[0], all[1]));
  }

 private:
  void count_names(const Graph& graph) {
    std::set<std::string> names;
    for (const Value* value : graph.inputs()) names.insert(value->name());
    for (const Value* value : graph.outputs()) names.insert(value->name());
    for (const std::string& name : names) ++holders_[name];
  }

  std::string full(std::size_t part, const Value& value) const { return parts_[part].name + "." + value.name(); }

  std::string public_name(std::size_t part, const Value& value) {
    const std::string name = holders_.at(value.name()) > 1 ? full(part, value) : value.name();
    return graph_.unique_name(name);
  }

  bool is_fed(std::size_t part, std::size_t input) const { return fed_.contains({part, input}); }

  void add_inputs(std::size_t part) {
    const auto& inputs = parts_[part].model.graph().inputs();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (is_fed(part, i)) continue;
      Value& made = graph_.add_input(public_name(part, *inputs[i]), inputs[i]->type);
      made.doc = inputs[i]->doc;
      made.metadata = inputs[i]->metadata;
      if (inputs[i]->initializer()) graph_.set_initializer(made, *inputs[i]->initializer());
      values_[inputs[i]] = &made;
      inputs_by_name_[inputs[i]->name()].push_back(full(part, *inputs[i]));
      merged_.inputs.push_back({made.name(), made.type, full(part, *inputs[i]), {full(part, *inputs[i])}});
    }
  }

  /// Results are outputs of the whole until they are known to be read inside.
  void add_call(std::size_t part) {
    const Graph& body = parts_[part].model.graph();
    std::vector<Value*> inputs;
    for (const Value* input : body.inputs())
      inputs.push_back(is_fed(part, inputs.size()) ? nullptr : values_.at(input));
    Node& call = graph_.add("merged:Part", std::move(inputs),
                            {.outputs = body.outputs().size(), .name = parts_[part].name + ".part"});
    for (std::size_t i = 0; i < body.outputs().size(); ++i) {
      const Value& output = *body.outputs()[i];
      graph_.rename(*call.output(i), public_name(part, output));
      call.output(i)->type = output.type;
      call.output(i)->doc = output.doc;
      call.output(i)->metadata = output.metadata;
      graph_.add_output(*call.output(i));
      results_.push_back({call.output(i)->name(), output.type, full(part, output), {}});
      if (!output.is_graph_input()) values_[&output] = call.output(i);
    }
    calls_.push_back(&call);
  }

  /// What a link brings: an input of a part may be fed by another link.
  Value* found(const Link& link) const {
    const Link* at = &link;
    for (std::size_t steps = 0; steps <= links_.size(); ++steps) {
      const auto value = values_.find(at->value);
      if (value != values_.end()) return value->second;
      const auto& inputs = parts_[at->from].model.graph().inputs();
      at = fed_.at({at->from, static_cast<std::size_t>(std::ranges::find(inputs, at->value) - inputs.begin())});
    }
    throw Error(ErrorKind::usage, fmt::format("'{}' and what it feeds wait for each other", parts_[link.to].name));
  }

  void tie(const Link& link) {
    Value* value = found(link);
    graph_.set_input(*calls_[link.to], link.input, value);
    const std::string to = full(link.to, *parts_[link.to].model.graph().inputs()[link.input]);
    const auto input = std::ranges::find(merged_.inputs, value->name(), &Joint::name);
    if (input != merged_.inputs.end())
      input->to.push_back(to);
    else
      std::ranges::find(results_, value->name(), &Joint::name)->to.push_back(to);
  }

  void write_out(std::size_t part) {
    const Graph& body = parts_[part].model.graph();
    Function function;
    function.body = std::shared_ptr<Graph>(std::shared_ptr<void>(), const_cast<Graph*>(&body));  // the part keeps it
    inline_call(*calls_[part], function, InnerNames::kept);
  }

  void sort() {
    try {
      graph_.sort();
    } catch (const Error& error) {
      throw Error(ErrorKind::usage, fmt::format("the models wait for each other: {}", error.what()));
    }
  }

  void drop_inner_results() {
    for (std::size_t i = results_.size(); i-- > 0;)
      if (!results_[i].to.empty()) graph_.remove_output(i);
    for (Joint& result : results_) (result.to.empty() ? merged_.outputs : merged_.edges).push_back(std::move(result));
  }

  const std::vector<Part>& parts_;
  const std::vector<Link>& links_;
  Merged& merged_;
  Graph& graph_;
  std::map<Place, const Link*> fed_;
  std::map<std::string, int> holders_;     ///< how many parts have an input or output of this name
  std::map<const Value*, Value*> values_;  ///< inputs and outputs of parts in the whole
  std::map<std::string, std::vector<std::string>> inputs_by_name_;
  std::vector<Node*> calls_;    ///< by part
  std::vector<Joint> results_;  ///< outputs of all parts, as the graph lists them
};

void check_names(const std::vector<Part>& parts) {
  if (parts.size() < 2) throw Error(ErrorKind::usage, "merging takes two models or more");
  for (std::size_t i = 0; i < parts.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (parts[i].name == parts[j].name)
        throw Error(ErrorKind::usage,
                    fmt::format("two models are called '{}': give one another name, as NAME=FILE", parts[i].name));
  // A dot may stand in both halves of "part.value".
  std::map<std::string, std::size_t> holders;
  for (std::size_t i = 0; i < parts.size(); ++i)
    for (const auto* values : {&parts[i].model.graph().inputs(), &parts[i].model.graph().outputs()})
      for (const Value* value : *values) {
        const std::string full = parts[i].name + "." + value->name();
        if (const std::size_t holder = holders.emplace(full, i).first->second; holder != i)
          throw Error(ErrorKind::usage, fmt::format("'{}' is a value of '{}' and of '{}': give one model another name",
                                                    full, parts[holder].name, parts[i].name));
      }
}

/// Weights that a file before IR 4 had to list are no inputs of the whole, unless an edge names them.
void drop_listed_weights(std::vector<Part>& parts, const std::vector<Link>& links) {
  std::set<const Value*> named;
  for (const Link& link : links) {
    named.insert(link.value);
    named.insert(parts[link.to].model.graph().inputs()[link.input]);
  }
  for (Part& part : parts) unlist_weights(part.model.graph(), part.model.ir_version, named);
}

}  // namespace

Merged merge(std::vector<Part> parts, const std::vector<Edge>& given) {
  check_names(parts);
  const std::vector<Edge> edges = given.empty() ? edges_by_name(parts) : given;
  drop_listed_weights(parts, links(parts, edges));  // what is wrong with them is said of the models as they came
  Merged merged;
  separate_symbols(parts);
  merged.model = bring_together(parts, merged.notes);
  separate_symbols(parts);  // those of inference
  for (const Link& link : links(parts, edges))
    join_symbols(parts, link.value->type, parts[link.to].model.graph().inputs()[link.input]->type);
  const std::vector<Link> tied = links(parts, edges);  // joined symbols may contradict each other
  Assembly(parts, tied, merged).run();
  return merged;
}

std::string Merged::signature() const {
  std::string lines;
  const auto add = [&](const char* kind, const Joint& joint, const std::string& ends) {
    lines += printable_line(fmt::format("{:<7} {} {}{}", kind, joint.name, text(joint.type), ends));
  };
  const auto arrow = [](const std::vector<std::string>& to) { return " -> " + listed(to); };
  for (const Joint& input : inputs) add("input", input, arrow(input.to));
  for (const Joint& edge : edges)
    add("inside", edge, (edge.name == edge.from ? "" : " = " + edge.from) + arrow(edge.to));
  for (const Joint& output : outputs) add("output", output, output.name == output.from ? "" : " = " + output.from);
  return lines;
}

}  // namespace modelflow
