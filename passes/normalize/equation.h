// Contractions of two operands, axis by axis, and the matrix products that they are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "modelflow/pass.h"

namespace modelflow::passes {

/// The axes of both operands and the result, a letter for each, and how a matrix product sees them.
struct Equation {
  std::string a, b, y;
  std::string batch, rows, columns, summed;
  bool swapped = false;  ///< a is the second operand
};

/// The equation of an Einsum: a letter for each axis of each operand and of the result.
struct Terms {
  std::vector<std::string> operands;
  std::string y;
};

/// Reads "bij, bjk -> bik"; nothing for forms with an ellipsis, a repeated axis in one term or no result.
std::optional<Terms> read_terms(std::string text);

inline bool has_axis(const std::string& axes, char axis) { return axes.find(axis) != std::string::npos; }

/// Tells the axes apart: rows are a's alone, columns b's. No where an operand alone has what is summed, and where a
/// product would need reshapes of several axes on both sides.
Verdict classify(Equation& e);
/// Whether one MatMul gives it, of these operands (in the order of classify's a and b).
Verdict is_matrix_product(const Equation& e, const Value& a, const Value& b);
/// That product, between Transposes.
Value& matrix_product(Build& build, const Equation& e, Value& a, Value& b);
/// `value` with its axes in another order; as it is when the order is that already.
Value& ordered(Build& build, Value& value, const std::string& from, const std::string& to);
/// True where no axis of that is 1 in one operand alone, which a product does not repeat.
Verdict same_extents(const Shape& a, const std::string& a_axes, const Shape& b, const std::string& b_axes,
                     const std::string& axes);

/// Einsum of this many operands of which nothing is summed: their product, each repeated along what it does not have.
Rule outer_product(std::size_t operands);
/// ReduceSum of the product of two operands that are repeated along each other's axes.
Rule summed_product();

}  // namespace modelflow::passes
