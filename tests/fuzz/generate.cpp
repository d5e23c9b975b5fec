// Random models put together from blocks.
#include "tests/fuzz/generate.h"

#include <algorithm>

#include "modelflow/error.h"
#include "modelflow/pass.h"
#include "src/graph/verify.h"
#include "tests/all_graphs.h"
#include "tests/fuzz/change.h"
#include "tests/fuzz/glue.h"
#include "tests/fuzz/plant.h"
#include "tests/fuzz/wrap.h"

namespace modelflow::fuzz {
namespace {

/// Everything that nobody reads becomes an output.
void close(Model& model) {
  forget_shapes(model);
  infer_types(model);
  for (Value* value : readable(model.graph()))
    if (value->producer() && value->uses().empty() && !value->is_graph_output()) model.graph().add_output(*value);
}

/// What inference says goes, except where a model needs it: inputs of all graphs, element types of outputs.
void forget_types(Model& model, Dice& dice) {
  for (Graph* graph : all_graphs(model))
    for (const auto& node : graph->nodes())
      for (Value* output : node->outputs()) {
        if (!output || !output->type.is_tensor()) continue;
        if (!output->is_graph_output())
          output->type = {};
        else if (dice.chance(0.3))
          output->type.shape = {};
      }
}

class Maker {
 public:
  Maker(const Material& material, std::uint64_t seed, const std::function<bool(const Model&)>& runs)
      : material_(material), dice_(seed), runs_(runs) {}

  Generated make() {
    begin();
    const std::size_t parts = dice_.below(4);
    for (std::size_t i = 0; i < parts; ++i)
      if (dice_.chance(0.35))
        attempt([&](Model& model) { return another(model); });
      else
        attempt([&](Model& model) { return glue(model); });
    if (dice_.chance(0.06)) attempt([&](Model& model) { return other_floats(model); });
    const std::size_t changes = dice_.below(4);
    for (std::size_t i = 0; i < changes; ++i) attempt([&](Model& model) { return change(model, dice_); });
    if (dice_.chance(0.2)) attempt([&](Model& model) { return wrap(model, dice_); });
    if (dice_.chance(0.25)) attempt([&](Model& model) { return other_opset(model); });
    if (dice_.chance(0.3)) attempt([&](Model& model) { return change(model, dice_); });
    forget_types(made_.model, dice_);
    return std::move(made_);
  }

 private:
  Pattern pattern() {
    if (!material_.blocks.empty() && dice_.chance(0.45)) return filled(dice_.pick(material_.blocks), dice_);
    return dice_.pick(material_.patterns);
  }

  void begin() {
    for (int tries = 0; tries < 20; ++tries) {
      const Pattern first = pattern();
      made_ = {};
      made_.model.opsets[""] = first.model.opset();
      plant(made_.model, first.model, {}, dice_);
      close(made_.model);
      made_.story = first.name;
      if (runs_(made_.model)) return;
    }
    throw Error(ErrorKind::internal, "twenty patterns in a row did not run, the last was " + made_.story);
  }

  std::string another(Model& model) {
    for (int tries = 0; tries < 30; ++tries) {
      const Pattern next = pattern();
      if (next.model.opset() != model.opset()) continue;
      return plant(model, next.model, readable(model.graph()), dice_).empty() ? "" : next.name;
    }
    return "";
  }

  std::string glue(Model& model) {
    const std::size_t count = 1 + dice_.below(4);
    std::string added;
    Value* last = nullptr;
    for (std::size_t i = 0; i < count; ++i) {
      infer_types(model);
      const std::vector<Value*> pool = readable(model.graph());
      Value* value = last && last->type.is_tensor() && last->dtype() != DType::undefined && dice_.chance(0.5)
                         ? last
                         : dice_.pick(pool);
      if (Value* made = add_glue(model, *value, pool, dice_))
        last = made, added += (added.empty() ? "" : ", ") + made->producer()->op();
    }
    return added;
  }

  std::string other_floats(Model& model) {
    const DType dtype = dice_.any({DType::f64, DType::f16});
    change_floats(model, dtype);
    return std::string("in ") + std::string(name(dtype));
  }

  std::string other_opset(Model& model) {
    const std::int64_t to = dice_.between(7, 24);
    model.opsets[""] = to;
    for (Function& function : model.functions) function.opsets[""] = to;
    if (to > 21) model.ir_version = 10;
    return "opset " + std::to_string(to);
  }

  template <class Step>
  void attempt(Step step) {
    Model copy = made_.model;
    try {
      infer_types(copy);
      const std::string what = step(copy);
      if (what.empty()) return;
      verify(copy, what);  // a defect of the generator is none of the optimizer
      close(copy);
      if (!runs_(copy)) return;
      made_.model = std::move(copy);
      made_.story += "; " + what;
    } catch (const Error&) {  // what is no model is taken back
    }
  }

  const Material& material_;
  Dice dice_;
  const std::function<bool(const Model&)>& runs_;
  Generated made_;
};

}  // namespace

Generated generate(const Material& material, std::uint64_t seed, const std::function<bool(const Model&)>& runs) {
  return Maker(material, seed, runs).make();
}

}  // namespace modelflow::fuzz
