// What rules about products ask of a match.
#pragma once

#include <vector>

#include "modelflow/pattern.h"

namespace modelflow::passes {

std::vector<Rule> turned_linear_rules();     ///< a Transpose behind a linear layer
std::vector<Rule> left_linear_rules();       ///< a constant that multiplies from the left
std::vector<Rule> head_scale_rules();        ///< a factor of each head behind a product of two tensors
std::vector<Rule> repeated_product_rules();  ///< a matrix of each head, repeated for every batch
std::vector<Rule> broadcast_parts_rules();   ///< a Concat of which some operands repeat one row

/// Yes when the Gemm that a match calls "product" neither transposes A nor weighs the sum.
Verdict plain_gemm(const Match& m);
/// What a match calls "b" or "c", where it is there, is of one axis at most.
Verdict bias_is_vector(const Match& m);

}  // namespace modelflow::passes
