// Names and widths of element types, and sizes of tensors of them.
#include <array>
#include <limits>

#include "modelflow/error.h"
#include "modelflow/tensor.h"

namespace modelflow {
namespace {

struct Entry {
  std::string_view name;
  int bits;
};

constexpr std::array<Entry, 27> kTypes = {{
    {"undefined", 0},      {"float32", 32},  {"uint8", 8},        {"int8", 8},           {"uint16", 16},
    {"int16", 16},         {"int32", 32},    {"int64", 64},       {"string", 0},         {"bool", 8},
    {"float16", 16},       {"float64", 64},  {"uint32", 32},      {"uint64", 64},        {"complex64", 64},
    {"complex128", 128},   {"bfloat16", 16}, {"float8e4m3fn", 8}, {"float8e4m3fnuz", 8}, {"float8e5m2", 8},
    {"float8e5m2fnuz", 8}, {"uint4", 4},     {"int4", 4},         {"float4e2m1", 4},     {"float8e8m0", 8},
    {"uint2", 2},          {"int2", 2},
}};

const Entry& entry(DType dtype) {
  const auto i = static_cast<std::size_t>(dtype);
  return i < kTypes.size() ? kTypes[i] : kTypes[0];
}

}  // namespace

std::string_view name(DType dtype) { return entry(dtype).name; }

int bits(DType dtype) { return entry(dtype).bits; }

bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f64;
}

std::int64_t element_count(std::span<const std::int64_t> dims) {
  std::int64_t count = 1;
  bool overflow = false, zero = false;
  for (const std::int64_t dim : dims) {
    if (dim < 0) throw Error(ErrorKind::invalid_input, "a tensor has the negative dim " + std::to_string(dim));
    zero |= dim == 0;
    if (dim != 0) overflow |= __builtin_mul_overflow(count, dim, &count);
  }
  if (zero) return 0;
  if (overflow) throw Error(ErrorKind::invalid_input, "the dims of a tensor multiply to more than 2^63 elements");
  return count;
}

std::size_t byte_count(DType dtype, std::span<const std::int64_t> dims) {
  const auto count = static_cast<std::size_t>(element_count(dims));
  const auto width = static_cast<std::size_t>(bits(dtype));
  if (width != 0 && count > std::numeric_limits<std::size_t>::max() / 2 / width) {
    throw Error(ErrorKind::invalid_input, "a tensor of " + std::to_string(count) + " elements is too large");
  }
  return (count * width + 7) / 8;
}

}  // namespace modelflow
