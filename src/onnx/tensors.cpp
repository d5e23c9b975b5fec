// Tensors from and to protobuf, their bytes shared or moved where they can be.
#include "src/onnx/tensors.h"

#include <charconv>
#include <cstring>

#include "modelflow/error.h"
#include "src/onnx/types.h"

namespace modelflow::proto {
namespace {

[[noreturn]] void bad(const std::string& what) { throw Error(ErrorKind::invalid_input, what); }

template <class T>
std::shared_ptr<const std::byte> share(std::shared_ptr<T> owner, const void* data) {
  return {std::move(owner), static_cast<const std::byte*>(data)};
}

// Offsets in data files may be anything; kernels and as<T>() want natural alignment.
std::size_t alignment(DType dtype) { return std::max<std::size_t>(1, std::min(8, bits(dtype) / 8)); }

std::size_t number_of(const std::string& key, const std::string& text) {
  std::size_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    bad("external data " + key + " '" + text + "' is not a number");
  }
  return value;
}

struct Location {
  std::string file;
  std::size_t offset = 0;
  std::optional<std::size_t> length;
};

Location location_of(const TensorProto& proto) {
  Location result;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") result.file = entry.value();
    if (entry.key() == "offset") result.offset = number_of(entry.key(), entry.value());
    if (entry.key() == "length") result.length = number_of(entry.key(), entry.value());
  }
  return result;
}

std::shared_ptr<const std::byte> external_bytes(const TensorProto& proto, std::size_t size, ExternalFiles& files) {
  Location where = location_of(proto);
  std::size_t length = where.length.value_or(size);
  if (length != size) {
    bad("external data has " + std::to_string(length) + " bytes, type and dims ask for " + std::to_string(size));
  }
  return files.bytes(where.file, where.offset, size);
}

template <class To, class From>
std::shared_ptr<const std::byte> narrowed(const From& from, std::size_t count) {
  if (static_cast<std::size_t>(from.size()) != count) {
    bad(std::to_string(from.size()) + " values, type and dims ask for " + std::to_string(count));
  }
  std::shared_ptr<To[]> data(new To[count ? count : 1]);
  for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<To>(from.Get(static_cast<int>(i)));
  const void* first = data.get();
  return share(std::move(data), first);
}

// The typed fields; which one holds which type is in onnx.proto.
std::shared_ptr<const std::byte> typed_bytes(const TensorProto& proto, DType dtype, std::size_t size) {
  switch (dtype) {
    case DType::f32:
    case DType::c64:
      return narrowed<float>(proto.float_data(), size / 4);
    case DType::f64:
    case DType::c128:
      return narrowed<double>(proto.double_data(), size / 8);
    case DType::i64:
      return narrowed<std::int64_t>(proto.int64_data(), size / 8);
    case DType::u64:
      return narrowed<std::uint64_t>(proto.uint64_data(), size / 8);
    case DType::u32:
      return narrowed<std::uint32_t>(proto.uint64_data(), size / 4);
    case DType::i32:
      return narrowed<std::int32_t>(proto.int32_data(), size / 4);
    case DType::u16:
    case DType::i16:
    case DType::f16:
    case DType::bf16:
      return narrowed<std::uint16_t>(proto.int32_data(), size / 2);
    default:
      return narrowed<std::uint8_t>(proto.int32_data(), size);  // 8 bits, or packed below
  }
}

std::shared_ptr<const std::byte> raw_bytes(TensorProto& proto, std::size_t size) {
  if (proto.raw_data().size() != size) {
    bad("raw_data has " + std::to_string(proto.raw_data().size()) + " bytes, type and dims ask for " +
        std::to_string(size));
  }
  if (size == 0) return std::make_shared<std::byte>();  // the field stays: it tells how it was written
  std::shared_ptr<std::string> owner(proto.release_raw_data());
  const void* data = owner->data();
  return share(std::move(owner), data);
}

Tensor read_strings(const TensorProto& proto, Dims dims) {
  if (proto.has_raw_data() || proto.data_location() == TensorProto::EXTERNAL) bad("strings must be in string_data");
  return Tensor(std::move(dims), {proto.string_data().begin(), proto.string_data().end()});
}

