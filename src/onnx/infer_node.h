// One sweep of type inference.
#pragma once

#include <map>
#include <memory>
#include <unordered_set>
#include <utility>

#include "modelflow/model.h"
#include "modelflow/shape_values.h"
#include "src/onnx/needless_bounds.h"

namespace modelflow {

/// One sweep of type inference over graphs of a model.
class Inference {
 public:
  using Opsets = std::map<std::string, std::int64_t>;
  explicit Inference(const Model& model) : Inference(model, model.opsets, 0) {}
  Inference(const Model& model, const Opsets& opsets, int depth)
      : model_(model), opsets_(opsets), depth_(depth), values_(model.ir_version) {}

  /// From now on extents that stay unknown get a symbol each.
  void name_unknown() { naming_ = true; }
  /// From now on nodes of which everything is told are passed over.
  void only_open() { only_open_ = true; }
  /// From now on these bounds are none.
  void drop_bounds(NeedlessBounds bounds) { bounds_ = std::move(bounds); }
  /// Infers the outputs of one node; true when something became known.
  bool run(Node& node);
  void run(Graph& graph);
  ShapeValues& values() { return values_; }
  const Model& model() const { return model_; }
  /// The first node that the schema of its operator called impossible, and why; empty when there was none.
  const std::string& contradiction() const { return contradiction_; }

 private:
  /// Numbers in place of the symbols that the model has numbers for, extents in place of bounds that are none.
  void settle(Type& type) const;
  std::vector<Type> infer(Node& node);
  std::vector<Type> infer_standard(Node& node);
  std::vector<Type> infer_fused(const Node& node);
  std::vector<Type> infer_function(const Node& node, const Function& function);

  const Model& model_;
  const Opsets& opsets_;
  int depth_;  // of local function calls
  bool naming_ = false, only_open_ = false;
  ShapeValues values_;
  NeedlessBounds bounds_;
  std::string contradiction_;
  std::unordered_set<const Graph*> visited_;  // subgraphs that the schema function of their node has run
  friend class SubgraphInference;
};

/// Infers again what edits may have uncovered: types of values of which something was open, or stood for itself.
void refresh_types(Model& model);

/// Adds what `found` knows to `type`: where both say something the newer facts win, except for the type of the elements
/// of a declared interface.
bool merge_type(Type& type, const Type& found, bool declared);

}  // namespace modelflow
