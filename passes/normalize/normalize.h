// The passes of the stage normalize.
#pragma once

#include "modelflow/pass.h"

/// Level O2, first stage: the many spellings that exporters emit become one, so that fusing needs to know only that.
/// Where the model's opset has no op for the one spelling, it is a fused op: modelflow.Activation, LayerNorm,
/// GroupNorm. What each pass does, and their order: normalize.cpp.
namespace modelflow::passes {

Pass raise_opset();
Pass normalize_qoperator();
Pass widen_float16();
Pass normalize_spectra();
/// The standard op when the opset has one (HardSigmoid, LeakyRelu, Clip, Relu always; HardSwish from 14, Mish from 18,
/// Gelu from 20), else modelflow.Activation.
Pass normalize_activations();
Pass lift_activations();
Pass pad_constant_rows();
Pass normalize_linear();
Pass normalize_einsum();
Pass scattered_rows();
Pass selective_scan();
Pass normalize_norms();
Pass normalize_softmax();
Pass drop_unit_axes();
Pass widen_over_blocks();
Pass reorder_subpixels();
Pass group_convolutions();
Pass shuffle_channels();
Pass recurrent_loops();
Pass merge_directions();
Pass unroll_loops();
Pass sum_stacked();

}  // namespace modelflow::passes
