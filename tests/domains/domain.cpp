// Axes of choices, and the choices of a call.
#include "tests/domains/domain.h"

#include <algorithm>
#include <charconv>

#include "backends/ops/activation_body.h"

namespace modelflow::domains {

Axis numbers(std::string name, std::initializer_list<std::int64_t> values) {
  return {std::move(name), {values.begin(), values.end()}};
}

Axis reals(std::string name, std::initializer_list<float> values) {
  return {std::move(name), {values.begin(), values.end()}};
}

Axis words(std::string name, std::initializer_list<const char*> values) {
  Axis axis{std::move(name), {}};
  for (const char* value : values) axis.values.emplace_back(std::string(value));
  return axis;
}

Axis flag(std::string name) { return numbers(std::move(name), {0, 1}); }

std::vector<Axis> activations() {
  Axis names{"activation", {}};
  for (const std::string& name : ops::activation_names()) names.values.emplace_back(name);
  return {names, numbers("post", {0, 0, 1})};
}

Dims Chosen::numbers_in(std::string_view text) {
  Dims list;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end; ++at) at = std::from_chars(at, end, list.emplace_back()).ptr;
  return list;
}

std::vector<Axis> narrowed(std::vector<Axis> axes, const std::vector<Axis>& choices) {
  for (const Axis& choice : choices) {
    const auto axis = std::ranges::find(axes, choice.name, &Axis::name);
    if (axis == axes.end()) throw Error(ErrorKind::invalid_input, "no axis " + choice.name);
    *axis = choice;
  }
  return axes;
}

const std::vector<Domain>& all_domains() {
  static const std::vector<Domain> all = [] {
    std::vector<Domain> domains;
    for (const auto part : {elementwise_domains, product_domains, convolution_domains, transposed_domains,
                            image_domains, row_domains, attention_domains, recurrent_domains})
      for (Domain& domain : part()) domains.push_back(std::move(domain));
    return domains;
  }();
  return all;
}

}  // namespace modelflow::domains
