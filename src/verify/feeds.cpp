// Inputs made up for verification: extents and contents.
#include "src/verify/feeds.h"

#include <algorithm>

#include "modelflow/symbols.h"
#include "src/input_shape.h"
#include "src/verify/role.h"

namespace modelflow {
namespace {

constexpr std::int64_t kVolume = 32;  // a side of what has three of them
constexpr int kMostTries = 64;        // to make all extents positive
/// Samples of sound beside a token of text: a second beside 64 of them.
constexpr std::int64_t kSamples = 250, kLongText = 1000;

enum class Axis { past, total, batch, height, width, sequence, samples, channels };

/// What an extent stands for, from its symbol, else from where it stands; sound is a sequence here.
Axis place_of(const std::string& symbol, const Value& input, std::size_t axis) {
  if (has_word(symbol, {"total"})) return Axis::total;
  if (has_word(symbol, {"past", "cache"})) return Axis::past;
  if (has_word(symbol, {"batch"})) return Axis::batch;
  if (has_word(symbol, {"height"}) || symbol == "H" || symbol == "h") return Axis::height;
  if (has_word(symbol, {"width"}) || symbol == "W" || symbol == "w") return Axis::width;
  if (has_word(symbol, {"seq", "len", "token", "time", "frame"})) return Axis::sequence;
  if (axis == 0) return input.shape().rank() == 1 ? Axis::sequence : Axis::batch;
  if (has_word(input.name(), {"past", "cache"})) return Axis::past;
  if (input.shape().rank() < 4) return Axis::sequence;
  if (axis == 1) return Axis::channels;
  if (!looks_like_an_image(input)) return Axis::sequence;
  return axis + 1 == input.shape().rank() ? Axis::width : Axis::height;
}

Axis axis_of(const std::string& symbol, const Value& input, std::size_t axis) {
  const Axis place = place_of(symbol, input, axis);
  const bool last = input.shape().has_rank() && axis + 1 == input.shape().rank();  // others may be microphones, windows
  return last && place == Axis::sequence && looks_like_sound(input) ? Axis::samples : place;
}

std::int64_t extent(Axis axis, const Extents& e) {
  switch (axis) {
    case Axis::past:
      return e.past;
    case Axis::total:
      return e.past + e.sequence;
    case Axis::batch:
      return e.batch;
    case Axis::height:
      return e.height;
    case Axis::width:
      return e.width;
    case Axis::channels:
      return e.channels;
    case Axis::samples:
      return e.sequence < kLongText ? e.sequence * kSamples : e.sequence;
    default:
      return e.sequence;
  }
}

/// What the user's shapes say about the symbols of the inputs.
std::map<std::string, std::int64_t> given_symbols(const Model& model, const std::map<std::string, Dims>& given) {
  std::map<std::string, std::int64_t> symbols;
  for (const Value* input : model.graph().inputs()) {
    const auto found = given.find(input->name());
    if (found == given.end()) continue;
    if (!input->shape().has_rank()) continue;
    for (std::size_t axis = 0; axis < found->second.size(); ++axis)
      if (const Dim& dim = input->shape()[axis]; is_symbol(dim)) symbols[dim.symbols()[0]] = found->second[axis];
  }
  return symbols;
}

}  // namespace

namespace {

/// Lengthens a symbol of an expression that comes to nothing or less, as N - 8 of 1 does; false where there is none.
/// What the user gave stays, and so does a batch of 0.
bool lengthened(const Model& model, std::map<std::string, std::int64_t>& symbols,
                const std::map<std::string, std::int64_t>& given) {
  for (const Value* input : model.graph().inputs()) {
    for (std::size_t axis = 0; input->shape().has_rank() && axis < input->shape().rank(); ++axis) {
      const Dim& dim = input->shape()[axis];
      const std::int64_t extent = dim.evaluate(symbols).value_or(1);
      if (extent > 0) continue;
      for (const std::string& symbol : dim.symbols()) {
        const auto found = symbols.find(symbol);
        if (given.contains(symbol) || found == symbols.end() || found->second == 0) continue;
        found->second += 1 - extent;
        return true;
      }
    }
  }
  return false;
}

}  // namespace

std::map<std::string, Dims> input_dims(const Model& model, const Extents& extents,
                                       const std::map<std::string, Dims>& given) {
  const std::map<std::string, std::int64_t> fixed = given_symbols(model, given);
  std::map<std::string, std::int64_t> symbols = fixed;
  std::map<Axis, std::int64_t> steps;
  const auto chosen = [&](const std::string& symbol, const Value& input, std::size_t at) {
    const Axis axis = axis_of(symbol, input, at);
    const std::int64_t step = axis == Axis::total || axis == Axis::channels ? 0 : steps[axis]++ * extents.step;
    const bool volume = input.shape().rank() > 4 && (axis == Axis::height || axis == Axis::width);
    return (volume ? std::min(extent(axis, extents), kVolume) : extent(axis, extents)) + step;
  };
  std::vector<const Value*> inputs;
  for (const Value* input : model.graph().inputs()) {
    if (input->is_initializer()) continue;  // has a default
    if (!input->type.is_tensor())
      throw Error(ErrorKind::unsupported, "no data can be made up for an input that is no tensor")
          .within("input '" + input->name() + "'");
    inputs.push_back(input);
    if (given.contains(input->name()) || !input->shape().has_rank()) continue;
    for (std::size_t axis = 0; axis < input->shape().rank(); ++axis)
      for (const std::string& symbol : input->shape()[axis].symbols())
        if (!symbols.contains(symbol)) symbols[symbol] = chosen(symbol, *input, axis);
  }
  for (int tries = 0; tries < kMostTries && lengthened(model, symbols, fixed); ++tries) {
  }
  std::map<std::string, Dims> all;
  for (const Value* input : inputs) {
    Dims dims;
    for (std::size_t axis = 0; input->shape().has_rank() && axis < input->shape().rank(); ++axis) {
      const Dim& dim = input->shape()[axis];
      dims.push_back(dim.unknown() ? extent(axis_of("", *input, axis), extents)
                                   : std::max<std::int64_t>(dim.evaluate(symbols).value_or(1), 0));
    }
    const auto wanted = given.find(input->name());
    all[input->name()] = wanted != given.end() ? wanted->second : std::move(dims);
  }
  return all;
}

double elements(const std::map<std::string, Dims>& dims) {
  double sum = 0;
  for (const auto& [name, extents] : dims) {
    double product = 1;
    for (const std::int64_t extent : extents) product *= static_cast<double>(extent);
    sum += product;
  }
  return sum;
}

std::vector<Feeds> synthetic_feeds(const Model& model, const Options& options) {
  check_input_shapes(model, options.input_shapes);
  const Idea first = typical_idea(model);
  std::vector<Idea> ideas = further_ideas(model, first.extents.front(), options.input_shapes);
  ideas.insert(ideas.begin(), first);
  std::vector<Feeds> flat;
  for (const Idea& idea : ideas) {
    if (idea.kinds_only()) continue;
    const Extents& extents = idea.extents.front();
    flat.push_back(made_up(model, input_dims(model, extents, options.input_shapes), extents, idea.style));
  }
  return flat;
}

Feeds typical_feeds(Session& session, const Model& model, const Options& options) {
  check_input_shapes(model, options.input_shapes);
  const Idea idea = typical_idea(model);
  std::optional<Error> refusal;
  for (const Extents& extents : idea.extents) {
    Feeds feeds = made_up(model, input_dims(model, extents, options.input_shapes), extents, idea.style);
    try {
      session.run(feeds);
      return feeds;
    } catch (const Error& error) {
      if (!refusal) refusal = error;
    }
  }
  throw *refusal;
}

}  // namespace modelflow