Tensor read_checked(TensorProto& proto, ExternalFiles& files) {
  auto dtype = static_cast<DType>(proto.data_type());
  if (proto.has_segment()) throw Error(ErrorKind::unsupported, "tensors in segments");
  check_rank(proto.dims_size());
  Dims dims(proto.dims().begin(), proto.dims().end());
  if (dtype == DType::string) return read_strings(proto, std::move(dims));
  std::size_t size = byte_count(dtype, dims);
  std::shared_ptr<const std::byte> bytes;
  if (proto.data_location() == TensorProto::EXTERNAL) {
    bytes = external_bytes(proto, size, files);
  } else if (proto.has_raw_data() && !(is_typed(proto) && proto.raw_data().empty())) {
    bytes = raw_bytes(proto, size);
  } else {
    bytes = typed_bytes(proto, dtype, size);
  }
  if (reinterpret_cast<std::uintptr_t>(bytes.get()) % alignment(dtype) != 0) {
    return Tensor::make(dtype, std::move(dims), [&](std::byte* out) { std::memcpy(out, bytes.get(), size); });
  }
  return Tensor(dtype, std::move(dims), std::move(bytes));
}

template <class From, class To>
void widened(const Tensor& tensor, To& to) {
  auto* from = reinterpret_cast<const From*>(tensor.data());
  std::size_t count = tensor.bytes() / sizeof(From);
  to.Reserve(static_cast<int>(count));
  for (std::size_t i = 0; i < count; ++i) to.Add(from[i]);
}

}  // namespace

bool readable(const TensorProto& proto) {
  auto dtype = static_cast<DType>(proto.data_type());
  return dtype == DType::string || bits(dtype) > 0;
}

bool is_typed(const TensorProto& proto) {
  return proto.float_data_size() || proto.int32_data_size() || proto.int64_data_size() || proto.double_data_size() ||
         proto.uint64_data_size();
}

Tensor read_tensor(TensorProto& proto, ExternalFiles& files) {
  try {
    return read_checked(proto, files);
  } catch (const Error& error) {
    throw error.within("tensor '" + proto.name() + "'");
  }
}

void load_external(TensorProto& proto, ExternalFiles& files) {
  if (proto.data_location() != TensorProto::EXTERNAL) return;
  try {
    Location where = location_of(proto);
    if (!where.length) {
      std::size_t size = files.size(where.file);
      where.length = size < where.offset ? 0 : size - where.offset;
    }
    auto bytes = files.bytes(where.file, where.offset, *where.length);
    proto.set_raw_data(bytes.get(), *where.length);
    proto.clear_external_data();
    proto.clear_data_location();
  } catch (const Error& error) {
    throw error.within("tensor '" + proto.name() + "'");
  }
}

void write_tensor(const Tensor& tensor, TensorProto& proto) {
  proto.set_data_type(static_cast<int>(tensor.dtype()));
  proto.mutable_dims()->Add(tensor.dims().begin(), tensor.dims().end());
  if (tensor.dtype() == DType::string) {
    for (const std::string& text : tensor.strings()) proto.add_string_data(text);
  } else {
    proto.set_raw_data(tensor.data(), tensor.bytes());
  }
}

void write_typed(const Tensor& tensor, TensorProto& proto) {
  if (tensor.dtype() == DType::string) return write_tensor(tensor, proto);
  proto.set_data_type(static_cast<int>(tensor.dtype()));
  proto.mutable_dims()->Add(tensor.dims().begin(), tensor.dims().end());
  switch (tensor.dtype()) {
    case DType::f32:
    case DType::c64:
      return widened<float>(tensor, *proto.mutable_float_data());
    case DType::f64:
    case DType::c128:
      return widened<double>(tensor, *proto.mutable_double_data());
    case DType::i64:
      return widened<std::int64_t>(tensor, *proto.mutable_int64_data());
    case DType::u64:
      return widened<std::uint64_t>(tensor, *proto.mutable_uint64_data());
    case DType::u32:
      return widened<std::uint32_t>(tensor, *proto.mutable_uint64_data());
    case DType::i32:
      return widened<std::int32_t>(tensor, *proto.mutable_int32_data());
    case DType::i16:
      return widened<std::int16_t>(tensor, *proto.mutable_int32_data());
    case DType::i8:
      return widened<std::int8_t>(tensor, *proto.mutable_int32_data());
    case DType::u16:
    case DType::f16:
    case DType::bf16:
      return widened<std::uint16_t>(tensor, *proto.mutable_int32_data());
    default:
      return widened<std::uint8_t>(tensor, *proto.mutable_int32_data());
  }
}

}  // namespace modelflow::proto
