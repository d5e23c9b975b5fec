// Gathers all loops over vectors, for the instruction set that the including file is compiled for.
#pragma once

#include "backends/cpu/loops/bytes_loops.h"
#include "backends/cpu/loops/channels_loops.h"
#include "backends/cpu/loops/norm_loops.h"
#include "backends/cpu/loops/pointwise_loops.h"
#include "backends/cpu/loops/products_loops.h"
#include "backends/cpu/loops/resize_loops.h"
#include "backends/cpu/loops/rotary_loops.h"
#include "backends/cpu/loops/scan_loops.h"
#include "backends/cpu/loops/softmax_loops.h"
#include "backends/cpu/loops/vector_code.h"

namespace modelflow::cpu {
namespace {

constexpr VectorCode kCode = {
    .pointwise = {activate, step, fill, join},
    .softmax = {softmax_row, softmax_columns},
    .norm = {layer_norm, rms_norm, moments, shift_and_scale, add_distances, shift_and_scale_rows},
    .channels = {add_rows, largest_rows<float>, largest_rows<std::uint16_t>, max_windows, mean_windows, scale_rows,
                 scale, sum, vector_by<float>, vector_by<std::int8_t>, to_bf16, from_bf16, transpose},
    .rotary = {turn_halves<false>, turn_halves<true>, turn_neighbours, turn_neighbours_wide},
    .products = {small_product, column_squares},
    .resize = {across, between},
    .bytes = {max_window, add_byte_rows, sum_bytes, rescale_rows, rescale, quantize, dequantize, quantize_last,
              dequantize_second, add, add_by_definition},
    .scan = {selective_steps<false>, selective_steps<true>},
};

}  // namespace
}  // namespace modelflow::cpu
