// Made-up values: what an input most likely stands for, and how its data varies.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>

#include "src/verify/element.h"
#include "src/verify/feeds.h"
#include "src/verify/role.h"

namespace modelflow {
namespace {

using Random = std::mt19937_64;
using Draw = std::function<double(std::int64_t index)>;

/// Uniform in [0, 1) and normal, written out so that every standard library gives the same numbers.
double uniform(Random& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }
double normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - uniform(random)));
  return radius * std::cos(6.283185307179586 * uniform(random));
}

/// FNV-1a: std::hash differs between libraries.
std::uint64_t hash_of(const std::string& text, std::uint64_t seed = 0) {
  std::uint64_t hash = 14695981039346656037ULL + seed;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

std::int64_t longest_sequence(const std::map<std::string, Dims>& all) {
  std::int64_t longest = 1;
  for (const auto& [name, dims] : all)
    if (dims.size() >= 2) longest = std::max(longest, dims.size() == 4 ? dims[3] : dims[1]);
  return longest;
}

/// What the values of one input depend on.
struct Setting {
  const Value& input;
  Meaning meaning;
  const Dims& dims;
  const std::map<std::string, Dims>& all;
  const Extents& extents;
  Style style;

  /// 0 for typical sizes and values, and 1 to 3 for others in turn: what a scalar says may decide what runs at all.
  std::size_t turn() const {
    if (!extents.scalars) return 0;
    return static_cast<std::size_t>(extents.batch + extents.sequence + 3 + static_cast<std::int64_t>(style)) % 4;
  }
  bool is_scalar() const { return element_count(dims) == 1 && dims.size() < 2; }
  std::int64_t last() const { return dims.empty() ? 1 : std::max<std::int64_t>(dims.back(), 1); }
  std::int64_t rows() const { return element_count(dims) / last(); }
};

/// Whether a mask lets element `i` be seen.
bool is_seen(const Setting& s, std::int64_t i) {
  const std::int64_t last = s.last(), row = i / last, column = i % last;
  const std::int64_t lengths[] = {std::max<std::int64_t>(2 * last / 3, 1), 1, last};
  const std::int64_t length = lengths[row % 3];
  switch (s.style) {
    case Style::right_padding:
    case Style::nan:
    case Style::infinite:
      return column < length;
    case Style::left_padding:
      return column >= last - length;
    case Style::masked_rows:
      return s.rows() > 1 && row % 2 == 0;
    default:
      return true;
  }
}

/// One of these numbers for each turn.
Draw in_turn(const Setting& s, const std::array<double, 4>& numbers) {
  return [number = numbers[s.turn()]](std::int64_t) { return number; };
}

/// A flag is one way in typical feeds and both ways in others; two flags come in all four combinations.
Draw flags(const Setting& s, Random& random) {
  if (!s.is_scalar()) return [&random](std::int64_t) { return random() & 1 ? 1.0 : 0.0; };
  const std::uint64_t name = hash_of(s.input.name()), other = name >> 1 & 1 ? 0b0110 : 0b1010;
  return [on = (name ^ other >> s.turn()) & 1](std::int64_t) { return static_cast<double>(on); };
}

Draw masks(const Setting& s) {
  if (s.meaning.role == Role::mask)
    return [s](std::int64_t i) { return is_seen(s, i) != s.meaning.one_hides ? 1.0 : 0.0; };
  const double low = s.style == Style::left_padding ? -1e4 : -3.4028234663852886e38;
  return [s, low](std::int64_t i) { return is_seen(s, i) ? 0.0 : low; };
}

Draw lengths(const Setting& s) {
  const std::int64_t longest = longest_sequence(s.all);
  const std::int64_t odd = std::max<std::int64_t>(longest - 1 - longest % 2, 1);
  const auto shift = s.style == Style::short_lengths ? 0 : 2;
  if (s.style != Style::short_lengths && s.style != Style::odd_lengths)
    return [longest](std::int64_t) { return static_cast<double>(longest); };
  return [=](std::int64_t i) {
    const std::int64_t choices[] = {1, std::min<std::int64_t>(2, longest), odd};
    return static_cast<double>(choices[(i + shift) % 3]);
  };
}

Draw positions(const Setting& s) {
  const std::int64_t last = s.last(), most = s.meaning.limit == INT64_MAX ? INT64_MAX : s.meaning.limit - 1;
  const std::int64_t offset = s.style == Style::inside_cache ? s.extents.past : 0;
  return [=](std::int64_t i) { return static_cast<double>(std::min(offset + i % last, most)); };
}

Draw ids(const Setting& s, Random& random) {
  const bool known = s.meaning.limit != INT64_MAX;
  const double top = known ? static_cast<double>(s.meaning.limit) : 100;
  if (!known && s.is_scalar()) return in_turn(s, {1, 2, 0, 3});
  if (!known && s.style == Style::any_integers)
    return [&random](std::int64_t i) { return std::floor((uniform(random) - 0.5) * (i % 2 ? 200 : 200000)); };
  if (known && s.style == Style::range_ends) return [top](std::int64_t i) { return i % 2 ? 0 : top - 1; };
  if (s.meaning.role == Role::segments) return [](std::int64_t) { return 0.0; };
  return [&random, top](std::int64_t) { return std::floor(uniform(random) * top); };
}

/// Any integer of a type of at most eight bits.
Draw bytes(DType dtype, Random& random) {
  const double count = std::exp2(bits(dtype));
  const bool is_signed = name(dtype).starts_with("int");
  return [&random, count, low = is_signed ? -count / 2 : 0](std::int64_t) {
    return std::floor(uniform(random) * count) + low;
  };
}

/// One in row 0 and the last of all, so that the rows between stay clean.
bool is_special(std::int64_t i, std::int64_t count) { return i == count / 6 || i + 1 == count; }

/// Of a number that a Cast may make an id of a table of so many rows, from either end.
Draw within(Draw draw, std::int64_t rows) {
  if (rows == INT64_MAX) return draw;
  const double most = static_cast<double>(rows);
  return [=](std::int64_t i) {
    const double x = draw(i);
    return std::isfinite(x) ? std::clamp(x, -most, most - 0.5) : x;
  };
}

Draw floats(const Setting& s, Random& random) {
  const std::int64_t count = element_count(s.dims);
  const bool image = s.meaning.role == Role::image;
  const Draw usual = [&random](std::int64_t) { return normal(random); };
  switch (s.style) {
    case Style::unit_image:
      return image ? [&random](std::int64_t) { return uniform(random); } : usual;
    case Style::byte_image:
      return image ? [&random](std::int64_t) { return std::floor(uniform(random) * 256); } : usual;
    case Style::zeros:
      return [](std::int64_t) { return 0.0; };
    case Style::large:
      return [&random](std::int64_t) { return 16 * normal(random); };
    case Style::full_scale:  // a square wave whose pitch rises
      return [](std::int64_t i) { return std::sin(0.02 * std::pow(static_cast<double>(i), 1.2)) < 0 ? -1.0 : 1.0; };
    case Style::nan:
      return [=](std::int64_t i) { return is_special(i, count) ? NAN : usual(i); };
    case Style::infinite:
      return [=](std::int64_t i) { return is_special(i, count) ? (i + 1 == count ? -INFINITY : INFINITY) : usual(i); };
    case Style::extreme:
      return [=](std::int64_t i) {
        const double strange[] = {1e-40, -0.0, 1e15, -1e-40, -1e15};
        const double ordinary = usual(i);
        return i % 3 == 0 ? strange[i / 3 % 5] : ordinary;
      };
    default:
      return usual;
  }
}

/// Not every sum in front of a Softmax is a mask; of these the plain values say more.
bool is_any_bias(const Setting& s) {
  const bool hides = s.style == Style::left_padding || s.style == Style::right_padding || s.style == Style::masked_rows;
  return s.meaning.role == Role::bias && !hides && !has_word(s.input.name(), {"mask"});
}

Draw draw(const Setting& s, Random& random) {
  switch (is_any_bias(s) ? Role::plain : s.meaning.role) {
    case Role::mask:
    case Role::bias:
      return masks(s);
    case Role::lengths:
      return lengths(s);
    case Role::positions:
      return positions(s);
    case Role::rate:
      return in_turn(s, {16000, 8000, 16000, 8000});
    case Role::factor:
      return in_turn(s, {1, 0.7, 1.6, 1});
    case Role::count:
      return in_turn(s, {1, 2, 1, 3});
    case Role::bytes:
      return bytes(s.input.dtype(), random);
    case Role::ids:
    case Role::segments:
      return ids(s, random);
    default:
      return s.input.dtype() == DType::boolean ? flags(s, random) : within(floats(s, random), s.meaning.limit);
  }
}

std::uint64_t seed_of(const Setting& s) {
  std::uint64_t seed = s.style == Style::other ? 1 : 0;
  seed += static_cast<std::uint64_t>(s.extents.batch * 7919 + s.extents.sequence * 104729);
  return hash_of(s.input.name(), seed);
}

Tensor words(const Dims& dims) {
  static const char* const text[] = {"the", "quick", "brown", "fox", "jumps", "over", "a", "dog"};
  std::vector<std::string> strings;
  for (std::int64_t i = 0; i < element_count(dims); ++i) strings.emplace_back(text[i % 8]);
  return Tensor(dims, std::move(strings));
}

}  // namespace

Feeds made_up(const Model& model, const std::map<std::string, Dims>& dims, const Extents& extents, Style style) {
  Feeds feeds;
  for (const Value* input : model.graph().inputs()) {
    if (input->is_initializer()) continue;
    const Dims& own = dims.at(input->name());
    if (input->dtype() == DType::string) {
      feeds[input->name()] = words(own);
      continue;
    }
    const Setting setting{*input, meaning_of(*input), own, dims, extents, style};
    Random random(seed_of(setting));
    const Draw value = draw(setting, random);
    feeds[input->name()] = Tensor::make(input->dtype(), own, [&](std::byte* out) {
      for (std::int64_t i = 0; i < element_count(own); ++i) store_element(input->dtype(), out, i, value(i));
    });
  }
  return feeds;
}

}  // namespace modelflow
