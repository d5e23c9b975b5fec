#include "src/verify/feeds.h"

#include <algorithm>
#include <cctype>

#include "src/input_shape.h"

namespace modelflow {
namespace {

bool contains(std::string text, std::initializer_list<std::string_view> words) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

/// An extent for an axis from its symbol, else from where it stands.
std::int64_t guess(const std::string& symbol, const Value& input, std::size_t axis, const Extents& e) {
  if (contains(symbol, {"past", "cache"})) return e.past;
  if (contains(symbol, {"batch"})) return e.batch;
  if (contains(symbol, {"height"})) return e.height;
  if (contains(symbol, {"width"})) return e.width;
  if (contains(symbol, {"seq", "len", "token", "time", "frame"})) return e.sequence;
  if (axis == 0) return input.shape().rank() == 1 ? e.sequence : e.batch;
  if (contains(input.name(), {"past", "cache"})) return e.past;
  if (input.shape().rank() < 4) return e.sequence;
  return axis == 1 ? e.channels : axis + 1 == input.shape().rank() ? e.width : e.height;
}

/// What the user's shapes say about the symbols of the inputs.
std::map<std::string, std::int64_t> given_symbols(const Model& model, const std::map<std::string, Dims>& given) {
  std::map<std::string, std::int64_t> symbols;
  for (const Value* input : model.graph().inputs()) {
    const auto found = given.find(input->name());
    if (found == given.end()) continue;
    if (!input->shape().has_rank()) continue;
    for (std::size_t axis = 0; axis < found->second.size(); ++axis)
      if (const Dim& dim = input->shape()[axis]; dim.symbols().size() == 1 && dim == Dim::symbol(dim.symbols()[0]))
        symbols[dim.symbols()[0]] = found->second[axis];
  }
  return symbols;
}

bool is_dynamic(const Model& model) {
  return std::any_of(model.graph().inputs().begin(), model.graph().inputs().end(),
                     [](const Value* input) { return !input->is_initializer() && !input->shape().known(); });
}

}  // namespace

std::map<std::string, Dims> input_dims(const Model& model, const Extents& extents,
                                       const std::map<std::string, Dims>& given) {
  std::map<std::string, std::int64_t> symbols = given_symbols(model, given);
  std::map<std::string, Dims> all;
  for (const Value* input : model.graph().inputs()) {
    if (input->is_initializer()) continue;  // has a default
    if (!input->type.is_tensor())
      throw Error(ErrorKind::unsupported, "no data can be made up for an input that is no tensor")
          .within("input '" + input->name() + "'");
    if (const auto found = given.find(input->name()); found != given.end()) {
      all[input->name()] = found->second;
      continue;
    }
    Dims dims;
    for (std::size_t axis = 0; input->shape().has_rank() && axis < input->shape().rank(); ++axis) {
      const Dim& dim = input->shape()[axis];
      for (const std::string& symbol : dim.symbols())
        if (!symbols.contains(symbol)) symbols[symbol] = guess(symbol, *input, axis, extents);
      dims.push_back(dim.unknown() ? guess("", *input, axis, extents) : dim.evaluate(symbols).value_or(1));
    }
    all[input->name()] = std::move(dims);
  }
  return all;
}

/// Elements of all inputs together: where two axes share a symbol, long sequences make huge ones.
double elements(const std::map<std::string, Dims>& dims) {
  double sum = 0;
  for (const auto& [name, extents] : dims) {
    double product = 1;
    for (const std::int64_t extent : extents) product *= static_cast<double>(extent);
    sum += product;
  }
  return sum;
}

constexpr double kMostElements = 1 << 24;  // of a set that is no first choice

std::vector<std::vector<Feeds>> feed_groups(const Model& model, const Options& options) {
  check_input_shapes(model, options.input_shapes);
  // Batch 2 and odd sizes come second in a group: they catch a shape that was burnt in.
  static const std::vector<std::vector<Extents>> dynamic = {
      {{},
       {.batch = 2, .sequence = 37, .past = 5, .height = 224, .width = 256},
       {.batch = 1, .sequence = 128, .past = 16, .height = 192, .width = 192}},
      // Lines of text.
      {{.sequence = 32, .past = 1, .height = 48}, {.batch = 2, .sequence = 24, .past = 1, .height = 48, .width = 240}},
      {{.sequence = 16, .past = 0, .height = 32}, {.batch = 2, .sequence = 12, .past = 0, .height = 32, .width = 100}},
      {{.sequence = 512, .past = 64, .height = 640, .width = 640, .channels = 1}},
      {{.sequence = 8, .past = 0, .height = 64, .width = 64, .channels = 1}},
      {{.sequence = 16000, .past = 1, .height = 32, .width = 32, .channels = 1}},
      {{.sequence = 1, .past = 1, .height = 1, .width = 1, .channels = 1}},
      // Windows of an image, as the blocks of Swin get them: a whole number of images.
      {{.batch = 64, .sequence = 49, .past = 0, .height = 56, .width = 56}},
  };
  static const std::vector<std::vector<Extents>> fixed = {{{}, {}}};
  std::vector<std::vector<Feeds>> groups;
  for (const std::vector<Extents>& group : is_dynamic(model) ? dynamic : fixed) {
    groups.emplace_back();
    for (const Extents& extents : group) {
      const std::map<std::string, Dims> dims = input_dims(model, extents, options.input_shapes);
      if (groups.size() > 1 && elements(dims) > kMostElements) continue;
      const int style = static_cast<int>(groups.back().size());
      Feeds feeds;
      for (const Value* input : model.graph().inputs())
        if (!input->is_initializer())
          feeds[input->name()] = synthetic_values(*input, dims.at(input->name()), dims, style);
      groups.back().push_back(std::move(feeds));
    }
  }
  return groups;
}

std::vector<Feeds> synthetic_feeds(const Model& model, const Options& options) {
  std::vector<Feeds> flat;
  for (std::vector<Feeds>& group : feed_groups(model, options))
    for (Feeds& feeds : group) flat.push_back(std::move(feeds));
  return flat;
}

}  // namespace modelflow
