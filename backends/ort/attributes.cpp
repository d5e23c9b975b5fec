// Reads attributes of nodes and tells those that are absent from those of another type.
#include "backends/ort/attributes.h"

namespace modelflow::ort {
namespace {

/// Reads one attribute as the type of what it usually is.
class Read {
 public:
  Read(const OrtApi& api, const OrtKernelInfo* info, const char* name) : api_(api), info_(info), name_(name) {}

  Attr operator()(const std::int64_t& usual) const {
    std::int64_t value = 0;
    if (is(value)) return value;
    return absent() ? usual : throw other_type("a whole number");
  }
  Attr operator()(const float& usual) const {
    float value = 0;
    std::int64_t whole = 0;
    if (succeeded(api_, api_.KernelInfoGetAttribute_float(info_, name_, &value))) return value;
    if (is(whole)) return static_cast<float>(whole);
    return absent() ? usual : throw other_type("a number");
  }
  Attr operator()(const std::string& usual) const {
    const auto get = [this](char* out, std::size_t* n) {
      return api_.KernelInfoGetAttribute_string(info_, name_, out, n);
    };
    std::size_t size = 0;
    if (succeeded(api_, get(nullptr, &size))) return text(api_, get);
    return absent() ? usual : throw other_type("text");
  }
  Attr operator()(const Ints& usual) const {
    if (absent()) return usual;
    Ints values = list<std::int64_t>(api_.KernelInfoGetAttributeArray_int64);
    if (values.empty() && !is_empty_list()) throw other_type("a list of whole numbers");
    return values;
  }
  Attr operator()(const Floats& usual) const {
    if (absent()) return usual;
    Floats values = list<float>(api_.KernelInfoGetAttributeArray_float);
    if (values.empty())
      for (const std::int64_t whole : list<std::int64_t>(api_.KernelInfoGetAttributeArray_int64))
        values.push_back(static_cast<float>(whole));
    if (values.empty() && !is_empty_list()) throw other_type("a list of numbers");
    return values;
  }
  template <class Other>
  Attr operator()(const Other&) const {
    throw Error(ErrorKind::internal, std::string("attribute ") + name_ + " has a type that no fused op uses");
  }

 private:
  /// Lists are read without a look at the type: an attribute of any other one is an empty list, none at all an error.
  bool absent() const {
    std::size_t size = 0;
    return !succeeded(api_, api_.KernelInfoGetAttributeArray_int64(info_, name_, nullptr, &size));
  }
  bool is(std::int64_t& value) const {
    return succeeded(api_, api_.KernelInfoGetAttribute_int64(info_, name_, &value));
  }
  bool is_empty_list() const {
    std::int64_t whole = 0;
    float number = 0;
    std::size_t size = 0;
    return !is(whole) && !succeeded(api_, api_.KernelInfoGetAttribute_float(info_, name_, &number)) &&
           !succeeded(api_, api_.KernelInfoGetAttribute_string(info_, name_, nullptr, &size)) &&
           list<float>(api_.KernelInfoGetAttributeArray_float).empty();
  }
  template <class T, class Get>
  std::vector<T> list(Get get) const {
    std::size_t size = 0;
    check(api_, get(info_, name_, nullptr, &size));
    std::vector<T> values(size);
    if (size > 0) check(api_, get(info_, name_, values.data(), &size));
    return values;
  }
  Error other_type(const char* wanted) const {
    return {ErrorKind::invalid_input, std::string("attribute ") + name_ + " is not " + wanted};
  }

  const OrtApi& api_;
  const OrtKernelInfo* info_;
  const char* name_;
};

}  // namespace

Attr attribute(const OrtApi& api, const OrtKernelInfo* info, const std::string& name, const Attr& usual) {
  return std::visit(Read{api, info, name.c_str()}, usual);
}

}  // namespace modelflow::ort
