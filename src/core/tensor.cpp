// Memory, contents and hashes of tensors.
#include "modelflow/tensor.h"

#include <cstring>
#include <new>

#include "modelflow/error.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace modelflow {
namespace {

constexpr std::align_val_t kAlignment{64};

[[noreturn]] void fail(const std::string& message) { throw Error(ErrorKind::internal, message); }

}  // namespace

Tensor::Tensor(DType dtype, Dims dims, std::shared_ptr<const std::byte> bytes)
    : dtype_(dtype), dims_(std::move(dims)), bytes_(std::move(bytes)) {
  if (!bytes_ && byte_count(dtype_, dims_) != 0) fail("a tensor was made without its bytes");
}

Tensor::Tensor(Dims dims, std::vector<std::string> strings)
    : dtype_(DType::string),
      dims_(std::move(dims)),
      strings_(std::make_shared<const std::vector<std::string>>(std::move(strings))) {
  if (static_cast<std::int64_t>(strings_->size()) != element_count(dims_)) {
    throw Error(ErrorKind::invalid_input, "a string tensor has " + std::to_string(strings_->size()) +
                                              " strings, its dims ask for " + std::to_string(element_count(dims_)));
  }
}

std::shared_ptr<std::byte> Tensor::allocate(std::size_t bytes) {
  void* memory = ::operator new(bytes ? bytes : 1, kAlignment, std::nothrow);
  if (!memory) throw Error(ErrorKind::limit, "no memory for a tensor of " + std::to_string(bytes) + " bytes");
  std::memset(memory, 0, bytes);
  return {static_cast<std::byte*>(memory), [](std::byte* p) { ::operator delete(p, kAlignment); }};
}

void Tensor::expect(DType dtype) const {
  if (dtype != dtype_ || dtype == DType::undefined) {
    fail("a " + std::string(name(dtype_)) + " tensor was read as " + std::string(name(dtype)));
  }
}

const std::vector<std::string>& Tensor::strings() const {
  expect(DType::string);
  return *strings_;
}

Tensor Tensor::reshaped(Dims dims) const {
  if (element_count(dims) != elements()) {
    fail("a tensor of " + std::to_string(elements()) + " elements was reshaped to " +
         std::to_string(element_count(dims)));
  }
  Tensor other = *this;
  other.dims_ = std::move(dims);
  return other;
}

std::uint64_t Tensor::hash() const {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  const auto add = [&](const void* data, std::size_t size) { XXH3_128bits_update(&state, data, size); };
  const std::int64_t head[] = {static_cast<std::int64_t>(dtype_), static_cast<std::int64_t>(dims_.size())};
  add(head, sizeof(head));
  if (!dims_.empty()) add(dims_.data(), dims_.size() * sizeof(std::int64_t));
  if (dtype_ == DType::string) {
    for (const std::string& s : *strings_) {
      const std::size_t size = s.size();
      add(&size, sizeof(size));
      add(s.data(), s.size());
    }
  } else if (const std::size_t size = bytes()) {
    add(data(), size);
  }
  const XXH128_hash_t digest = XXH3_128bits_digest(&state);
  return digest.low64 ^ digest.high64;
}

bool Tensor::same_content(const Tensor& other) const {
  if (dtype_ != other.dtype_ || dims_ != other.dims_) return false;
  if (dtype_ == DType::string) return *strings_ == *other.strings_;
  return bytes_ == other.bytes_ || bytes() == 0 || std::memcmp(data(), other.data(), bytes()) == 0;
}

}  // namespace modelflow
