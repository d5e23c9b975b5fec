#include <algorithm>

#include "modelflow/pass.h"
#include "src/measure/extract.h"
#include "src/measure/regions.h"
#include "src/measure/select.h"

namespace modelflow {
namespace {

double extent(const Operand& operand, std::size_t from_end) {
  if (!operand.shape.has_rank() || operand.shape.rank() <= from_end) return 1;
  return static_cast<double>(operand.shape[operand.shape.rank() - 1 - from_end].number().value_or(1));
}

double first_extent(const Shape& shape) {
  return shape.has_rank() && shape.rank() > 0 ? static_cast<double>(shape[0].number().value_or(1)) : 1;
}

/// Extents of a modelflow.Attention; what is unknown counts as 1.
struct AttentionExtents {
  double batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, size = 1, value_size = 1;
  double scores() const { return batch * heads * queries * keys; }
};

AttentionExtents attention_extents(const Call& call) {
  AttentionExtents e;
  e.heads = static_cast<double>(call.attrs.integer("num_heads", 1));
  e.kv_heads = static_cast<double>(call.attrs.integer("kv_heads", 1));
  const auto read = [&](std::size_t input, const char* layout, double heads, double& sequence, double& size) {
    const bool flat = call.attrs.text(layout, "BSH") == "BSH";
    sequence = extent(call.in(input), 1);
    size = extent(call.in(input), 0) / (flat ? heads : 1);
  };
  if (call.attrs.integer("packed")) {
    read(0, "q_layout", e.heads + 2 * e.kv_heads, e.queries, e.size);
    e.keys = e.queries;
    e.value_size = e.size;
  } else {
    read(0, "q_layout", e.heads, e.queries, e.size);
    read(2, "v_layout", e.kv_heads, e.keys, e.value_size);
  }
  e.batch = call.outputs.at(0).shape.known_elements() / std::max(e.heads * e.queries * e.value_size, 1.0);
  return e;
}

/// Passes over scores and operands that plain ops make besides the two products.
double attention_bytes(const Call& call) {
  const AttentionExtents e = attention_extents(call);
  const double passes = 3 + static_cast<double>(call.attrs.integer("has_mask") + 2 * call.attrs.integer("nan_guard"));
  const double operands = e.batch * e.heads * (e.queries * (e.size + e.value_size) + e.keys * (e.size + e.value_size));
  return 8 * (passes * e.scores() + operands);
}

}  // namespace

double flops(const Call& call) {
  const double outputs = call.outputs.at(0).shape.known_elements();
  if (call.op == "Conv" || call.op == "QConv" || call.op == "ConvBf16" || call.op == "ConvToBf16") {
    return 2 * outputs * call.in(1).shape.known_elements() / std::max(first_extent(call.in(1).shape), 1.0);
  }
  if (call.op == "ConvTranspose") {
    const Shape& w = call.in(1).shape;
    return 2 * call.in(0).shape.known_elements() * w.known_elements() / std::max(first_extent(w), 1.0);
  }
  if (call.op == "MatMul" || call.op == "MatMulBf16" || call.op == "MatMulToBf16" || call.op == "QMatMul" ||
      call.op == "QMatMul4" || call.op == "Gemm") {
    const bool transposed = call.attrs.integer("trans_a") || call.attrs.integer("transA");
    return 2 * outputs * extent(call.in(0), transposed ? 1 : 0);
  }
  if (call.op == "Attention") {
    const AttentionExtents e = attention_extents(call);
    return 2 * e.scores() * (e.size + e.value_size);
  }
  if (call.op.ends_with("LSTM") || call.op.ends_with("GRU")) {
    const double rows = call.in(0).shape.known_elements() / std::max(extent(call.in(0), 0), 1.0);
    return 2 * rows * (call.in(1).shape.known_elements() + call.in(2).shape.known_elements());
  }
  return 0;
}

double plain_seconds(const Call& call, const Target& target) {
  double bytes = 4 * call.outputs.at(0).shape.known_elements();
  for (const Operand& input : call.inputs) bytes += 4 * input.shape.known_elements();
  if (call.op == "Attention") return target.compute(flops(call), 0.5) + target.stream(bytes + attention_bytes(call));
  double passes = 0;  // over the output, in place: read and write
  if (call.attrs.text("activation", "None") != "None") passes += 1;
  if (call.attrs.text("residual", "none") != "none") passes += 1;
  // Stock float kernels reach about half of the peak (measured on BERT and ResNet layers).
  return std::max(target.compute(flops(call), 0.5), target.stream(bytes)) +
         target.stream(passes * 8 * call.outputs.at(0).shape.known_elements());
}

namespace {

/// Both models are rough: only a clear verdict takes something back.
constexpr double kDoubt = 1.5;

bool extents_known(const Call& call) {
  for (const Operand& input : call.inputs)
    if (!input.shape.known()) return false;
  return true;
}

}  // namespace

Selected select_by_cost(const Model& fused, const SelectTools& tools, const Target& target, Report& report) {
  const Model laid_out = tools.lay_out(fused);
  std::vector<std::string> slower;
  for (const Region& region : find_regions(laid_out)) {
    bool known = true;
    RegionReport row{.name = region.name, .nodes = region.nodes.size(), .reason = {}};
    for (const Node* node : region.nodes) {
      if (node->domain() != kDomain) continue;
      const Call call = call_of(*node);
      const Choice choice = choose_kernel(call, target);
      row.stock_seconds += plain_seconds(call, target);
      row.fused_seconds += choice.kernel ? choice.kernel->cost(call, target) : 0;
      row.kept = row.kept && choice.kernel;
      known = known && extents_known(call);
    }
    // Unknown extents count as 1, which says nothing about real sizes: the kernels' own accepts has to do.
    row.kept = row.kept && (!known || row.fused_seconds <= kDoubt * row.stock_seconds);
    row.reason = !row.kept ? "predicted to be slower than plain ops"
                 : known   ? "predicted"
                           : "not predicted: extents unknown";
    if (!row.kept) slower.insert(slower.end(), region.fused.begin(), region.fused.end());
    report.regions.push_back(std::move(row));
  }
  if (slower.empty()) return {tools.emit(laid_out), true};
  Model kept = fused;
  revert(kept, slower);
  return {tools.emit(tools.lay_out(std::move(kept))), false};
}

}  // namespace modelflow
