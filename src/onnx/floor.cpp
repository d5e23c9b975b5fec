// What polynomials do not say of extents: quotients that are rounded, the smaller and the larger of two.
#include "src/onnx/floor.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <vector>

#include "src/onnx/derived.h"

namespace modelflow {
namespace {

constexpr std::string_view kTruncated = "quotient";  // the function of such symbols

std::int64_t floor_of(std::int64_t value, std::int64_t divisor) {
  const std::int64_t quotient = value / divisor;
  return quotient * divisor > value ? quotient - 1 : quotient;
}

/// The number behind the last `mark` of a name, 2 for "_by" in "modelflow_floor_h_p1_by2"; 0 where that is not its end.
std::int64_t number_behind(const std::string& name, std::string_view mark) {
  const std::size_t at = name.rfind(mark);
  std::int64_t number = 0;
  if (at == std::string::npos) return 0;
  const auto [end, error] = std::from_chars(name.data() + at + mark.size(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? number : 0;
}

/// floor((floor(r / a) + m) / b) as floor((r + a * m) / (a * b)), which is how PyTorch's exporter says the extent
/// behind several convolutions; unknown where there is no such floor.
Dim joined_floors(const Dim& dim, std::int64_t divisor) {
  for (const std::string& symbol : dim.symbols()) {
    const std::int64_t inner = number_behind(symbol, "_by");
    const auto dividend = inner > 1 ? derived_from(symbol, "floor", "_by" + std::to_string(inner)) : std::nullopt;
    const Dim more = dim - Dim::symbol(symbol);
    std::int64_t both = 0;
    if (!dividend || std::ranges::count(more.symbols(), symbol) > 0 || __builtin_mul_overflow(inner, divisor, &both))
      continue;
    if (Dim joined = floor_div(*dividend + more * Dim(inner), both); !joined.unknown()) return joined;
  }
  return {};
}

/// The terms whose sum the dim is; none where names of symbols look like sums.
std::vector<Dim> terms_of(const Dim& dim) {
  std::vector<Dim> terms;
  Dim sum = 0;
  const std::string text = dim.str();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min({text.find(" + ", at), text.find(" - ", at), text.size()});
    const Dim term = Dim::parse(text.substr(at, end - at));
    terms.push_back(at > 0 && text[at - 2] == '-' ? Dim(0) - term : term);
    sum = sum + terms.back();
    at = end == text.size() ? end : end + 3;
  }
  return sum == dim ? terms : std::vector<Dim>();
}

/// What the divisor divides of the terms, divided; 0 where it divides none.
Dim divided_terms(const Dim& dim, std::int64_t divisor) {
  Dim total = 0;
  for (const Dim& term : terms_of(dim))
    if (const Dim exact = term.divided_by(Dim(divisor)); !exact.unknown()) total = total + exact;
  return total;
}

/// max(dim, 0) where dim is max(x, 0) + rest and one of the two bounds decides: max(x + rest, 0) where the rest is
/// never above 0. Unknown where there is no such bound.
Dim joined_bounds(const Dim& dim) {
  for (const std::string& symbol : dim.symbols()) {
    const auto bounded = bounded_by(symbol);
    const Dim rest = dim - Dim::symbol(symbol);
    if (!bounded || std::ranges::count(rest.symbols(), symbol) > 0) continue;
    if (never_negative(Dim(0) - rest)) return at_least_zero(*bounded + rest);
    if (never_negative(Dim(0) - rest - *bounded)) return at_least_zero(rest);
  }
  return {};
}

}  // namespace

Dim floor_div(const Dim& dim, std::int64_t divisor) {
  if (dim.unknown() || divisor <= 0) return {};
  if (divisor == 1) return dim;
  std::map<std::string, std::int64_t> zeros;
  for (const std::string& symbol : dim.symbols()) zeros[symbol] = 0;
  const std::int64_t constant = dim.evaluate(zeros).value_or(0);
  const std::int64_t whole = floor_of(constant, divisor);
  if (zeros.empty()) return whole;
  const Dim symbolic = dim - Dim(constant);
  const Dim exact = symbolic.divided_by(Dim(divisor));  // then the rest of the constant is below 1
  if (!exact.unknown()) return exact + Dim(whole);
  if (Dim joined = joined_floors(dim, divisor); !joined.unknown()) return joined;
  const Dim rest = symbolic + (Dim(constant) - Dim(whole) * Dim(divisor)), divided = divided_terms(symbolic, divisor);
  if (!(divided == Dim(0))) return floor_div(rest - divided * Dim(divisor), divisor) + divided + Dim(whole);
  if (!never_negative(rest)) {
    const Dim turned = Dim(divisor - 1) - rest;  // floor(-n / d) is -ceil(n / d)
    return never_negative(turned) ? Dim(whole) - floor_div(turned, divisor) : Dim();
  }
  return derived_symbol("floor", rest, "_by" + std::to_string(divisor)) + Dim(whole);
}

Dim ceil_div(const Dim& dim, std::int64_t divisor) {
  return divisor > 0 ? floor_div(dim + Dim(divisor - 1), divisor) : Dim();
}

Dim truncated_div(const Dim& dim, std::int64_t divisor) {
  if (dim.unknown() || divisor <= 0) return {};
  if (const Dim floor = floor_div(dim, divisor); never_negative(dim) || never_negative(floor)) return floor;
  if (!never_negative(dim + Dim(divisor - 1))) return {};
  return derived_symbol(kTruncated, dim, "_by" + std::to_string(divisor));
}

std::optional<Dim> bounded_by(std::string_view symbol) {
  if (auto bounded = derived_from(symbol, "pos", "")) return bounded;
  const std::int64_t divisor = number_behind(std::string(symbol), "_by");
  const auto dividend = divisor > 1 ? derived_from(symbol, kTruncated, "_by" + std::to_string(divisor)) : std::nullopt;
  return dividend ? std::optional(floor_div(*dividend, divisor)) : std::nullopt;
}

bool has_open_quotient(const Dim& dim) {
  const std::string start = std::string(kDerived) + std::string(kTruncated) + "_";
  return std::ranges::any_of(dim.symbols(), [&](const std::string& symbol) { return symbol.starts_with(start); });
}

Dim at_least_zero(const Dim& dim) {
  if (dim.unknown() || never_negative(dim)) return dim;
  const Dim turned = Dim(0) - dim;
  if (turned.unknown()) return {};
  if (never_negative(turned)) return 0;
  if (Dim joined = joined_bounds(dim); !joined.unknown()) return joined;
  // One of the two is written with a minus in front: both are told by the other's symbol, or neither could be compared.
  return dim.str().starts_with('-') ? dim + derived_symbol("pos", turned) : derived_symbol("pos", dim);
}

bool is_start_of(const Dim& dim, const Dim& whole) {
  const Dim rest = whole - dim;
  const std::string name = rest.str();
  if (!name.starts_with(std::string(kDerived) + "pos_")) return false;
  const std::int64_t most = number_behind(name, "_m");
  return most >= 1 && smaller(whole, most) == dim;
}

}  // namespace modelflow
