// Polynomials with integer coefficients over symbols; whatever overflows or grows too long becomes unknown.
#include <algorithm>
#include <charconv>

#include "modelflow/error.h"
#include "modelflow/shape.h"

namespace modelflow {
namespace {

constexpr std::size_t kMaxTerms = 32, kMaxDegree = 8;
using Monomial = std::vector<std::string>;
using Terms = std::map<Monomial, std::int64_t>;

/// Graded lexicographic order: by degree, then by the powers of the alphabetically first symbols.
bool before(const Monomial& a, const Monomial& b) { return a.size() != b.size() ? a.size() > b.size() : a < b; }

Terms::const_iterator leading(const Terms& terms) {
  return std::min_element(terms.begin(), terms.end(), [](auto& a, auto& b) { return before(a.first, b.first); });
}

/// Adds coefficient * monomial; false on overflow.
bool accumulate(Terms& terms, const Monomial& monomial, std::int64_t coefficient) {
  std::int64_t& sum = terms[monomial];
  if (__builtin_add_overflow(sum, coefficient, &sum)) return false;
  if (sum == 0) terms.erase(monomial);
  return terms.size() <= kMaxTerms;
}

std::optional<Terms> product(const Terms& a, const Terms& b) {
  Terms out;
  for (const auto& [left, x] : a) {
    for (const auto& [right, y] : b) {
      std::int64_t coefficient = 0;
      if (__builtin_mul_overflow(x, y, &coefficient) || left.size() + right.size() > kMaxDegree) return {};
      Monomial monomial(left.size() + right.size());
      std::merge(left.begin(), left.end(), right.begin(), right.end(), monomial.begin());
      if (!accumulate(out, monomial, coefficient)) return {};
    }
  }
  return out;
}

/// out += factor * terms; nothing on overflow.
std::optional<Terms> sum(Terms out, const Terms& terms, std::int64_t factor) {
  for (const auto& [monomial, value] : terms) {
    std::int64_t scaled = 0;
    if (__builtin_mul_overflow(value, factor, &scaled) || !accumulate(out, monomial, scaled)) return {};
  }
  return out;
}

/// Exact long division; nothing when it leaves a remainder.
std::optional<Terms> quotient(Terms rest, const Terms& divisor) {
  Terms out;
  const auto by = leading(divisor);
  while (!rest.empty()) {
    const auto lead = leading(rest);
    if (!std::includes(lead->first.begin(), lead->first.end(), by->first.begin(), by->first.end())) return {};
    if (by->second == -1 ? lead->second == INT64_MIN : lead->second % by->second != 0) return {};
    Monomial monomial;
    std::set_difference(lead->first.begin(), lead->first.end(), by->first.begin(), by->first.end(),
                        std::back_inserter(monomial));
    const Terms step = {{monomial, lead->second / by->second}};
    const auto subtrahend = product(step, divisor);
    auto less = subtrahend ? sum(std::move(rest), *subtrahend, -1) : std::nullopt;
    if (!less || !accumulate(out, monomial, step.begin()->second)) return {};
    rest = std::move(*less);
  }
  return out;
}

bool is_symbol(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  return text.find_first_of(" *+-()/") == std::string_view::npos;
}

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

/// One term as str() writes it: "12", "batch", "12*batch*seq", with a minus in front where it stands first.
std::optional<Dim> parse_term(std::string_view text) {
  Dim term = 1;
  if (text.starts_with('-') && !integer(text)) {
    term = -1;
    text.remove_prefix(1);
  }
  for (bool first = true; first || !text.empty(); first = false) {
    const std::size_t star = std::min(text.find('*'), text.size());
    const std::string_view factor = text.substr(0, star);
    text.remove_prefix(std::min(star + 1, text.size()));
    if (const auto value = integer(factor); value && first)
      term = term * Dim(*value);
    else if (is_symbol(factor))
      term = term * Dim::symbol(std::string(factor));
    else
      return {};
    if (term.unknown()) return {};  // of too high a degree
  }
  return term;
}

/// Where the next " + " or " - " stands. One scan: a search for each of both would read a long text once per term.
std::size_t next_sign(std::string_view text) {
  for (std::size_t at = text.find(' '); at != text.npos; at = text.find(' ', at + 1)) {
    const std::string_view sign = text.substr(at, 3);
    if (sign == " + " || sign == " - ") return at;
  }
  return text.npos;
}

std::optional<Dim> parse_sum(std::string_view text) {
  Dim total = 0;
  bool minus = false;
  while (true) {
    const std::size_t end = next_sign(text);
    const auto term = parse_term(text.substr(0, std::min(end, text.size())));
    if (!term) return {};
    total = minus ? total - *term : total + *term;
    if (end == text.npos || total.unknown()) return total;
    minus = text[end + 1] == '-';
    text.remove_prefix(end + 3);
  }
}

}  // namespace

Dim Dim::of(std::optional<Terms> terms) {
  if (!terms) return {};
  if (terms->empty()) return 0;
  if (terms->size() == 1 && terms->begin()->first.empty()) return terms->begin()->second;
  Dim dim;
  dim.terms_ = std::make_shared<const Terms>(std::move(*terms));
  return dim;
}

Dim::Terms Dim::terms() const {
  if (terms_) return *terms_;
  return number_.value_or(0) == 0 ? Terms() : Terms{{{}, *number_}};
}

Dim Dim::symbol(std::string name) { return of(Terms{{{std::move(name)}, 1}}); }

Dim Dim::parse(std::string_view text) {
  if (text.empty() || text == "?") return {};
  // Only what str() would write is read as arithmetic, so that every dim_param comes out as it went in.
  if (const auto sum = parse_sum(text); sum && sum->str() == text) return *sum;
  return symbol(std::string(text));
}

std::int64_t Dim::value() const {
  if (!number_) throw Error(ErrorKind::internal, "the dim '" + str() + "' was read as a number");
  return *number_;
}

Dim Dim::divided_by(const Dim& divisor) const {
  if (unknown() || divisor.unknown() || divisor.number_ == 0) return {};
  if (known() && divisor.known()) {
    const std::int64_t by = *divisor.number_;
    const bool comes_out = by == -1 ? *number_ != INT64_MIN : *number_ % by == 0;
    return comes_out ? Dim(*number_ / by) : Dim();
  }
  return of(quotient(terms(), divisor.terms()));
}

std::vector<std::string> Dim::symbols() const {
  std::vector<std::string> found;
  if (!terms_) return found;
  for (const auto& [monomial, coefficient] : *terms_) found.insert(found.end(), monomial.begin(), monomial.end());
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::optional<std::int64_t> Dim::evaluate(const std::map<std::string, std::int64_t>& symbols) const {
  return with(symbols).number();
}

Dim Dim::with(const std::map<std::string, std::int64_t>& symbols) const {
  if (!terms_) return *this;
  Dim sum = 0;
  for (const auto& [monomial, coefficient] : *terms_) {
    Dim product = coefficient;
    for (const std::string& symbol : monomial) {
      const auto found = symbols.find(symbol);
      product = product * (found == symbols.end() ? Dim::symbol(symbol) : Dim(found->second));
    }
    sum = sum + product;
  }
  return sum;
}

std::string Dim::str() const {
  if (number_) return std::to_string(*number_);
  if (!terms_) return "?";
  std::vector<std::pair<Monomial, std::int64_t>> ordered(terms_->begin(), terms_->end());
  std::sort(ordered.begin(), ordered.end(), [](auto& a, auto& b) { return before(a.first, b.first); });
  std::string text;
  for (const auto& [monomial, coefficient] : ordered) {
    std::string digits = std::to_string(coefficient);
    if (!text.empty()) text += coefficient < 0 ? " - " : " + ";
    if (!text.empty() && coefficient < 0) digits.erase(0, 1);
    if (monomial.empty())
      text += digits;
    else if (digits == "-1")
      text += "-";
    else if (digits != "1")
      text += digits + "*";
    for (std::size_t i = 0; i < monomial.size(); ++i) text += (i ? "*" : "") + monomial[i];
  }
  return text;
}

bool Dim::operator==(const Dim& other) const {
  if (number_ || other.number_) return number_ == other.number_;
  return terms_ && other.terms_ && (terms_ == other.terms_ || *terms_ == *other.terms_);
}

Dim operator+(const Dim& a, const Dim& b) {
  std::int64_t total = 0;
  if (a.known() && b.known()) return __builtin_add_overflow(*a.number_, *b.number_, &total) ? Dim() : Dim(total);
  return a.unknown() || b.unknown() ? Dim() : Dim::of(sum(a.terms(), b.terms(), 1));
}

Dim operator-(const Dim& a, const Dim& b) {
  std::int64_t total = 0;
  if (a.known() && b.known()) return __builtin_sub_overflow(*a.number_, *b.number_, &total) ? Dim() : Dim(total);
  return a.unknown() || b.unknown() ? Dim() : Dim::of(sum(a.terms(), b.terms(), -1));
}

Dim operator*(const Dim& a, const Dim& b) {
  std::int64_t total = 0;
  if (a.known() && b.known()) return __builtin_mul_overflow(*a.number_, *b.number_, &total) ? Dim() : Dim(total);
  return a.unknown() || b.unknown() ? Dim() : Dim::of(product(a.terms(), b.terms()));
}

}  // namespace modelflow
