// Made-up values: what an input most likely stands for, by dtype, name and use.
#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstring>
#include <functional>

#include "src/verify/feeds.h"

namespace modelflow {
namespace {

using Random = std::mt19937_64;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool has(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

/// Uniform in [0, 1) and normal, written out so that every standard library gives the same numbers.
double uniform(Random& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }
double normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - uniform(random)));
  return radius * std::cos(6.283185307179586 * uniform(random));
}

/// The smallest table that this value indexes (an embedding's vocabulary), through Casts and reshapes.
std::int64_t index_limit(const Value& value, int depth = 0) {
  std::int64_t limit = INT64_MAX;
  for (const Use& use : value.uses()) {
    const Node& node = *use.node;
    if (node.is("Gather") && use.index == 1 && node.input(0)->shape().has_rank()) {
      const Shape& table = node.input(0)->shape();
      const std::int64_t axis = node.attrs.integer("axis", 0);
      const std::size_t at = static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(table.rank()) : axis);
      if (at < table.rank() && table[at].known()) limit = std::min(limit, table[at].value());
    } else if (depth < 4 && use.index == 0 && node.output() &&
               (node.is("Cast") || node.is("Reshape") || node.is("Unsqueeze") || node.is("Squeeze") ||
                node.is("Identity") || node.is("Flatten"))) {
      limit = std::min(limit, index_limit(*node.output(), depth + 1));
    }
  }
  return limit;
}

std::int64_t longest_sequence(const std::map<std::string, Dims>& all) {
  std::int64_t longest = 1;
  for (const auto& [name, dims] : all)
    if (dims.size() >= 2) longest = std::max(longest, dims.size() == 4 ? dims[3] : dims[1]);
  return longest;
}

using Draw = std::function<double(std::int64_t index)>;

Draw integers(const Value& input, const Dims& dims, const std::map<std::string, Dims>& all, Random& random) {
  const std::string name = lower(input.name());
  const std::int64_t last = dims.empty() ? 1 : std::max<std::int64_t>(dims.back(), 1);
  if (has(name, {"mask"})) return [](std::int64_t) { return 1.0; };
  if (has(name, {"token_type", "segment", "type_id"})) return [](std::int64_t) { return 0.0; };
  if (has(name, {"position"})) return [last](std::int64_t i) { return static_cast<double>(i % last); };
  if (name == "sr" || has(name, {"sample_rate", "sampling_rate"})) return [](std::int64_t) { return 16000.0; };
  if (has(name, {"length", "lens", "_len"})) {
    const double longest = static_cast<double>(longest_sequence(all));
    return [longest](std::int64_t) { return longest; };
  }
  if (input.dtype() == DType::u8) return [&random](std::int64_t) { return std::floor(uniform(random) * 256); };
  if (input.dtype() == DType::i8) return [&random](std::int64_t) { return std::floor(uniform(random) * 256) - 128; };
  const std::int64_t limit = index_limit(input);
  const double top = limit == INT64_MAX ? (dims.empty() ? 2.0 : 100.0) : static_cast<double>(limit);
  return [&random, top](std::int64_t) { return std::floor(uniform(random) * top); };
}

Draw floats(const Value& input, const Dims& dims, int style, Random& random) {
  const std::string name = lower(input.name());
  if (has(name, {"mask"})) return [](std::int64_t) { return 1.0; };
  if (has(name, {"temperature", "threshold", "prob", "scale"}) && dims.size() < 2)
    return [](std::int64_t) { return 1.0; };
  if (dims.size() == 4 && style % 2 == 1) return [&random](std::int64_t) { return uniform(random); };
  return [&random](std::int64_t) { return normal(random); };
}

template <class T>
void put(std::byte* out, std::int64_t i, T value) {
  std::memcpy(out + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
}

/// Round towards zero is exact enough for made-up values, and far simpler.
std::uint16_t half(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  const int exponent = static_cast<int>(bits >> 23 & 0xff) - 127 + 15;
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  if (exponent <= 0) return sign;
  if (exponent >= 31) return static_cast<std::uint16_t>(sign | 0x7bff);
  return static_cast<std::uint16_t>(sign | exponent << 10 | (bits >> 13 & 0x3ff));
}

void store(DType dtype, std::byte* out, std::int64_t i, double value) {
  switch (dtype) {
    case DType::f32:
      return put(out, i, static_cast<float>(value));
    case DType::f64:
      return put(out, i, value);
    case DType::f16:
      return put(out, i, half(value));
    case DType::bf16:
      return put(out, i, static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16));
    case DType::i64:
    case DType::u64:
      return put(out, i, static_cast<std::int64_t>(value));
    case DType::i32:
    case DType::u32:
      return put(out, i, static_cast<std::int32_t>(value));
    case DType::i16:
    case DType::u16:
      return put(out, i, static_cast<std::int16_t>(value));
    case DType::i8:
    case DType::u8:
      return put(out, i, static_cast<std::uint8_t>(static_cast<int>(value)));
    case DType::boolean:
      return put(out, i, static_cast<std::uint8_t>(value != 0));
    case DType::c64:
      put(out, 2 * i, static_cast<float>(value));
      return put(out, 2 * i + 1, static_cast<float>(-value));
    case DType::c128:
      put(out, 2 * i, value);
      return put(out, 2 * i + 1, -value);
    default:
      return;  // 8-bit and smaller floats and 4-bit integers: zeros
  }
}

}  // namespace

Tensor synthetic_values(const Value& input, const Dims& dims, const std::map<std::string, Dims>& all_dims, int style) {
  const std::int64_t count = element_count(dims);
  if (input.dtype() == DType::string) {
    static const char* const words[] = {"the", "quick", "brown", "fox", "jumps", "over", "a", "dog"};
    std::vector<std::string> strings;
    for (std::int64_t i = 0; i < count; ++i) strings.emplace_back(words[i % 8]);
    return Tensor(dims, std::move(strings));
  }
  // FNV-1a of the name: std::hash differs between libraries.
  std::uint64_t seed = 14695981039346656037ULL + static_cast<std::uint64_t>(style);
  for (const char c : input.name()) seed = (seed ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  Random random(seed);
  Draw draw;
  if (is_float(input.dtype()) || input.dtype() == DType::c64 || input.dtype() == DType::c128)
    draw = floats(input, dims, style, random);
  else if (input.dtype() == DType::boolean)
    draw = has(lower(input.name()), {"mask"}) ? Draw([](std::int64_t) { return 1.0; })
                                              : Draw([&random](std::int64_t) { return random() & 1 ? 1.0 : 0.0; });
  else
    draw = integers(input, dims, all_dims, random);
  return Tensor::make(input.dtype(), dims, [&](std::byte* out) {
    for (std::int64_t i = 0; i < count; ++i) store(input.dtype(), out, i, draw(i));
  });
}

}  // namespace modelflow
