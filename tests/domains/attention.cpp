// Attention in every layout, mask and precision.
#include <cmath>
#include <limits>

#include "backends/ops/attention_attrs.h"
#include "tests/domains/domain.h"

namespace modelflow::domains {
namespace {

Dims placed(const std::string& layout, std::int64_t batch, std::int64_t rows, std::int64_t heads, std::int64_t size) {
  if (layout == "BSH") return {batch, rows, heads * size};
  return {batch, heads, rows, size};
}

/// Additive numbers as models have them: a bias, the lowest number, -inf, and rows that see nothing.
Tensor numbers_of(const std::string& kind, const Dims& dims, Operands& made) {
  const Tensor noise = made.normal(dims);
  const float lowest = std::numeric_limits<float>::lowest();
  return Tensor::make(DType::f32, dims, [&](std::byte* bytes) {
    const auto width = static_cast<std::size_t>(dims.back());
    bool nothing = false;
    for (std::size_t i = 0; i < static_cast<std::size_t>(noise.elements()); ++i) {
      if (i % width == 0) nothing = kind == "empty rows" && made.chance(0.3);
      float x = noise.as<float>()[i];
      if (kind != "bias" && made.chance(0.3)) x = made.chance(0.5) ? lowest : -std::numeric_limits<float>::infinity();
      reinterpret_cast<float*>(bytes)[i] = nothing ? -std::numeric_limits<float>::infinity() : x;
    }
  });
}

/// What hides a key: one of these.
float low_number(const Chosen& c) {
  const std::string low = c.word("low");
  if (low == "lowest") return std::numeric_limits<float>::lowest();
  // Scores beside it keep their digits, and it is no weight in either arithmetic: one ends at 87, the other at 103.
  if (low == "some") return -300;
  return -std::numeric_limits<float>::infinity();
}

Dims mask_dims(const Chosen& c, std::int64_t batch, std::int64_t heads, Operands& made) {
  const std::string shape = c.word("mask");
  const std::int64_t rows = c.number("rows"), keys = c.is("packed") ? rows : c.number("keys");
  if (shape == "keys") return {batch, 1, 1, keys};
  if (shape == "rows") return {rows, keys};
  if (shape == "heads") return {heads, rows, keys};
  if (shape == "column") return {batch, 1, rows, 1};
  if (shape == "one") return {1, 1, rows, keys};
  if (shape == "more")
    return {batch == 1 ? 3 : batch, 1, rows == 1 && !c.is("packed") && !c.is("causal") ? 4 : rows, keys};
  if (shape == "windows")
    return {batch > 1 && batch % 2 == 0 ? batch / 2 : 1, made.chance(0.5) ? heads : 1, rows, keys};
  return {batch, heads, rows, keys};
}

bool mask(const Chosen& c, std::int64_t batch, std::int64_t heads, Operands& made) {
  const std::string kind = c.word("mask_kind"), replaces = c.word("replaces");
  Attrs& attrs = made.call.attrs;
  const bool windows = c.word("mask") == "windows";
  attrs.set("has_mask", 1).set("windows", windows ? 1 : 0);
  const Dims dims = mask_dims(c, batch, heads, made);
  if (kind != "flags") {
    made.constant("mask", numbers_of(kind, dims, made), c.is("constant"));
    return replaces == "none" && !c.is("has_bias");
  }
  attrs.set("boolean_mask", 1);
  attrs.set(replaces == "true" ? "mask_true" : "mask_false", low_number(c));
  made.constant("mask", made.flags(dims, replaces == "true" ? 0.3 : 0.7), c.is("constant"));
  if (!c.is("has_bias")) return true;
  made.constant("bias", numbers_of("some", {c.number("rows"), dims.back()}, made), c.is("constant"));
  return !windows;
}

/// Keys in a grid of so many rows; the numbers of all batches, heads and queries.
bool grid(const Chosen& c, std::int64_t batch, std::int64_t heads, Operands& made) {
  const std::int64_t rows = c.number("rows"), keys = c.is("packed") ? rows : c.number("keys");
  const std::int64_t high = Chosen::numbers_in(c.word("grid"))[0];
  const bool more = c.word("mask") == "more";  // of batches or rows
  if (keys % high != 0 || c.is("causal") || more) return false;
  made.call.attrs.set("has_grid", 1);
  made.feed("grid_rows", made.normal({batch, heads, rows, high}));
  made.feed("grid_columns", made.normal({batch, heads, rows, keys / high}));
  return true;
}

bool attention(const Chosen& c, Operands& made) {
  const Dims batches = c.list("batches"), heads = c.list("heads");
  const std::int64_t rows = c.number("rows"), keys = c.number("keys"), depth = c.number("depth"),
                     width = c.number("width");
  Attrs& attrs = made.call.attrs;
  attrs.set("num_heads", heads[0])
      .set("kv_heads", heads[1])
      .set("scale", c.real("sharpness") / static_cast<float>(depth));
  std::int64_t batch = batches[0];
  if (c.is("packed")) {
    made.feed("qkv", made.normal({batch, rows, (heads[0] + 2 * heads[1]) * depth}));
  } else {
    batch = batches[0] == 1 ? batches[1] : batches[0];
    made.feed("q", made.normal(placed(c.word("q_layout"), batches[0], rows, heads[0], depth)));
    made.feed("k", made.normal(placed(c.word("k_layout"), batches[1], keys, heads[1], depth)));
    made.feed("v", made.normal(placed(c.word("v_layout"), batches[1], keys, heads[1], width)));
  }
  if (c.is("causal")) attrs.set("causal_number", low_number(c));
  if (c.word("mask") != "none" && !mask(c, batch, heads[0], made)) return false;
  if (c.word("mask") == "none" && c.is("has_bias")) return false;
  if (c.word("grid") != "none" && !grid(c, batch, heads[0], made)) return false;
  if (c.is("sizes"))  // bodies that are told the sizes, and bodies that compute them
    for (const auto& [name, value] : ops::attention_sizes(made.call)) attrs.set(name, value);
  return true;
}

/// Attention of channels: tokens many and few, heads of whole vectors and not.
bool channels(const Chosen& c, Operands& made) {
  const std::int64_t batch = c.number("batch"), tokens = c.number("tokens"), heads = c.number("num_heads"),
                     width = heads * c.number("size");
  Attrs& attrs = made.call.attrs;
  const bool unit = c.is("normalize");
  if (!unit && c.is("clips")) return false;
  attrs.set("epsilon", Attr(unit ? c.real("least") : 0.0f));
  attrs.set("scale", Attr(unit ? c.real("sharpness") : c.real("sharpness") / static_cast<float>(tokens + 1)));
  if (c.is("packed")) made.feed("qkv", made.normal({batch, tokens, 3 * width}));
  for (const char* name : {"q", "k", "v"})
    if (!c.is("packed")) made.feed(name, made.normal({batch, tokens, width}));
  if (c.is("has_temperature")) made.constant("temperature", made.uniform({heads}, 0.5, 2), c.is("constant"));
  return true;
}

/// Heads that are mixed: tokens in whole blocks and not.
bool talking_heads(const Chosen& c, Operands& made) {
  const std::int64_t batch = c.number("batch"), tokens = c.number("tokens"), heads = c.number("num_heads"),
                     width = heads * c.number("size");
  made.call.attrs.set("scale", Attr(c.real("sharpness") / std::sqrt(static_cast<float>(c.number("size")))));
  if (c.is("packed")) made.feed("qkv", made.normal({batch, tokens, 3 * width}));
  for (const char* name : {"q", "k", "v"})
    if (!c.is("packed")) made.feed(name, made.normal({batch, tokens, width}));
  for (const char* name : {"before", "after"})
    made.constant(name, made.weights({heads, heads}, heads), c.is("constant"));
  if (c.is("has_bias")) made.constant("bias", made.uniform({heads}, -1, 1), c.is("constant"));
  return true;
}

}  // namespace

std::vector<Domain> attention_domains() {
  const auto layout = [](const char* name) { return words(name, {"BSH", "BNSH"}); };
  std::vector<Axis> axes = {
      words("batches", {"1,1", "2,2", "4,4", "0,0", "3,1", "1,3"}),
      words("heads", {"1,1", "2,2", "4,2", "3,1"}),
      numbers("rows", {1, 2, 7, 16, 17, 33, 70}),
      numbers("keys", {1, 5, 16, 33, 65, 100, 130, 343, 420}),
      numbers("depth", {1, 5, 8, 16, 24, 33, 64}),
      numbers("width", {1, 4, 16, 40}),
      layout("q_layout"),
      layout("k_layout"),
      layout("v_layout"),
      layout("y_layout"),
      numbers("packed", {0, 0, 1}),
      flag("causal"),
      flag("nan_guard"),
      words("mask", {"none", "none", "full", "keys", "rows", "heads", "column", "one", "more", "windows"}),
      words("mask_kind", {"bias", "some", "empty rows", "flags"}),
      flag("constant"),
      reals("softcap", {0, 0, 0.3f, 20}),
      reals("sharpness", {1.25f, 6, -2}),
      words("low", {"-inf", "lowest", "some"}),
      words("replaces", {"none", "none", "true", "false"}),
      numbers("has_bias", {0, 0, 0, 1}),
      flag("bias_last"),
      flag("causal_adds"),
      flag("causal_first"),
      flag("sizes")};
  std::vector<Axis> placed = axes;
  placed.push_back(words("grid", {"none", "none", "none", "1", "5", "13"}));
  axes.push_back(words("grid", {"none"}));
  return {
      {"Attention", placed, attention, {Special::nan, Special::infinite, Special::huge, Special::tiny}},
      {"QAttention", axes, attention, {Special::tiny}, {"has_grid"}},
      {"AttentionBf16", axes, attention, {Special::nan, Special::tiny}, {"has_grid"}},
      {"ChannelAttention",
       {numbers("batch", {0, 1, 2, 3}), numbers("tokens", {1, 5, 49, 130, 333}), numbers("num_heads", {1, 2, 3, 8}),
        numbers("size", {1, 3, 8, 16, 17, 24, 32, 50}), flag("packed"), flag("normalize"), flag("clips"),
        flag("has_temperature"), flag("constant"), reals("least", {1e-12f, 1e-5f, 4}), reals("sharpness", {1, 3, -2})},
       channels,
       {Special::nan, Special::infinite, Special::tiny}},
      {"TalkingHeads",
       {numbers("batch", {0, 1, 2, 3}), numbers("tokens", {1, 5, 49, 130, 333}), numbers("num_heads", {1, 2, 3, 8, 17}),
        numbers("size", {1, 3, 8, 16, 17, 24, 32, 50}), flag("packed"), flag("has_bias"), flag("constant"),
        reals("sharpness", {1, 3, -2})},
       talking_heads,
       {Special::nan, Special::infinite, Special::tiny}}};
}

}  // namespace modelflow::domains
