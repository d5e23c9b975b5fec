// What data may look like: sizes first, then values.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "src/verify/feeds.h"
#include "src/verify/role.h"

namespace modelflow {
namespace {

constexpr std::int64_t kMostKept = 64;

/// One kind of model: the sizes that are most likely fed to it, and others that such a model takes as well.
struct Kind {
  Extents likely, other, third;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {{},
       {.batch = 2, .sequence = 37, .past = 5, .height = 224, .width = 256},
       {.batch = 1, .sequence = 128, .past = 16, .height = 192, .width = 192}},
      // Lines of text.
      {{.sequence = 32, .past = 1, .height = 48},
       {.batch = 2, .sequence = 24, .past = 1, .height = 48, .width = 240},
       {.batch = 3, .sequence = 40, .past = 3, .height = 48, .width = 100}},
      {{.sequence = 16, .past = 0, .height = 32},
       {.batch = 2, .sequence = 12, .past = 0, .height = 32, .width = 100},
       {.batch = 3, .sequence = 20, .past = 0, .height = 32, .width = 64}},
      {{.sequence = 512, .past = 64, .height = 640, .width = 640, .channels = 1},
       {.batch = 2, .sequence = 256, .past = 32, .height = 512, .width = 512, .channels = 1},
       {.batch = 1, .sequence = 320, .past = 40, .height = 384, .width = 512, .channels = 1}},
      {{.sequence = 8, .past = 0, .height = 64, .width = 64, .channels = 1},
       {.batch = 2, .sequence = 16, .past = 0, .height = 96, .width = 64, .channels = 1},
       {.batch = 3, .sequence = 4, .past = 0, .height = 32, .width = 64, .channels = 1}},
      {{.sequence = 16000, .past = 1, .height = 32, .width = 32, .channels = 1},
       {.batch = 2, .sequence = 8000, .past = 1, .height = 28, .width = 28, .channels = 1},
       {.batch = 1, .sequence = 4800, .past = 1, .height = 64, .width = 32, .channels = 1}},
      {{.sequence = 1, .past = 1, .height = 1, .width = 1, .channels = 1},
       {.batch = 2, .sequence = 1, .past = 2, .height = 1, .width = 1, .channels = 1},
       {.batch = 3, .sequence = 1, .past = 3, .height = 1, .width = 1, .channels = 1}},
      // Windows of an image, as the blocks of Swin get them: a whole number of images.
      {{.batch = 64, .sequence = 49, .past = 0, .height = 56, .width = 56},
       {.batch = 128, .sequence = 49, .past = 0, .height = 56, .width = 56},
       {.batch = 64, .sequence = 49, .past = 0, .height = 112, .width = 56}},
  };
  return all;
}

/// The batch that this node allows alone, if a constant says so; else 0.
std::int64_t kept_batch(const Node& node) {
  if (node.is("Reshape") || node.is("Expand")) {
    const Tensor* sizes = node.input(1) ? node.input(1)->constant() : nullptr;
    return sizes && sizes->dtype() == DType::i64 && sizes->elements() > 0 ? sizes->as<std::int64_t>()[0] : 0;
  }
  if (!node.is("Concat") || node.attrs.integer("axis") == 0) return 0;
  for (const Value* part : node.inputs()) {
    const Tensor* constant = part ? part->constant() : nullptr;
    if (constant && constant->elements() > 0 && constant->dims().size() > 1) return constant->dims()[0];
  }
  return 0;
}

/// Some exporters keep the batch that they saw in a constant or two, though they call it dynamic: the most frequent of
/// what may be such.
std::vector<std::int64_t> kept_batches(const Model& model) {
  std::map<std::int64_t, int> counts;
  for (const auto& node : model.graph().nodes())
    if (const std::int64_t batch = kept_batch(*node); batch > 1 && batch <= kMostKept) ++counts[batch];
  std::vector<std::int64_t> batches;
  for (const auto& [batch, count] : counts) batches.push_back(batch);
  std::ranges::stable_sort(batches, std::greater(), [&](std::int64_t batch) { return counts[batch]; });
  batches.resize(std::min<std::size_t>(batches.size(), 3));
  return batches;
}

bool same(const Extents& a, const Extents& b) {
  return a.batch == b.batch && a.sequence == b.sequence && a.past == b.past && a.height == b.height &&
         a.width == b.width && a.channels == b.channels && a.step == b.step;
}

/// Unlike symbols unlike, then alike for models that tie them; all of that again with the image of `base`, whose sides
/// many models fix.
std::vector<Extents> attempts(Extents wanted, const Extents& base) {
  std::vector<Extents> all;
  wanted.channels = base.channels;
  for (const bool own_image : {true, false}) {
    if (!own_image) wanted.height = base.height, wanted.width = base.width;
    for (const std::int64_t step : {2, 0}) {
      wanted.step = step;
      all.push_back(wanted);
    }
  }
  return all;
}

bool is_dynamic(const Model& model, const std::map<std::string, Dims>& given) {
  const auto& inputs = model.graph().inputs();
  return std::any_of(inputs.begin(), inputs.end(), [&](const Value* input) {
    return !input->is_initializer() && !input->shape().known() && !given.contains(input->name());
  });
}

std::vector<Idea> sizes(const Model& model, const Extents& base, const std::map<std::string, Dims>& given) {
  const auto matters = [&](Extents changed) {
    return input_dims(model, changed, given) != input_dims(model, base, given);
  };
  const auto kind = std::find_if(kinds().begin(), kinds().end(), [&](const Kind& k) {
    return same(k.likely, base) || same(k.other, base) || same(k.third, base);
  });
  std::vector<Idea> ideas = {
      {"one", "batch 1 and lengths of 1, images of 32", attempts({1, 1, 1, 32, 32}, base)},
      {"two", "batch 2 and lengths of 2", attempts({2, 2, 2, 64, 32}, base)},
      {"odd", "batch 3 and odd lengths", attempts({3, 7, 5, 33, 47}, base)},
      {"empty batch", "batch 0", attempts({0, 7, 5, 33, 47}, base)},
  };
  Extents none = base;
  none.past = 0;
  if (base.past != 0 && matters(none))
    ideas.push_back({"empty cache", "nothing in the cache yet", attempts(none, base)});
  Extents step = base;
  step.sequence = 1;
  if (base.past != 0 && matters(none)) ideas.push_back({"one step", "one token behind a cache", {step}});
  if (kind != kinds().end()) {
    ideas.push_back({"other sizes", "another batch, other sizes", {kind->other}, Style::typical, true});
    ideas.push_back({"third sizes", "sizes once more", {kind->third}, Style::typical, true});
  }
  return ideas;
}

/// Integers that stand for anything: no table bounds them, no name says what they are.
bool any_open_integers(const Model& model) {
  return std::ranges::any_of(model.graph().inputs(), [](const Value* input) {
    const Meaning meaning = meaning_of(*input);
    return !input->is_initializer() && meaning.role == Role::ids && meaning.limit == INT64_MAX;
  });
}

bool has_scalars(const Model& model) {
  return std::ranges::any_of(model.graph().inputs(), [](const Value* input) {
    return !input->is_initializer() && input->shape().has_rank() && input->shape().elements() == Dim(1);
  });
}

/// A model may refuse other scalars on sizes that it takes: these count, too.
void also_with_usual_scalars(Idea& idea) {
  const std::size_t count = idea.extents.size();
  for (std::size_t i = 0; i < count; ++i) {
    idea.extents.push_back(idea.extents[i]);
    idea.extents.back().scalars = false;
  }
}

}  // namespace

