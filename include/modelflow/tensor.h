// Element types and tensors whose bytes are shared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace modelflow {

/// Element types; the numbers are those of ONNX TensorProto.DataType.
enum class DType : std::int32_t {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  string = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  c64 = 14,
  c128 = 15,
  bf16 = 16,
  f8e4m3fn = 17,
  f8e4m3fnuz = 18,
  f8e5m2 = 19,
  f8e5m2fnuz = 20,
  u4 = 21,
  i4 = 22,
  f4e2m1 = 23,
  f8e8m0 = 24,
  u2 = 25,
  i2 = 26,
};

/// "float32", "int64", ...; "undefined" for unknown numbers.
std::string_view name(DType dtype);
/// Width of one element in bits (4 for int4); 0 for string and undefined.
int bits(DType dtype);
/// f32, f16, bf16, f64.
bool is_float(DType dtype);

template <class T>
constexpr DType dtype_of = DType::undefined;
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::i64;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<std::int8_t> = DType::i8;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::u8;
template <>
inline constexpr DType dtype_of<bool> = DType::boolean;

using Dims = std::vector<std::int64_t>;

/// Number of elements; 1 for a scalar. Throws Error(invalid_input) on a negative dim or overflow.
std::int64_t element_count(std::span<const std::int64_t> dims);
/// Bytes of a dense tensor, sub-byte types packed. Throws on overflow.
std::size_t byte_count(DType dtype, std::span<const std::int64_t> dims);

/// An immutable dense tensor: dtype, dims and shared bytes (row-major, little-endian, sub-byte types packed low nibble
/// first as in ONNX). Copies share the bytes, which may be memory-mapped external data.
///
///     Tensor t = Tensor::of<float>({2, 3}, {0, 1, 2, 3, 4, 5});
///     t.as<float>()[4];
class Tensor {
 public:
  Tensor() = default;
  /// `bytes` must hold byte_count(dtype, dims) bytes and stay unchanged.
  Tensor(DType dtype, Dims dims, std::shared_ptr<const std::byte> bytes);
  /// A string tensor.
  Tensor(Dims dims, std::vector<std::string> strings);
  template <class T>
  static Tensor of(Dims dims, std::span<const T> values);
  template <class T>
  static Tensor of(Dims dims, std::initializer_list<T> values) {
    return of<T>(std::move(dims), std::span<const T>(values.begin(), values.size()));
  }
  template <class T>
  static Tensor scalar(T value) {
    return of<T>({}, std::span<const T>(&value, 1));
  }
  /// A fresh tensor with zeroed bytes that `fill` may write before anyone else sees it.
  template <class Fill>
  static Tensor make(DType dtype, Dims dims, Fill fill);

  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  std::size_t rank() const { return dims_.size(); }
  std::int64_t elements() const { return element_count(dims_); }
  std::size_t bytes() const { return byte_count(dtype_, dims_); }
  const std::byte* data() const { return bytes_.get(); }
  /// The elements; throws Error(internal) when T is not the element type.
  template <class T>
  std::span<const T> as() const;
  const std::vector<std::string>& strings() const;
  /// Any float or integer type converted to double / int64, for reading small constants.
  std::vector<double> to_doubles() const;
  std::vector<std::int64_t> to_ints() const;
  /// The same bytes under other dims with the same element count.
  Tensor reshaped(Dims dims) const;
  /// 128 bits of dtype, dims and content folded to 64 (XXH3); equal tensors have equal hashes.
  std::uint64_t hash() const;
  bool same_content(const Tensor& other) const;

 private:
  static std::shared_ptr<std::byte> allocate(std::size_t bytes);
  void expect(DType dtype) const;

  DType dtype_ = DType::undefined;
  Dims dims_;
  std::shared_ptr<const std::byte> bytes_;
  std::shared_ptr<const std::vector<std::string>> strings_;
};

template <class T>
Tensor Tensor::of(Dims dims, std::span<const T> values) {
  return make(dtype_of<T>, std::move(dims), [&](std::byte* out) {
    for (std::size_t i = 0; i < values.size(); ++i) reinterpret_cast<T*>(out)[i] = values[i];
  });
}

template <class Fill>
Tensor Tensor::make(DType dtype, Dims dims, Fill fill) {
  std::shared_ptr<std::byte> bytes = allocate(byte_count(dtype, dims));
  fill(bytes.get());
  return Tensor(dtype, std::move(dims), std::move(bytes));
}

template <class T>
std::span<const T> Tensor::as() const {
  expect(dtype_of<T>);
  return {reinterpret_cast<const T*>(data()), static_cast<std::size_t>(elements())};
}

}  // namespace modelflow
