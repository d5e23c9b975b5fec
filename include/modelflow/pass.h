// Passes and stages, and the context that they work in.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "modelflow/graph.h"
#include "modelflow/kernel.h"
#include "modelflow/model.h"
#include "modelflow/pattern.h"
#include "modelflow/report.h"
#include "modelflow/target.h"

namespace modelflow {

class Runtime;
struct Options;
enum class Precision;

/// What calibration saw of the values of the fused graph, by name: float32, rank 1 or more.
struct Range {
  float low = 0, high = 0;
};
using Ranges = std::map<std::string, Range, std::less<>>;

/// What calibration saw of one channel of a value: its largest magnitude and its mean square.
struct ChannelSize {
  float largest = 0, mean_square = 0;
};

/// Weights of one node in steps that make up for each other's rounding, or why there are none.
struct Rounding {
  std::optional<Tensor> steps = {};  ///< in the type and layout that the quantized op has them in
  std::string why_not = {};
};

/// By fused node: what it may be lowered to besides float32, i8 for all that has 8 bits or fewer. Nodes that are not
/// named take whatever there is.
using Allowed = std::map<std::string, std::set<Precision>, std::less<>>;

/// What quantizing passes go by.
struct QuantizationPlan {
  Ranges ranges = {};
  Allowed allowed = {};
  std::map<std::string, std::vector<ChannelSize>, std::less<>> channels = {};  ///< by value
  /// By fused node: what rounding takes from the mean of every output channel, before the activation.
  std::map<std::string, std::vector<float>, std::less<>> bias_shifts = {};
  std::map<std::string, Rounding, std::less<>> roundings = {};  ///< by fused node

  bool allows(std::string_view node, Precision precision) const;
};

/// How often one rule may still fire. A search finds with it which node a wrong rule was applied to.
struct RuleLimit {
  std::string rule;
  int left = 0, fired = 0;
  std::string last = {};  ///< label of the node where it fired last
  bool admits(std::string_view name, const Node& node);
};

/// What passes may use besides the graph.
struct Context {
  Model& model;  ///< opsets, functions
  const Options& options;
  Target target;
  std::shared_ptr<Runtime> runtime;  ///< null when no ONNX Runtime was found
  StepReport* step = nullptr;        ///< where hits and misses go
  std::vector<std::string>* notes = nullptr;
  const QuantizationPlan* plan = nullptr;  ///< null: nothing is quantized
  RuleLimit* limit = nullptr;              ///< null: rules fire as often as they fit
  /// Extents of the inputs of the main graph as its users feed them, by name: for costs. Null: nobody knows.
  const std::map<std::string, Dims>* typical = nullptr;
  void hit(std::string_view rule, int times = 1);
  void miss(std::string_view rule, const Node* node, std::string_view reason, int matched = 1);
  void note(std::string text);
};

/// One named, switchable step. `run` returns the number of changes; it is called for the main graph and then for every
/// nested subgraph unless `whole_model` is set.
struct Pass {
  std::string name;  ///< "fold-constants"; what --disable takes
  std::string doc;   ///< one sentence
  std::function<int(Graph&, Context&)> run;
  bool whole_model = false;
  std::vector<Rule> rules = {};  ///< for --list; empty for hand-written passes
};

/// A stage is a list of passes; `repeat` runs the list until nothing changes (bounded).
struct Stage {
  std::string name;
  std::vector<Pass> passes;
  bool repeat = false;
};

/// A pass that applies rules until none fires. A "modelflow." node that a rule makes is committed only when some kernel
/// of the target accepts its Call; the refusal becomes a miss.
Pass rewrite(std::string name, std::string doc, std::vector<Rule> rules);

/// The Call of a fused node (domain modelflow), for kernels.
Call call_of(const Node& node);
/// The same call with `type` for every operand of float32 that is not single.
Call in_type(Call call, DType type);
/// What values become in the precision that is asked for: f16, or bf16 on a GPU; undefined where they stay float32.
DType half_type(const Options& options);
/// Whether the body of a fused op for this call, whose outputs are inferred, can be written in ops of this opset.
Verdict can_write(const Call& call, std::int64_t opset);
/// Whether a fused node that was made and typed may stay: some kernel of the target takes it, now or in the type that
/// its values will have, its body can be written at the model's opset, and there is something to compute.
Verdict may_stay(const Node& fused, const Context& context);
/// The op of a fused node; null for any other node.
const FusedOp* fused_op(const Node& node);
/// Whether a node is fused and does this kind of work, in any form or in this one.
bool computes(const Node& node, Family family);
bool computes(const Node& node, Family family, Form form);
/// Gives a fused node every attribute of its op that it does not have, as the op declares it. All passes see such
/// nodes.
void complete(Node& node);
/// Where a fused node has its "bias", "residual" or whatever else FusedOp::roles knows; nothing where it has none.
std::optional<std::size_t> place_of(const Node& node, std::string_view role);
Value* input_as(const Node& node, std::string_view role);
/// What a fused or standard product or convolution multiplies by, and the scales of that in 8 or 4 bits; else null.
std::optional<std::size_t> weights_place(const Node& node);
Value* weights_in(const Node& node);
Value* weight_scales_in(const Node& node);
/// Infers the output types of one node: standard ops through the ONNX schemas, ours through FusedOp::infer. True when
/// something became known.
bool infer_types(Node& node, const Model& model);
/// Infers the types of all values of the model, shape arithmetic included (symbolic dims survive it).
void infer_types(Model& model);

}  // namespace modelflow
