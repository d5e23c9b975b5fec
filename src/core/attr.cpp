// Attributes looked up by name and type, and compared.
#include "modelflow/attr.h"

#include <bit>

#include "modelflow/error.h"

namespace modelflow {
namespace {

constexpr const char* kKinds[] = {"an int", "a float", "a string", "a tensor", "a graph",     "ints",
                                  "floats", "strings", "tensors",  "graphs",   "a reference", "other data"};

template <class T>
const T* get(const Attrs& attrs, std::string_view name, const char* wanted) {
  const Attr* attr = attrs.find(name);
  if (!attr) return nullptr;
  if (const T* value = std::get_if<T>(attr)) return value;
  throw Error(ErrorKind::invalid_input,
              "attribute '" + std::string(name) + "' is " + kKinds[attr->index()] + ", expected " + wanted);
}

bool same_bits(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

template <class T, class Same>
bool all_same(const std::vector<T>& a, const std::vector<T>& b, Same same) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!same(a[i], b[i])) return false;
  }
  return true;
}

}  // namespace

const Attr* Attrs::find(std::string_view name) const {
  const auto it = items_.find(name);
  return it == items_.end() ? nullptr : &it->second;
}

std::int64_t Attrs::integer(std::string_view name, std::int64_t otherwise) const {
  const auto* value = get<std::int64_t>(*this, name, kKinds[0]);
  return value ? *value : otherwise;
}

float Attrs::number(std::string_view name, float otherwise) const {
  const auto* value = get<float>(*this, name, kKinds[1]);
  return value ? *value : otherwise;
}

std::string Attrs::text(std::string_view name, std::string_view otherwise) const {
  const auto* value = get<std::string>(*this, name, kKinds[2]);
  return value ? *value : std::string(otherwise);
}

Ints Attrs::ints(std::string_view name, Ints otherwise) const {
  const auto* value = get<Ints>(*this, name, kKinds[5]);
  return value ? *value : otherwise;
}

Floats Attrs::floats(std::string_view name, Floats otherwise) const {
  const auto* value = get<Floats>(*this, name, kKinds[6]);
  return value ? *value : otherwise;
}

const Tensor* Attrs::tensor(std::string_view name) const { return get<Tensor>(*this, name, kKinds[3]); }

const Subgraph* Attrs::graph(std::string_view name) const { return get<Subgraph>(*this, name, kKinds[4]); }

namespace {

bool holds_graphs(const Attr& attr) {
  return std::holds_alternative<Subgraph>(attr) || std::holds_alternative<std::vector<Subgraph>>(attr);
}

}  // namespace

Attrs::Attrs(std::initializer_list<std::pair<const std::string, Attr>> items) : items_(items) {
  for (const auto& [name, value] : items_) may_hold_graphs_ |= holds_graphs(value);
}

Attrs& Attrs::set(std::string name, Attr value) {
  may_hold_graphs_ |= holds_graphs(value);
  items_.insert_or_assign(std::move(name), std::move(value));
  return *this;
}

void Attrs::erase(std::string_view name) {
  if (const auto it = items_.find(name); it != items_.end()) items_.erase(it);
}

bool equal(const Attr& a, const Attr& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&]<class T>(const T& left) {
        const T& right = std::get<T>(b);
        const auto same_tensor = [](const Tensor& x, const Tensor& y) { return x.same_content(y); };
        if constexpr (std::is_same_v<T, float>)
          return same_bits(left, right);  // -0 is not 0, NaN is NaN
        else if constexpr (std::is_same_v<T, Floats>)
          return all_same(left, right, same_bits);
        else if constexpr (std::is_same_v<T, Tensor>)
          return left.same_content(right);
        else if constexpr (std::is_same_v<T, std::vector<Tensor>>)
          return all_same(left, right, same_tensor);
        else
          return left == right;
      },
      a);
}

bool equal(const Attrs& a, const Attrs& b) {
  if (a.size() != b.size()) return false;
  for (auto i = a.begin(), j = b.begin(); i != a.end(); ++i, ++j) {
    if (i->first != j->first || !equal(i->second, j->second)) return false;
  }
  return true;
}

}  // namespace modelflow
