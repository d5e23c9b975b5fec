// Pointwise ops that read a product behind which a Transpose stood become nodes again: the product takes what follows
// it, and leaves one of them at most.
#include <algorithm>

#include "modelflow/pattern.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/program.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

std::size_t number_of(const std::string& operand) { return std::stoul(operand.substr(1)); }

/// A program beside a product that it reads.
class Program {
 public:
  Program(Node& pointwise, const Value& y, Extents& extents)
      : pointwise_(pointwise), y_(y), extents_(extents), lines_(lines_of(pointwise.attrs.text("program"))) {}

  /// Whether the product, with what it has taken already, may take all of it but one op, which stands alone as well.
  bool goes_into(const Node& product) const {
    if (product.attrs.text("residual", "none") != "none" || product.attrs.number("post_scale", 1) != 1) return false;
    const Written* line = only_line(name_of_product());
    if (!line) return false;
    std::size_t taken = 0;
    if (is_plain_activation(line->op) && product.attrs.text("activation", "None") == "None") {
      ++taken;
      line = only_line("t" + std::to_string(line - lines_.data()));
    }
    if (line && joins(*line)) ++taken;
    return taken > 0 && lines_.size() <= taken + 1;
  }

  void write_out(Context& context) const {
    Build build(pointwise_.graph(), pointwise_, context);
    std::vector<Value*> results;
    for (const Written& line : lines_) {
      std::vector<Value*> operands;
      for (const std::string& operand : line.operands)
        operands.push_back(operand[0] == 'x' ? pointwise_.input(number_of(operand)) : results[number_of(operand)]);
      results.push_back(&node_of(line, operands, build));
      if (is_whole("t" + std::to_string(results.size() - 1))) results.back()->type.shape = y_.shape();
    }
    extents_.forget(*pointwise_.output());
    pointwise_.graph().replace(*pointwise_.output(), *results.back());
    pointwise_.graph().erase(pointwise_);
  }

 private:
  /// A sum or a product of two that are as large as the result; no product takes a constant one.
  bool joins(const Written& line) const {
    return (line.op == "Add" || line.op == "Mul") &&
           std::ranges::all_of(line.operands, [&](const std::string& operand) {
             return is_whole(operand) && !(operand[0] == 'x' && pointwise_.input(number_of(operand))->constant());
           });
  }

  static Value& node_of(const Written& line, std::vector<Value*> operands, Build& build) {
    if (line.op == "AtLeast") return build.op("Clip", std::move(operands));
    if (line.op == "AtMost") return build.op("Clip", {operands[0], nullptr, operands[1]});
    if (!is_plain_activation(line.op)) return build.op(line.op, std::move(operands));
    return build.op("modelflow.Activation", std::move(operands), {{"activation", line.op}});
  }

  std::string name_of_product() const {
    const auto& inputs = pointwise_.inputs();
    return "x" + std::to_string(std::ranges::find(inputs, &y_) - inputs.begin());
  }

  /// The line that alone reads this, once; null when there are several.
  const Written* only_line(const std::string& operand) const {
    const Written* found = nullptr;
    for (const Written& line : lines_)
      for (const std::string& other : line.operands) {
        if (other != operand) continue;
        if (found) return nullptr;
        found = &line;
      }
    return found;
  }

  /// Whether this has the shape of the product, which is that of the result: no operand is larger then, and one that
  /// has this shape gives it to all that is computed of it.
  bool is_whole(const std::string& operand) const {
    const Shape shape = extents_.of(y_);
    if (!shape.has_rank() || !(extents_.of(*pointwise_.output()) == shape)) return false;
    if (operand[0] == 'x') return extents_.of(*pointwise_.input(number_of(operand))) == shape;
    const Written& line = lines_[number_of(operand)];
    return std::ranges::any_of(line.operands, [&](const std::string& inner) { return is_whole(inner); });
  }

  Node& pointwise_;
  const Value& y_;
  Extents& extents_;
  std::vector<Written> lines_;
};

int run(Graph& graph, Context& context) {
  Extents extents;
  int changes = 0;
  for (const Node* product : nodes_of(graph, Family::product, Form::f32)) {
    Node* reader = only_reader(*product->output());
    if (!reader || !reader->is("modelflow.Pointwise")) continue;
    const Program program(*reader, *product->output(), extents);
    if (!program.goes_into(*product)) continue;
    program.write_out(context);
    context.hit("pointwise-behind-matmul");
    ++changes;
  }
  return changes;
}

}  // namespace

Pass open_programs() {
  return {.name = "open-programs",
          .doc = "Pointwise ops behind products from which layout took a Transpose away -> nodes, for the product",
          .run = run};
}

}  // namespace modelflow::passes
