// A reference whose products of 8-bit numbers are exact on every machine.
#pragma once

#include <optional>

#include "modelflow/model.h"

namespace modelflow {

/// False where ONNX Runtime cuts sums of products of 8-bit numbers on this machine, see below.
bool multiplies_bytes_exactly();

/// The model with signed operands of MatMulInteger, ConvInteger, QLinearMatMul and QLinearConv made unsigned, zero
/// points with them; nothing where it has none, or where this machine multiplies them exactly. Without VNNI, ONNX
/// Runtime multiplies unsigned by signed numbers with vpmaddubsw, which cuts the sum of two products to 16 bits: up to
/// a fifth of the largest result was lost in tests on Zen 3. Unsigned by unsigned numbers it multiplies exactly
/// everywhere (its session option session.x64quantprecision makes them so as well, but is one of the optimizations that
/// a reference goes without). `bodies_run`: functions are written out first; with the plugin, fused ops do not run
/// theirs.
std::optional<Model> with_exact_products(const Model& model, bool bodies_run);

}  // namespace modelflow