Idea typical_idea(const Model& model) {
  Idea idea{"typical", "sizes and values that most users have", {Extents()}, Style::typical, true};
  if (!is_dynamic(model, {})) return idea;
  idea.extents.clear();
  for (const Extents Kind::*sizes : {&Kind::likely, &Kind::other, &Kind::third})
    for (const Kind& kind : kinds()) idea.extents.push_back(kind.*sizes);
  for (const std::int64_t batch : kept_batches(model)) idea.extents.push_back({.batch = batch});
  return idea;
}

std::vector<Idea> further_ideas(const Model& model, const Extents& base, const std::map<std::string, Dims>& given) {
  std::set<Role> roles;
  for (const Value* input : model.graph().inputs())
    if (!input->is_initializer()) roles.insert(meaning_of(*input).role);
  const auto any = [&](std::initializer_list<Role> wanted) {
    return std::any_of(wanted.begin(), wanted.end(), [&](Role role) { return roles.contains(role); });
  };
  const bool dynamic = is_dynamic(model, given);
  std::vector<Idea> ideas = dynamic ? sizes(model, base, given) : std::vector<Idea>();
  std::vector<Extents> small = {base};
  if (dynamic && !any({Role::image})) {  // images are large enough one by one
    small = attempts({3, 13, 5, base.height, base.width}, base);
    small.push_back(base);
  }
  const auto add = [&](std::string name, std::string why, Style style) {
    ideas.push_back({std::move(name), std::move(why), small, style, style == Style::other});
  };
  const bool masks = any({Role::mask, Role::bias}), signals = any({Role::plain, Role::image});
  if (masks) add("right padding", "rows of unlike lengths, hidden at their ends", Style::right_padding);
  if (masks) add("left padding", "rows of unlike lengths, hidden at their beginnings", Style::left_padding);
  if (masks) add("masked rows", "rows of which nothing is to be seen", Style::masked_rows);
  if (any({Role::lengths})) add("short lengths", "lengths 1, 2 and odd", Style::short_lengths);
  if (any({Role::lengths})) add("odd lengths", "lengths odd, 1 and 2", Style::odd_lengths);
  if (any({Role::ids, Role::segments})) add("range ends", "the first and last entries of tables", Style::range_ends);
  if (any({Role::positions})) add("positions behind a cache", "positions that do not begin at 0", Style::inside_cache);
  if (signals) add("zeros", "silence, black, an empty state", Style::zeros);
  if (any({Role::image})) add("image 0..1", "colours from 0 to 1", Style::unit_image);
  if (any({Role::image})) add("image 0..255", "colours from 0 to 255", Style::byte_image);
  if (signals) add("full scale", "signals at -1 and 1", Style::full_scale);
  if (any({Role::plain})) add("large", "signals up to 60", Style::large);
  if (any_open_integers(model)) add("any integers", "integers of either sign, large ones too", Style::any_integers);
  if (!dynamic) add("other values", "values drawn anew", Style::other);
  if (signals) add("NaN", "NaN here and there", Style::nan);
  if (signals) add("infinity", "an infinity here and there", Style::infinite);
  if (signals) add("extreme", "values of 1e15 and 1e-40", Style::extreme);
  if (has_scalars(model))
    for (Idea& idea : ideas) also_with_usual_scalars(idea);
  return ideas;
}

}  // namespace modelflow
