// What ONNX Runtime itself leaves open: results of the original on inputs of which no definition of ONNX tells them.
#pragma once

#include <set>
#include <string>

#include "modelflow/model.h"
#include "modelflow/runtime.h"

namespace modelflow {

/// The reason why what ONNX Runtime makes of `original` for these inputs cannot be a reference; empty where it can. The
/// values of the main graph are looked at one by one (functions and the branches that are taken written out):
///  - reductions, matrix products and Concat over nothing that have another shape than their definition says;
///  - the mean of nothing, which the specification leaves undefined: poolings refuse it;
///  - Slice of opset 10 along an axis whose extent has a name (see misses_cut): a run fails where two extents share it;
///  - Reshape whose computed target comes out as 0 where the extent was another: it is copied;
///  - Reshape with allowzero whose computed target comes out as 0 beside -1, which a file may not say;
///  - spectra of signals that are shorter than their frame: there is no frame at all;
///  - PRelu whose slopes have more elements than its operand (they are to broadcast to it);
///  - rows of the op Attention that are hidden as a whole by the lowest number: zeros or means, as the version has it;
///  - the largest or smallest of numbers and NaN: which it is depends on their places, and so it does for MaxPool where
///    a window sees nothing but -infinity;
///  - sums of finite products that overflow: infinities or NaN, as the order of the sum has it;
///  - weights of convolutions that are NaN or infinite, where the image has a border (see multiplies_outside);
///  - infinities of convolutions of one value whose results are added (see adds_parallel_convolutions);
///  - numbers that float16 does not hold: ONNX Runtime computes float16 in float32 where it has no kernel, and leaves
///    the casts between such ops out, so what overflows depends on which ops stand side by side.
std::string left_open(Runtime& runtime, const Model& original, const Feeds& feeds);

/// Whether it has recurrent layers, of which ONNX Runtime ends the process, or gives what memory holds, where the batch
/// is empty. With the plugin its own layers do not.
bool dies_of_empty_batches(const Model& model, bool plugin = false);

/// The outputs that ops lead to of which nobody promises what they make of NaN and infinities (leaves_nan_open).
std::set<std::string> with_open_kinds(const Model& original);

}  // namespace modelflow
