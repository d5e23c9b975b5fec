// Selection by costs, where nothing can be timed.
#include <algorithm>
#include <array>
#include <optional>

#include "modelflow/pass.h"
#include "src/emit/body.h"
#include "src/input_shape.h"
#include "src/measure/extract.h"
#include "src/measure/regions.h"
#include "src/measure/select.h"

namespace modelflow {

double flops(const Call& call) {
  const FusedOp* op = find_fused_op(call.op);
  return op && op->flops ? op->flops(call) : 0;
}

namespace {

/// Of one whose type is unknown as of float32.
double bytes_of(const Operand& operand) {
  const int width = operand.dtype == DType::undefined ? bits(DType::f32) : bits(operand.dtype);
  return width / 8.0 * operand.shape.known_elements();
}

}  // namespace

double plain_seconds(const Call& call, const Target& target) {
  const FusedOp* op = find_fused_op(call.op);
  const double result = bytes_of(call.outputs.at(0));
  double bytes = result;
  for (const Operand& input : call.inputs) bytes += bytes_of(input);
  // Stock float kernels reach about half of the peak (measured on BERT and ResNet layers).
  const double compute = target.compute(float_type(call), flops(call), 0.5);
  if (op && op->plain_bytes) return compute + target.stream(bytes + op->plain_bytes(call));
  double passes = 0;  // over the output, in place: read and write
  if (call.attrs.text("activation", "None") != "None") passes += 1;
  if (call.attrs.text("residual", "none") != "none") passes += 1;
  return std::max(compute, target.stream(bytes)) + target.stream(passes * 2 * result);
}

double step_launches(std::string_view op, const Attrs& attrs, const Shape& x) {
  constexpr std::array kOps = {std::string_view("LSTM"), std::string_view("GRU"), std::string_view("RNN")};
  if (std::ranges::find(kOps, op) == kOps.end() || !x.has_rank() || x.rank() != 3) return 0;
  const bool batch_first = attrs.integer("layout") != 0 || attrs.text("x_layout") == "BSI";
  return 2.0 * static_cast<double>(x[batch_first ? 1 : 0].number().value_or(1));
}

namespace {

/// What one more node costs in a session (measured: 0.7 to 1.3 us on a core of 3 GHz).
constexpr double kNode = 1e-6;

/// On a GPU a node costs a launch, which the costs of kernels hold already.
double node_seconds(const Target& target) { return target.device == Device::cpu ? kNode : target.launch; }
double fused_node_seconds(const Target& target) { return target.device == Device::cpu ? kNode : 0; }

/// Whether it is computed of extents and constants alone, and as few numbers: a host has these before anything runs on
/// a GPU.
bool is_of_extents(const Value& value) {
  const Node* node = value.producer();
  if (!node) return value.constant() != nullptr;
  if (node->is("Shape")) return true;
  for (const char* as_many : {"Range", "ConstantOfShape", "Expand", "Tile"})
    if (node->is(as_many)) return false;
  return std::ranges::all_of(node->inputs(), [](const Value* input) { return !input || is_of_extents(*input); });
}

/// Runs on no data: constants, and on a GPU what shows its input in other extents, or is computed of extents.
bool costs_nothing(const Node& node, const FusedOp& op, const Target& target) {
  if (node.is("Constant")) return true;
  if (target.device == Device::cpu) return false;
  // Between channels first and last ONNX Runtime turns nothing: it drops the Transposes of bodies that meet.
  if (node.is("Transpose") && !op.layouts.empty()) return true;
  for (const char* view : {"Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten"})
    if (node.is(view)) return true;
  return is_of_extents(*node.output());
}

/// Nodes of the body that run, on a GPU launches: what the fused node stands for.
double plain_nodes(const Call& call, std::int64_t opset, const Target& target) {
  const FusedOp& op = *find_fused_op(call.op);
  const Function body = make_function(call.op, body_text(op, call, static_cast<int>(opset)), opset);
  const double steps = target.device == Device::cpu ? 0 : step_launches(call.op, call.attrs, call.in(0).shape);
  return steps + static_cast<double>(std::ranges::count_if(
                     body.body->nodes(), [&](const auto& node) { return !costs_nothing(*node, op, target); }));
}

/// Both models are rough: only a clear verdict takes something back.
constexpr double kDoubt = 1.5;

bool extents_known(const Call& call) {
  for (const Operand& input : call.inputs)
    if (!input.shape.known()) return false;
  return true;
}

}  // namespace

Selected select_by_cost(const Model& fused, Model laid_out, const SelectTools& tools, const Target& target,
                        Report& report) {
  const std::optional<Model> sized =
      leaves_extents_open(laid_out) ? std::optional(for_input_shapes(laid_out, tools.typical)) : std::nullopt;
  std::vector<std::string> slower;
  for (const Region& region : find_regions(laid_out)) {
    bool known = true;
    RegionReport row{.name = region.name, .nodes = region.nodes.size(), .reason = {}};
    for (const Node* node : region.nodes) {
      if (node->domain() != kDomain) continue;
      const Value* same = sized ? sized->graph().find(node->output()->name()) : nullptr;
      const Call call = call_of(same && same->producer() ? *same->producer() : *node);
      const Choice choice = choose_kernel(call_of(*node), target);
      row.stock_seconds +=
          plain_seconds(call, target) + node_seconds(target) * plain_nodes(call, laid_out.opset(), target);
      row.fused_seconds += choice.kernel ? choice.kernel->cost(call, target) + fused_node_seconds(target) : 0;
      row.kept = row.kept && choice.kernel;
      known = known && extents_known(call);
    }
    // Extents that do not follow from those of the inputs count as 1, which says nothing about real sizes: the kernels'
    // own accepts has to do.
    row.kept = row.kept && (!known || row.fused_seconds <= kDoubt * row.stock_seconds);
    row.reason = !row.kept ? "predicted to be slower than plain ops"
                 : known   ? "predicted"
                           : "not predicted: extents unknown";
    if (!row.kept) slower.insert(slower.end(), region.fused.begin(), region.fused.end());
    report.regions.push_back(std::move(row));
  }
  if (slower.empty()) return {tools.emit(std::move(laid_out)), true};
  Model kept = fused;
  revert(kept, slower);
  return {tools.emit(tools.lay_out(std::move(kept))), false};
}

}  // namespace modelflow
