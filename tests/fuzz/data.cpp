// Inputs for random models.
#include "tests/fuzz/data.h"

#include <cmath>
#include <limits>

#include "tests/fuzz/dice.h"
#include "tests/fuzz/elements.h"

namespace modelflow::fuzz {
namespace {

constexpr int kRounds = 4;  // and an empty one

/// `leads`: it is the first extent of an input. Only such ones may be 0: nobody has images without pixels.
std::int64_t extent(std::uint64_t seed, const std::string& symbol, int round, bool leads) {
  Dice dice(seed_of(seed + static_cast<std::uint64_t>(round), symbol));
  switch (round) {
    case 0:
      return dice.any<std::int64_t>({2, 3, 4, 5, 6, 7});
    case 1:
      return dice.any<std::int64_t>({1, 1, 2, 9, 16});
    case 2:
      return dice.any<std::int64_t>({1, 2, 3, 8, 17, 33});
    case 3:
      return dice.any<std::int64_t>({4, 5, 8, 12});
    default:
      return leads ? 0 : dice.any<std::int64_t>({1, 2, 3});
  }
}

double normal(Dice& dice) {
  return std::sqrt(-2 * std::log(1 - dice.uniform())) * std::cos(6.283185307179586 * dice.uniform());
}

/// `mask`: what is added to scores, 0 or very low.
std::vector<double> float_values(std::size_t count, bool mask, Dice& dice) {
  std::vector<double> values(count);
  const std::size_t style = dice.below(16);
  const bool masked = mask && dice.chance(0.6);
  const double low = dice.any<double>({-INFINITY, -3.4028234663852886e38, -1e4, -65504});
  for (double& v : values) {
    v = normal(dice);
    if (style == 0) v *= 0.05;
    if (style == 1) v *= 12;
    if (style == 2) v = std::abs(v);
    if (style == 3) v = dice.uniform();
    if (style == 4) v = dice.chance(0.5) ? 0 : v;
    if (style == 5) v = std::nearbyint(v * 2);
    if (style == 6) v = dice.chance(0.2) ? -1e4 : v;
    if (masked) v = dice.chance(0.4) ? low : 0;
    if (style == 7) v = dice.uniform() * 255;
  }
  return values;
}

std::vector<double> int_values(DType dtype, std::size_t count, Dice& dice) {
  std::vector<double> values(count);
  const std::size_t style = dice.below(4);
  const bool bytes = dtype == DType::u8 || dtype == DType::i8;
  for (double& v : values) {
    if (bytes)
      v = static_cast<double>(dice.between(0, 255) - (dtype == DType::i8 ? 128 : 0));
    else
      v = static_cast<double>(style == 0   ? dice.between(0, 1)
                              : style == 1 ? dice.between(0, 3)
                              : style == 2 ? 1
                                           : dice.between(-2, 6));
  }
  return values;
}

/// Large ones whose squares are floats: what overflows on the way depends on the order of a sum.
void sprinkle(std::vector<double>& values, Dice& dice) {
  if (values.empty()) return;
  for (std::size_t i = 0; i < 1 + values.size() / 16; ++i)
    dice.pick(std::vector<double*>{&values[dice.below(values.size())]})[0] =
        dice.any<double>({std::nan(""), INFINITY, -INFINITY, std::nan(""), 1e15, -1e15, 1e-40});
}

Tensor values_of(const Value& input, const Dims& dims, std::uint64_t seed, bool kinds) {
  Dice dice(seed_of(seed, input.name()));
  const auto count = static_cast<std::size_t>(element_count(dims));
  const DType dtype = input.dtype();
  if (dtype == DType::boolean) {
    const double share = dice.any({0.5, 0.5, 0.0, 1.0, 0.9});
    std::vector<double> values(count);
    for (double& v : values) v = dice.chance(share) ? 1 : 0;
    return tensor_of(dtype, dims, values);
  }
  if (!is_float(dtype)) return tensor_of(dtype, dims, int_values(dtype, count, dice));
  std::vector<double> values = float_values(count, input.name()[0] == 'm', dice);
  if (kinds && dice.chance(0.8)) sprinkle(values, dice);
  return tensor_of(dtype, dims, values);
}

}  // namespace

std::vector<Sample> samples(const Model& model, std::uint64_t seed, bool kinds, bool empty) {
  std::vector<Sample> made;
  bool dynamic = false;
  for (int round = 0; round < kRounds + (empty ? 1 : 0) && (round < 3 || dynamic); ++round) {
    Sample sample;
    for (const Value* input : model.graph().inputs()) {
      if (input->is_initializer()) continue;
      Dims dims;
      for (std::size_t axis = 0; input->shape().has_rank() && axis < input->shape().rank(); ++axis) {
        const Dim& dim = input->shape()[axis];
        dynamic = dynamic || !dim.known();
        for (const std::string& symbol : dim.symbols())
          if (!sample.symbols.contains(symbol)) sample.symbols[symbol] = extent(seed, symbol, round, axis == 0);
        dims.push_back(dim.unknown() ? extent(seed, input->name() + std::to_string(axis), round, axis == 0)
                                     : std::max<std::int64_t>(0, dim.evaluate(sample.symbols).value_or(1)));
      }
      sample.feeds[input->name()] = values_of(*input, dims, seed + 1000 * static_cast<std::uint64_t>(round), kinds);
    }
    made.push_back(std::move(sample));
  }
  return made;
}

}  // namespace modelflow::fuzz
