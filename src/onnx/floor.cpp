#include "src/onnx/floor.h"

#include <map>
#include <string>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace modelflow {
namespace {

constexpr std::size_t kLongest = 60;

// A symbol that stands for the text: Dim::parse reads " + ", "*" and the like as arithmetic, so they are spelled out.
std::string symbol_for(const std::string& text, std::int64_t divisor) {
  std::string name = "floor_";
  bool exact = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == ' ' && i + 2 < text.size() && text[i + 2] == ' ' && (text[i + 1] == '+' || text[i + 1] == '-')) {
      name += text[i + 1] == '+' ? "_p" : "_m";
      i += 2;
    } else if (c == '*') {
      name += 'x';
    } else if (std::string_view(" +-()/").find(c) != std::string_view::npos) {
      exact = false;
    } else {
      name += c;
    }
  }
  name += "_by" + std::to_string(divisor);
  if (exact && name.size() <= kLongest) return name;
  std::string key = text + "/" + std::to_string(divisor);
  return "floor_" + std::to_string(XXH3_64bits(key.data(), key.size()));
}

std::int64_t floor_of(std::int64_t value, std::int64_t divisor) {
  std::int64_t quotient = value / divisor;
  return quotient * divisor > value ? quotient - 1 : quotient;
}

}  // namespace

Dim floor_div(const Dim& dim, std::int64_t divisor) {
  if (dim.unknown() || divisor <= 0) return {};
  if (divisor == 1) return dim;
  std::map<std::string, std::int64_t> zeros;
  for (const std::string& symbol : dim.symbols()) zeros[symbol] = 0;
  std::int64_t constant = dim.evaluate(zeros).value_or(0);
  std::int64_t whole = floor_of(constant, divisor);
  if (zeros.empty()) return whole;
  Dim symbolic = dim - Dim(constant);
  Dim exact = symbolic.divided_by(Dim(divisor));  // then the rest of the constant is below 1
  if (!exact.unknown()) return exact + Dim(whole);
  Dim rest = symbolic + Dim(constant - whole * divisor);
  return Dim::symbol(symbol_for(rest.str(), divisor)) + Dim(whole);
}

}  // namespace modelflow
