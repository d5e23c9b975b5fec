// Names for functions of dims: Dim::parse reads " + ", "*" and the like as arithmetic, so they are spelled out.
#include "src/onnx/derived.h"

#include <algorithm>
#include <string>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace modelflow {
namespace {

constexpr std::size_t kLongest = 60;

// "n_a + 2*m" -> "n__a_p2_xm": what follows one underscore is an operator, so that no two texts are spelled the same.
// Empty where a character has no spelling.
std::string spelled(std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ' && i + 2 < text.size() && text[i + 2] == ' ' && (text[i + 1] == '+' || text[i + 1] == '-')) {
      name += text[i + 1] == '+' ? "_p" : "_m";
      i += 2;
    } else if (c == '*') {
      name += "_x";
    } else if (c == '_') {
      name += "__";
    } else if (std::string_view(" +-()/").find(c) != std::string_view::npos) {
      return "";
    } else {
      name += c;
    }
  }
  return name;
}

/// The text that spelled() made a name of.
std::string unspelled(std::string_view name) {
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '_' || i + 1 == name.size()) {
      text += name[i];
      continue;
    }
    const char c = name[++i];
    text += c == 'p' ? " + " : c == 'm' ? " - " : c == 'x' ? "*" : std::string(1, c);
  }
  return text;
}

}  // namespace

bool never_negative(const Dim& dim) {
  if (const auto number = dim.number()) return *number >= 0;
  return !dim.unknown() && dim.str().find('-') == std::string::npos;
}

Dim derived_symbol(std::string_view function, const Dim& dim, std::string_view end) {
  const std::string text = dim.str(), name = spelled(text);
  std::string symbol = std::string(kDerived) + std::string(function);
  if (!name.empty() && name.size() <= kLongest) return Dim::symbol(symbol + "_" + name + std::string(end));
  // "h_1": a digit behind an underscore spells nothing, so that no hash is taken for a number or a symbol.
  const std::string key = text + std::string(end);
  return Dim::symbol(symbol + "_h_" + std::to_string(XXH3_64bits(key.data(), key.size())));
}

std::optional<Dim> derived_from(std::string_view symbol, std::string_view function, std::string_view end) {
  const std::string start = std::string(kDerived) + std::string(function) + "_";
  if (symbol.size() <= start.size() + end.size() || !symbol.starts_with(start) || !symbol.ends_with(end)) return {};
  const Dim dim = Dim::parse(unspelled(symbol.substr(start.size(), symbol.size() - start.size() - end.size())));
  if (!(derived_symbol(function, dim, end) == Dim::symbol(std::string(symbol)))) return {};
  return dim;
}

bool is_derived(const Dim& dim) {
  return std::ranges::any_of(dim.symbols(), [](const std::string& symbol) { return symbol.starts_with(kDerived); });
}

Dim plainer(const Dim& a, const Dim& b) {
  if (a.known() || b.unknown()) return a;
  return a.unknown() || b.known() || (is_derived(a) && !is_derived(b)) ? b : a;
}

}  // namespace modelflow
