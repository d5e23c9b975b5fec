// Ops whose results for NaN, infinities or nothing at all no specification fixes.
#pragma once

#include <functional>

#include "modelflow/graph.h"

namespace modelflow {

/// Whether `is` holds for some node of the graph or of a graph inside of it.
bool any_node(const Graph& graph, const std::function<bool(const Node&)>& is);

/// In 16 bits 1e15 is infinite, and so is the square of what is left of it.
bool has_half(const Graph& graph);
/// What a row of nothing but hidden keys gives is nobody's promise there: zeros in ONNX Runtime 1.31, means in 1.27.
/// And the lowest float16 swallows the scores, which a wider type keeps.
bool leaves_masked_rows_open(const Graph& graph);
bool is_recurrent(const Node& node);
/// An op of a library that the user brings: it may draw numbers, or remember.
bool is_foreign(const Node& node);
/// Whether NaN is the largest or the smallest depends on its place.
bool picks_extremes(const Node& node);
/// InstanceNormalization whose scale an infinity may reach.
bool scales_by_data(const Node& node);
/// True for ops whose results for NaN and infinities no specification fixes: conversions to integers, sorting,
/// coordinates, spectra, and kernels of ONNX Runtime (1.31) that hide NaN or not depending on the width of their loops.
bool leaves_nan_open(const Node& node);
/// True for a sum or difference of several convolutions or normalizations of one value, or of one and that value. Where
/// the input is infinite, such a sum may be NaN; after pass merge-parallel, which adds the weights instead, it may be
/// infinite or NaN elsewhere.
bool adds_parallel_convolutions(const Node& node);

}  // namespace modelflow
