// Transposed convolutions that quantization finds before layout does.
#pragma once

#include <optional>

#include "modelflow/pass.h"

/// Transposed convolutions whose windows do not overlap: standard nodes until layout, so they are found here with the
/// activation behind them.
namespace modelflow::passes {

struct TransposedConv {
  Node* conv;
  Node* last;   ///< the activation behind it, else the convolution: whose name and result the 8-bit op has
  Attrs attrs;  ///< of the 8-bit op, without scales
};

/// Nothing for other nodes and for forms that no fused op has.
std::optional<TransposedConv> transposed_conv(Node& node);
/// Whether some quantized kernel of the target runs it.
Verdict quantizable(const TransposedConv& found, const Context& context);
/// DequantizeLinear, ConvTranspose, activation -> QConvTranspose where QuantizeLinear follows, else
/// QConvTransposeFloat. Returns how many.
int merge_transposed(Graph& graph, Context& context);

}  // namespace modelflow::passes
