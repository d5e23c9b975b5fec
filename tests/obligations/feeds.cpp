// Inputs for mutants: extents and numbers of several kinds.
#include "tests/obligations/feeds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "modelflow/error.h"
#include "tests/obligations/mutation.h"

namespace modelflow::obligations {
namespace {

using Random = std::mt19937_64;
enum class Extents { usual, one, none, drawn };
enum class Numbers { normal, integers, special };
constexpr double kMostElements = 1 << 16;

/// `first`: of the first axis, which is the batch.
std::int64_t extent_of(const std::string& symbol, bool first, Extents extents, Random& random) {
  switch (extents) {
    case Extents::one:
      return 1;
    case Extents::none:
      return first ? 0 : 2 + static_cast<std::int64_t>(random() % 3);
    case Extents::drawn:
      return 1 + static_cast<std::int64_t>(random() % 5);
    default:
      // A mutation says what the symbol stands for.
      return symbol.starts_with("was") ? std::stoll(symbol.substr(3)) : 2 + static_cast<std::int64_t>(random() % 3);
  }
}

double special(Random& random) {
  static const double values[] = {std::nan(""), HUGE_VAL, -HUGE_VAL, 0.0, -0.0, 1e-40, -1e-40, 1e4, -1e4};
  return values[random() % std::size(values)];
}

double number(DType dtype, Numbers numbers, Random& random) {
  std::normal_distribution<double> normal;
  const auto small = [&](int low, int high) {
    return static_cast<double>(low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1)));
  };
  if (dtype == DType::boolean) return small(0, 1);
  if (dtype == DType::u8) return numbers == Numbers::normal ? small(0, 255) : small(0, 3);
  if (dtype == DType::i8) return numbers == Numbers::normal ? small(-128, 127) : small(-2, 2);
  if (!is_float(dtype) && dtype != DType::c64 && dtype != DType::c128)
    return numbers == Numbers::special ? small(-2, 2) : small(0, 2);
  if (numbers == Numbers::integers) return small(-2, 2);
  if (numbers == Numbers::special && random() % 6 == 0) return special(random);
  return normal(random);
}

Tensor values_of(DType dtype, const Dims& dims, Numbers numbers, Random& random) {
  const auto count = static_cast<std::size_t>(element_count(dims));
  if (dtype == DType::string) {
    static const char* const words[] = {"a", "b", "", "modelflow", "0", "-1.5"};
    std::vector<std::string> strings(count);
    for (std::string& text : strings) text = words[random() % std::size(words)];
    return Tensor(dims, std::move(strings));
  }
  std::vector<double> values(count);
  for (double& value : values) value = number(dtype, numbers, random);
  return encode(dtype, dims, values);
}

Feeds draw(const Model& model, Extents extents, Numbers numbers, Random& random) {
  std::map<std::string, std::int64_t> symbols;
  Feeds feeds;
  for (const Value* input : model.graph().inputs()) {
    if (input->is_initializer() && random() % 2) continue;  // its default, or another value
    if (!input->type.is_tensor()) throw Error(ErrorKind::unsupported, "an input that is no tensor");
    Dims dims;
    if (input->shape().has_rank()) {
      for (const Dim& dim : input->shape().dims()) {
        for (const std::string& symbol : dim.symbols())
          if (!symbols.contains(symbol)) symbols[symbol] = extent_of(symbol, dims.empty(), extents, random);
        dims.push_back(dim.unknown() ? extent_of("", dims.empty(), extents, random)
                                     : dim.evaluate(symbols).value_or(1));
      }
    } else {
      dims = {2, 3};
    }
    double count = 1;
    for (const std::int64_t extent : dims) count *= static_cast<double>(extent);
    if (count > kMostElements) throw Error(ErrorKind::unsupported, "an input that is too large");
    feeds[input->name()] = values_of(input->dtype(), dims, numbers, random);
  }
  return feeds;
}

}  // namespace

std::vector<Feed> feeds_of(const Model& model, Random& random) {
  return {{"usual extents", draw(model, Extents::usual, Numbers::normal, random)},
          {"small integers", draw(model, Extents::usual, Numbers::integers, random)},
          {"extents of 1", draw(model, Extents::one, Numbers::normal, random)},
          {"batch of 0", draw(model, Extents::none, Numbers::normal, random)},
          {"drawn extents", draw(model, Extents::drawn, Numbers::normal, random)},
          {"special numbers", draw(model, Extents::usual, Numbers::special, random)}};
}

double smallest_normal(DType dtype) {
  return dtype == DType::f64 ? 0x1p-1022 : dtype == DType::f16 ? 0x1p-14 : 0x1p-126;
}

Tensor jittered(const Tensor& tensor, bool integers_too, Random& random) {
  const DType dtype = tensor.dtype();
  if (!is_float(dtype)) return tensor;
  const double digit = dtype == DType::f64   ? 0x1p-52
                       : dtype == DType::f32 ? 0x1p-23
                       : dtype == DType::f16 ? 0x1p-10
                                             : 0x1p-7;
  // Numbers that are not normal have fewer digits than others: their last one is as large as the smallest number.
  const double smallest = smallest_normal(dtype) * digit;
  std::vector<double> values = tensor.to_doubles();
  for (double& value : values)
    if (std::isfinite(value) && value != 0 && (integers_too || value != std::nearbyint(value)))
      value += (static_cast<double>(random() % 3) - 1) * std::max(std::abs(value) * digit, smallest);
  return encode(dtype, tensor.dims(), values);
}

}  // namespace modelflow::obligations
