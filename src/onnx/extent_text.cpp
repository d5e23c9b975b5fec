// A reader of expressions with the precedence that Python gives their operators.
#include "src/onnx/extent_text.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "modelflow/symbols.h"
#include "src/onnx/floor.h"

namespace modelflow {
namespace {

using Numbers = std::map<std::string, std::int64_t>;

constexpr int kDeepest = 64;            // of parentheses and signs: files may hold anything
constexpr std::int64_t kHighest = 8;    // of powers: more than a polynomial keeps
constexpr std::size_t kLongest = 2000;  // what is longer is a name: arithmetic copies names
constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";

/// An unknown dim where the text is none of these expressions, or says what no symbol can stand for.
class Expression {
 public:
  Expression(std::string_view text, const Numbers& numbers) : text_(text), numbers_(numbers) {}

  Dim read() {
    Dim dim = sum();
    return at_ == text_.size() ? dim : Dim();
  }

 private:
  void skip_blanks() { at_ = std::min(text_.find_first_not_of(' ', at_), text_.size()); }

  bool take(std::string_view token) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  Dim sum() {
    Dim total = product();
    bool several = false;
    while (!total.unknown()) {
      if (take("+"))
        total = total + product();
      else if (take("-"))
        total = total - product();
      else
        break;
      several = true;
    }
    several_ = several;
    return total;
  }

  Dim product() {
    Dim total = factor();
    while (!total.unknown() && take("*")) total = total * factor();
    return total;
  }

  static Dim quotient(const Dim& dim, const Dim& divisor) {
    return divisor.known() ? floor_div(dim, divisor.value()) : dim.divided_by(divisor);
  }

  Dim factor() {
    if (++depth_ > kDeepest) return {};
    Dim result = take("-") ? Dim(0) - factor() : power();
    --depth_;
    return result;
  }

  Dim power() {
    Dim base = atom();
    if (base.unknown() || !take("**")) return base;
    const Dim exponent = atom();
    if (!exponent.known() || exponent.value() < 0 || exponent.value() > kHighest) return {};
    Dim result = 1;
    for (std::int64_t i = 0; i < exponent.value(); ++i) result = result * base;
    return result;
  }

  Dim atom() {
    if (take("(")) return bracketed();
    const std::string_view word = letters();
    if (word.empty()) return {};
    if (word[0] < '0' || word[0] > '9')
      return take("(") ? function(word) : Dim::symbol(std::string(word)).with(numbers_);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    return error == std::errc() && end == word.data() + word.size() ? Dim(number) : Dim();
  }

  /// Behind its parenthesis. A quotient is alone between two of them: a symbol called "c//b" times b prints as
  /// "b*c//b". Behind a sum the sign divides the last term only, which no exporter writes.
  Dim bracketed() {
    Dim inner = sum();
    if (take("//")) inner = several_ ? Dim() : quotient(inner, factor());
    return take(")") ? inner : Dim();
  }

  /// Behind its parenthesis.
  Dim function(std::string_view name) {
    std::vector<Dim> given;
    do given.push_back(sum());
    while (take(","));
    if (!take(")")) return {};
    if (name == "Mod" && given.size() == 2) return given[0] - quotient(given[0], given[1]) * given[1];
    if (name != "Min" && name != "Max") return {};
    Dim result = given[0];
    for (const Dim& next : given) result = name == "Min" ? smaller(result, next) : larger(result, next);
    return result;
  }

  std::string_view letters() {
    skip_blanks();
    const std::size_t from = at_;
    at_ = std::min(text_.find_first_not_of(kLetters, from), text_.size());
    return text_.substr(from, at_ - from);
  }

  std::string_view text_;
  const Numbers& numbers_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool several_ = false;  ///< the sum that was read last has more than one term
};

/// Whether the parenthesis that begins the text ends with it.
bool is_bracketed(std::string_view text) {
  int open = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    open += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (open == 0) return i > 0 && i + 1 == text.size();
  }
  return false;
}

}  // namespace

Dim settled_extent(const Dim& dim, const Numbers& numbers) {
  Dim settled = dim.with(numbers);
  if (!is_symbol(settled) || !is_bracketed(settled.str())) return settled;
  const Dim read = read_extent(settled.str(), numbers);
  return read.known() && read.value() < 0 ? settled : read;
}

Dim read_extent(const std::string& text, const Numbers& numbers) {
  if (text.find('(') == std::string::npos || text.size() > kLongest) return Dim::parse(text);
  const Dim dim = Expression(text, numbers).read();
  return dim.unknown() ? Dim::parse(text) : dim;
}

}  // namespace modelflow
