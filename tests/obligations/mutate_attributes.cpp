// Attributes: other values, none at all, and those that the schema knows and the node does not have.
#include <algorithm>
#include <map>

#include "tests/obligations/mutation.h"
#include "tests/obligations/schemas.h"

namespace modelflow::obligations {
namespace {

const std::map<std::string, std::vector<std::string>> kTexts = {
    {"auto_pad", {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}},
    {"mode", {"constant", "reflect", "edge", "wrap", "nearest", "linear", "cubic", "DCR", "CRD"}},
    {"direction", {"forward", "reverse", "bidirectional", "LEFT", "RIGHT"}},
    {"approximate", {"none", "tanh"}},
    {"coordinate_transformation_mode",
     {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"}},
    {"nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}},
    {"reduction", {"none", "add", "mul", "max"}},
    {"equation", {"ij,jk->ik", "ij,ij->ij", "ij,ij->i", "bij,bjk->bik", "...ij,...jk->...ik", "ii->i", "ij->ji"}}};

/// Where only a few values have a meaning.
const std::map<std::string, std::vector<std::int64_t>> kIntegers = {{"keepdims", {0, 1}},
                                                                    {"allowzero", {0, 1}},
                                                                    {"noop_with_empty_axes", {0, 1}},
                                                                    {"select_last_index", {0, 1}},
                                                                    {"is_causal", {0, 1}},
                                                                    {"transA", {0, 1}},
                                                                    {"transB", {0, 1}},
                                                                    {"ceil_mode", {0, 1}},
                                                                    {"count_include_pad", {0, 1}},
                                                                    {"exclusive", {0, 1}},
                                                                    {"reverse", {0, 1}},
                                                                    {"largest", {0, 1}},
                                                                    {"sorted", {0, 1}},
                                                                    {"onesided", {0, 1}},
                                                                    {"inverse", {0, 1}},
                                                                    {"saturate", {0, 1}},
                                                                    {"fmod", {0, 1}},
                                                                    {"antialias", {0, 1}},
                                                                    {"exclude_outside", {0, 1}},
                                                                    {"linear_before_reset", {0, 1}},
                                                                    {"interleaved", {0, 1}},
                                                                    {"stash_type", {1}},
                                                                    {"softmax_precision", {1}},
                                                                    {"to", {1, 6, 7, 9, 10, 11, 16}},
                                                                    {"dtype", {1, 6, 7, 10, 11}},
                                                                    {"output_dtype", {2, 3, 4, 5}}};

std::string written(const Ints& values) {
  std::string text = "[";
  for (const std::int64_t value : values) text += (text.size() > 1 ? ", " : "") + std::to_string(value);
  return text + "]";
}

void integers(const NodePlace& place, const std::string& name, std::int64_t now) {
  std::vector<std::int64_t> values = {now - 1, now + 1, -now, 0, 1, 2, 3, -1, -2, -3};
  if (const auto known = kIntegers.find(name); known != kIntegers.end()) values = known->second;
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  for (const std::int64_t value : values)
    if (value != now) place.set(name, value, std::to_string(value));
}

void lists(const NodePlace& place, const std::string& name, const Ints& now) {
  std::vector<Ints> all;
  for (std::size_t i = 0; i < now.size(); ++i)
    for (const std::int64_t value : {now[i] - 1, now[i] + 1, std::int64_t{0}, std::int64_t{-1}, std::int64_t{2}}) {
      all.push_back(now);
      all.back()[i] = value;
    }
  for (std::size_t i = 0; i + 1 < now.size(); ++i) {
    all.push_back(now);
    std::swap(all.back()[i], all.back()[i + 1]);
  }
  all.emplace_back(now.rbegin(), now.rend());
  if (!now.empty()) all.emplace_back(now.begin(), now.end() - 1);
  for (const Ints& values : all)
    if (values != now) place.set(name, values, written(values));
}

void numbers(const NodePlace& place, const std::string& name, float now) {
  for (const float value : {now * (1 + 1e-6F), now * 1.0001F, now * 1.001F, -now, 0.0F, 1.0F, 0.5F, 2.0F})
    if (value != now) place.set(name, value, std::to_string(value));
}

void texts(const NodePlace& place, const std::string& name, const std::string& now) {
  const auto known = kTexts.find(name);
  if (known == kTexts.end()) return;
  for (const std::string& value : known->second)
    if (value != now) place.set(name, value, value);
}

void change(const NodePlace& place, const std::string& name, const Attr& now) {
  if (const auto* value = std::get_if<std::int64_t>(&now)) integers(place, name, *value);
  if (const auto* value = std::get_if<Ints>(&now)) lists(place, name, *value);
  if (const auto* value = std::get_if<float>(&now)) numbers(place, name, *value);
  if (const auto* value = std::get_if<std::string>(&now)) texts(place, name, *value);
  place.add("without " + name, [=](Node& n) { n.attrs.erase(name); });
}

/// An attribute that is absent. How long a list would be is not said: that of the others, or of 1 to 4.
void supply(const NodePlace& place, const AttributeKind& kind) {
  switch (kind.type) {
    case AttributeKind::Type::integer:
      return integers(place, kind.name, 99);
    case AttributeKind::Type::number:
      return numbers(place, kind.name, 3);
    case AttributeKind::Type::text:
      return texts(place, kind.name, "");
    case AttributeKind::Type::integers:
      for (const Ints& values : {Ints{0}, Ints{1}, Ints{-1}, Ints{2}, Ints{0, 1}, Ints{1, 0}, Ints{2, 2}, Ints{1, 2},
                                 Ints{1, 0, 2}, Ints{0, 2, 1}, Ints{0, 2, 1, 3}, Ints{1, 1, 1, 1}, Ints{0, 1, 1, 0}})
        place.set(kind.name, values, written(values));
      return;
    default:
      return;
  }
}

}  // namespace

std::vector<std::int64_t> meaningful(const std::string& attribute) {
  const auto known = kIntegers.find(attribute);
  return known == kIntegers.end() ? std::vector<std::int64_t>{} : known->second;
}

void mutate_attributes(const Model& model, Mutations& out) {
  const std::vector<Node*> nodes = all_nodes(model);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const NodePlace place{*nodes[i], i, out};
    for (const auto& [name, attr] : nodes[i]->attrs) change(place, name, attr);
    if (nodes[i]->is("Constant")) continue;  // each of its attributes is another one
    for (const AttributeKind& kind : attributes_of(*nodes[i], model))
      if (!nodes[i]->attrs.has(kind.name)) supply(place, kind);
  }
}

}  // namespace modelflow::obligations
