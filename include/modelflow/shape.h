// Extents and shapes of tensors, with symbols for what is not known as a number.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modelflow {

/// One extent of a tensor: unknown, a number, or a polynomial with integer coefficients over named symbols.
///
///     Dim batch = Dim::symbol("batch");
///     (batch * 12 + 3).str();                  // "12*batch + 3"
///     Dim() == Dim();                          // false: two unknowns are never provably equal
class Dim {
 public:
  Dim() = default;                             ///< unknown
  Dim(std::int64_t value) : number_(value) {}  // NOLINT: numbers are dims
  static Dim symbol(std::string name);
  /// What str() wrote; any other text is one symbol (dim_param may hold anything), "" or "?" is unknown.
  static Dim parse(std::string_view text);

  bool unknown() const { return !number_ && !terms_; }
  bool known() const { return number_.has_value(); }  ///< a number
  std::int64_t value() const;                         ///< the number; throws Error(internal) unless known()
  std::optional<std::int64_t> number() const { return number_; }
  /// Exact quotient, unknown when it does not divide.
  Dim divided_by(const Dim& divisor) const;
  std::string str() const;
  /// The symbols it is made of, without repetition; empty for numbers and the unknown dim.
  std::vector<std::string> symbols() const;
  /// Its value for these values of the symbols; none when one is missing or the dim is unknown.
  std::optional<std::int64_t> evaluate(const std::map<std::string, std::int64_t>& symbols) const;
  /// The same with numbers for these symbols.
  Dim with(const std::map<std::string, std::int64_t>& symbols) const;
  /// Provably equal.
  bool operator==(const Dim& other) const;
  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);

 private:
  using Monomial = std::vector<std::string>;  // sorted symbols, repeated for powers; empty for the constant
  using Terms = std::map<Monomial, std::int64_t>;
  static Dim of(std::optional<Terms> terms);
  Terms terms() const;

  std::optional<std::int64_t> number_;
  std::shared_ptr<const Terms> terms_;  // of what is known and no number
};

/// The shape of a tensor: rank unknown, or one Dim per axis. Copies share the dims, which never change.
class Shape {
 public:
  Shape() = default;                                                                                  ///< rank unknown
  Shape(std::vector<Dim> dims) : dims_(std::make_shared<const std::vector<Dim>>(std::move(dims))) {}  // NOLINT
  static Shape of(const std::vector<std::int64_t>& dims) { return {std::vector<Dim>(dims.begin(), dims.end())}; }

  bool has_rank() const { return dims_ != nullptr; }
  std::size_t rank() const;              ///< throws Error(internal) when unknown
  const std::vector<Dim>& dims() const;  ///< throws Error(internal) when the rank is unknown
  const Dim& operator[](std::size_t axis) const { return dims()[axis]; }
  const Dim& back() const { return dims().back(); }
  bool known() const;                        ///< every dim is a number
  std::vector<std::int64_t> values() const;  ///< throws unless known()
  /// Product of the dims; unknown when any is.
  Dim elements() const;
  /// The product of the dims that are numbers, for estimates: 1 when none is or the rank is unknown.
  double known_elements() const;
  std::string str() const;  ///< "[batch,3,224,224]", "[...]" when the rank is unknown
  /// Same rank and every dim provably equal.
  bool operator==(const Shape& other) const;

 private:
  std::shared_ptr<const std::vector<Dim>> dims_;
};

}  // namespace modelflow
