// Packs the weights, scales and biases of a recurrent layer in blocks of units.
#include "backends/cpu/recurrent/weights.h"

#include "backends/cpu/frame/weight_cache.h"

namespace modelflow::cpu {
namespace {

using ops::RecurrentAttrs;

/// Numbers of gates [gates, hidden], those of `matrix`, in the order [blocks, gates, kUnits]; 0 beyond the last unit.
void place_units(const RecurrentMatrix& matrix, const float* from, float* to) {
  for (std::size_t g = 0; g < matrix.gates; ++g) {
    for (std::size_t unit = 0; unit < matrix.hidden; ++unit) {
      const std::size_t block = unit / kUnits;
      to[(block * matrix.gates + g) * kUnits + unit % kUnits] = from[(matrix.first + g) * matrix.hidden + unit];
    }
  }
}

std::size_t placed_floats(const RecurrentMatrix& matrix) { return unit_blocks(matrix.hidden) * matrix.gates * kUnits; }

/// The weights of a block, its units side by side: those of a gate `of_gate` places behind the gate before, those of a
/// step of depth `of_step` behind the step before.
void pack(const RecurrentMatrix& matrix, const void* weights, std::byte* packed, std::size_t of_gate,
          std::size_t of_step) {
  const auto* from = static_cast<const float*>(weights) + matrix.first * matrix.hidden * matrix.depth;
  for (std::size_t block = 0; block < unit_blocks(matrix.hidden); ++block) {
    float* to = reinterpret_cast<float*>(packed) + block * matrix.gates * matrix.depth * kUnits;
    for (std::size_t g = 0; g < matrix.gates; ++g) {
      for (std::size_t i = 0; i < kUnits; ++i) {
        const std::size_t unit = block * kUnits + i;
        const float* row = unit < matrix.hidden ? from + (g * matrix.hidden + unit) * matrix.depth : nullptr;
        for (std::size_t k = 0; k < matrix.depth; ++k) to[(g * of_gate + k * of_step) * kUnits + i] = row ? row[k] : 0;
      }
    }
  }
}

RecurrentProduct make_product(const RecurrentAttrs& attrs, const RecurrentCode& code, const Tensor& weights,
                              const Tensor* scale, std::size_t first, std::size_t gates) {
  RecurrentProduct product;
  product.matrix = {static_cast<std::size_t>(attrs.hidden), static_cast<std::size_t>(weights.dims()[2]), first, gates};
  const RecurrentMatrix& matrix = product.matrix;
  const auto dirs = static_cast<std::size_t>(attrs.dirs());
  product.packed_bytes = code.packed_bytes(matrix);
  const std::string layout = std::string("recurrent ") + code.layout + " " + std::to_string(first) + "+" +
                             std::to_string(gates) + " of " + std::to_string(attrs.gates());
  product.packed = packed_weights(weights, layout, product.packed_bytes * dirs, [&](std::byte* out) {
    const std::size_t plain = weights.bytes() / dirs;
    for (std::size_t dir = 0; dir < dirs; ++dir)
      code.pack(matrix, weights.data() + dir * plain, out + dir * product.packed_bytes);
  });
  if (!scale) return product;
  product.scale.resize(dirs * placed_floats(matrix));
  const std::size_t rows = static_cast<std::size_t>(attrs.gates() * attrs.hidden);
  for (std::size_t dir = 0; dir < dirs; ++dir)
    place_units(matrix, scale->as<float>().data() + dir * rows, product.scale.data() + dir * placed_floats(matrix));
  return product;
}

/// The sum of both biases goes with x, but that of a candidate which is reset behind its product.
void place_bias(const RecurrentAttrs& attrs, const Tensor* b, RecurrentWeights& weights) {
  const auto dirs = static_cast<std::size_t>(attrs.dirs()), gates = static_cast<std::size_t>(attrs.gates()),
             rows = gates * static_cast<std::size_t>(attrs.hidden), hidden = static_cast<std::size_t>(attrs.hidden);
  const RecurrentMatrix all = weights.project.matrix, last = {hidden, hidden, 2, 1};
  const bool behind = !attrs.lstm && attrs.linear_before_reset;
  weights.project.bias_floats = placed_floats(all);
  weights.project.bias.resize(dirs * placed_floats(all));
  if (behind) {
    weights.step.bias_floats = placed_floats(last);
    weights.step.bias.resize(dirs * placed_floats(last));
  }
  if (!b) return;
  std::vector<float> sum(rows);
  for (std::size_t dir = 0; dir < dirs; ++dir) {
    const float *of_x = b->as<float>().data() + dir * 2 * rows, *of_h = of_x + rows;
    for (std::size_t i = 0; i < rows; ++i) sum[i] = of_x[i] + (behind && i >= 2 * hidden ? 0 : of_h[i]);
    place_units(all, sum.data(), weights.project.bias.data() + dir * placed_floats(all));
    if (behind) place_units(last, of_h, weights.step.bias.data() + dir * placed_floats(last));
  }
}

}  // namespace

std::size_t packed_float_bytes(const RecurrentMatrix& matrix) {
  return placed_floats(matrix) * matrix.depth * sizeof(float);
}

void pack_floats(const RecurrentMatrix& matrix, const void* weights, std::byte* packed) {
  pack(matrix, weights, packed, 1, matrix.gates);
}

void pack_floats_by_gate(const RecurrentMatrix& matrix, const void* weights, std::byte* packed) {
  pack(matrix, weights, packed, matrix.depth, 1);
}

RecurrentPart RecurrentProduct::part(std::size_t dir) const {
  RecurrentPart part;
  part.depth = matrix.depth;
  part.hidden = matrix.hidden;
  part.packed = packed.get() + dir * packed_bytes;
  if (!scale.empty()) part.scale = scale.data() + dir * placed_floats(matrix);
  if (!bias.empty()) part.bias = bias.data() + dir * bias_floats;
  return part;
}

RecurrentWeights::RecurrentWeights(const Call& call, const RecurrentCode& code) {
  const RecurrentAttrs attrs(call);
  const Tensor &w = *call.in(1).constant, &r = *call.in(2).constant;
  const Tensor *w_scale = attrs.quantized ? call.in(3).constant : nullptr,
               *r_scale = attrs.quantized ? call.in(4).constant : nullptr;
  const auto gates = static_cast<std::size_t>(attrs.gates());
  const bool reset_first = !attrs.lstm && !attrs.linear_before_reset;
  project = make_product(attrs, code, w, w_scale, 0, gates);
  step = make_product(attrs, code, r, r_scale, 0, reset_first ? 2 : gates);
  if (reset_first) candidate = make_product(attrs, code, r, r_scale, 2, 1);
  place_bias(attrs, attrs.has_bias ? call.in(attrs.bias_index()).constant : nullptr, *this);
}

}  // namespace modelflow::cpu
