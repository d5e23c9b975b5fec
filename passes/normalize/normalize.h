#pragma once

#include <vector>

#include "modelflow/pass.h"

/// Level O2, first stage: the many spellings that exporters emit become one, so that fusing needs to know only that.
namespace modelflow::passes {

/// Opset 11 and 12 -> 13 where int8 is asked for or arrives.
Pass raise_opset();
/// QLinearConv, QLinearMatMul and MatMulInteger of DynamicQuantizeLinear -> the Q/DQ form.
Pass normalize_qoperator();
/// Float16 -> float32 with a Cast at each float16 input and output, for CPUs.
Pass widen_float16();
/// Decomposed activations -> one node: the standard op when the model's opset has one (HardSigmoid, LeakyRelu, Clip,
/// Relu always; HardSwish from 14, Mish from 18, Gelu from 20), else modelflow.Activation.
Pass normalize_activations();
/// Activations behind the views of a convolution -> in front of them.
Pass lift_activations();
/// Products between reshapes that flatten and restore the leading dims -> MatMul on all dims.
Pass normalize_linear();
/// Einsum that is a matrix product -> Transpose and MatMul.
Pass normalize_einsum();

/// STFT and DFT of constant length -> products with a constant basis.
Pass normalize_spectra();

/// Layer, RMS, group and instance normalization -> modelflow.LayerNorm and modelflow.GroupNorm, at every opset.
Pass normalize_norms();

/// Exponentials over their sum, their logarithms -> Softmax, LogSoftmax.
Pass normalize_softmax();

/// Convolutions over more axes than they work along -> over those alone.
Pass drop_unit_axes();

/// Split, convolutions, Concat -> a convolution in groups.
Pass group_convolutions();

/// A convolution over blocks of an image (Focus, SpaceToDepth) -> one over the image.
Pass widen_over_blocks();

/// A Loop or Scan over the steps of an LSTM or a GRU -> the standard op.
Pass recurrent_loops();
/// Two LSTM, GRU or RNN nodes, one for each direction -> one for both.
Pass merge_directions();
/// Loops of a few steps -> their steps.
Pass unroll_loops();

/// All of the above in running order; meant to be repeated until nothing changes.
std::vector<Pass> normalize();

}  // namespace modelflow::passes
