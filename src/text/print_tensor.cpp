// Elements of tensors as text.
#include "src/text/print_tensor.h"

#include <charconv>
#include <cmath>
#include <cstring>

namespace modelflow {
namespace {

constexpr std::int64_t kMostElements = 4096;

template <class T>
std::string shortest(T value) {
  char buffer[64];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return {buffer, end};
}

std::string element(float value) { return float_text(value, true); }
std::string element(double value) { return float_text(value, false); }
template <class T>
std::string element(T value) {
  return std::to_string(value);
}

template <class T>
std::string listed(const Tensor& tensor) {
  std::string text = "{";
  std::size_t count = tensor.bytes() / sizeof(T);
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, tensor.data() + i * sizeof(T), sizeof(T));
    if (i) text += ", ";
    text += element(value);
  }
  return text + "}";
}

std::string listed_strings(const Tensor& tensor) {
  std::string text = "{";
  for (const std::string& value : tensor.strings()) text += (text.size() > 1 ? ", " : "") + quoted_text(value);
  return text + "}";
}

}  // namespace

std::string float_text(double value, bool single) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = single ? shortest(static_cast<float>(value)) : shortest(value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string quoted_text(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

// 16-bit floats and smaller types are written as their bits, packed ones byte by byte, as the text form has it.
std::string tensor_values(const Tensor& tensor) {
  if (tensor.elements() > kMostElements) {
    char hash[32];
    std::snprintf(hash, sizeof(hash), "%016llx", static_cast<unsigned long long>(tensor.hash()));
    return "{ # " + std::to_string(tensor.elements()) + " elements, hash " + hash + "\n}";
  }
  switch (tensor.dtype()) {
    case DType::string:
      return listed_strings(tensor);
    case DType::f32:
    case DType::c64:
      return listed<float>(tensor);
    case DType::f64:
    case DType::c128:
      return listed<double>(tensor);
    case DType::i64:
      return listed<std::int64_t>(tensor);
    case DType::u64:
      return listed<std::uint64_t>(tensor);
    case DType::i32:
      return listed<std::int32_t>(tensor);
    case DType::u32:
      return listed<std::uint32_t>(tensor);
    case DType::i16:
      return listed<std::int16_t>(tensor);
    case DType::u16:
    case DType::f16:
    case DType::bf16:
      return listed<std::uint16_t>(tensor);
    case DType::i8:
      return listed<std::int8_t>(tensor);
    default:
      return listed<std::uint8_t>(tensor);
  }
}

}  // namespace modelflow
