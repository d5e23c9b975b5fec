// Sample calls of the ops of attention.
#include <algorithm>
#include <limits>
#include <string_view>

#include "backends/ops/attention_attrs.h"
#include "backends/ops/sample_weights.h"

namespace modelflow::ops {
namespace {

struct Sample {
  std::int64_t batch, queries, keys, heads, kv_heads, head_dim, value_dim;
  Dims mask = {};               ///< empty: none
  std::int64_t masked_row = 0;  ///< every so many rows of the mask are -inf throughout; 0: none
  bool causal = false, nan_guard = false, packed = false;
  const char* layouts = "ssss";  ///< of q, k, v and y: s for BSH, n for BNSH
  bool windows = false;
  bool flags = false;  ///< the mask is boolean
  float softcap = 0;
  std::int64_t kv_batch = 0;      ///< of keys and values; 0: that of the queries
  const char* replaces = "none";  ///< which flag puts its number in place of the score
  float low = 0;                  ///< the number of what flags hide; 0: the lowest, or -inf where NaN is guarded
  Dims bias = {};                 ///< beside flags; empty: none
  bool bias_last = false;
  float causal_number = -std::numeric_limits<float>::infinity();
  bool causal_adds = false, causal_first = false;
  std::int64_t grid = 0;  ///< rows of the grid in which the keys lie; 0: none
};

std::vector<Sample> self_attention() {
  return {
      {1, 128, 128, 2, 2, 64, 64},
      {2, 197, 197, 3, 3, 64, 64, {}, 0, false, false, true},
      {1, 128, 128, 2, 2, 32, 32, {1, 1, 1, 128}, 0, false, true, true},
      {3, 17, 17, 2, 2, 32, 32, {3, 1, 1, 17}, 0, false, true, true},
      {2, 33, 33, 5, 5, 5, 5, {2, 5, 33, 33}, 0, false, false, true},
      {2, 19, 19, 2, 2, 80, 80, {19, 19}, 4, false, true, true},
      {1, 49, 49, 3, 3, 32, 32, {3, 49, 49}, 0, false, false, true},
      {2, 40, 40, 4, 2, 16, 16, {}, 0, true, false, true},
      {0, 12, 12, 2, 2, 8, 8, {}, 0, false, false, true},
      {1, 1, 1, 2, 2, 64, 64, {}, 0, false, false, true},
      {1, 70, 70, 1, 1, 24, 24, {}, 0, false, false, true, "sssn"},
      {1, 300, 300, 2, 1, 40, 40, {1, 300}, 0, true, true, true},
      {1, 430, 430, 1, 1, 8, 8, {}, 0, true, false, true},
      {6, 49, 49, 3, 3, 32, 32, {2, 3, 49, 49}, 0, false, false, true, "ssss", true},
      {2, 40, 40, 2, 2, 24, 24, {2, 1, 40, 40}, 3, false, true, true, "ssss", false, true},
      {1, 420, 420, 1, 1, 8, 8, {1, 420}, 0, true, false, true, "ssss", false, true},
      {4, 9, 9, 2, 1, 8, 8, {2, 2, 9, 9}, 4, false, false, true, "sssn", true, true},
      {1, 50, 50, 2, 1, 16, 16, {1, 1, 50, 50}, 3, true, true, true, "ssss", false, false, 0.3f},
      {6, 10, 10, 2, 2, 8, 8, {2, 1, 10, 10}, 0, false, false, true, "ssss", true, false, -0.5f},
  };
}

std::vector<Sample> separate() {
  return {
      {1, 128, 128, 2, 2, 80, 80, {1, 2, 1, 128}, 0, false, false, false, "nnnn"},
      {2, 1, 37, 4, 4, 64, 64, {}, 0, false, false, false, "snns"},
      {2, 1, 130, 8, 2, 32, 32, {2, 1, 1, 130}, 0, false, true, false, "nnnn"},
      {1, 7, 130, 6, 1, 32, 48, {7, 130}, 3, false, true, false, "nsns"},
      {2, 21, 5, 3, 3, 5, 9, {2, 1, 21, 5}, 0, false, false, false, "ssss"},
      {1, 9, 14, 2, 2, 64, 64, {}, 0, true, false, false, "nnsn"},
      {2, 14, 9, 2, 2, 64, 64, {1, 1, 14, 9}, 0, true, true, false, "ssnn"},
      {1, 19, 19, 2, 2, 80, 80, {1, 1, 19, 19}, 4, false, false, false, "nnns"},
      {0, 6, 5, 2, 1, 8, 4, {}, 0, false, false, false, "nsss"},
      {0, 6, 5, 2, 2, 8, 8, {6, 5}, 0, true, true, false, "nnnn"},
      {1, 65, 65, 2, 2, 96, 32, {}, 0, false, false, false, "sssn"},
      {2, 23, 23, 2, 2, 128, 128, {2, 1, 1, 23}, 0, false, false, false, "ssss"},
      {1, 12, 900, 2, 1, 8, 16, {12, 900}, 5, false, true, false, "snsn"},
      {2, 1, 1100, 6, 2, 16, 72, {2, 1, 1, 1100}, 0, false, true, false, "ssnn"},
      {1, 3, 700, 2, 2, 20, 8, {}, 0, true, false, false, "nsss"},
      {8, 5, 21, 4, 2, 16, 16, {4, 1, 5, 21}, 0, false, true, false, "nsns", true},
      {0, 4, 4, 2, 2, 8, 8, {2, 2, 4, 4}, 0, false, false, false, "ssss", true},
      {2, 1, 1100, 4, 2, 16, 24, {2, 1, 1, 1100}, 0, false, true, false, "nnns", false, true},
      {1, 30, 21, 3, 3, 12, 12, {30, 1}, 4, false, true, false, "snsn", false, true},
      {0, 4, 4, 2, 2, 8, 8, {4, 4}, 0, false, false, false, "ssss", false, true},
      {2, 1, 700, 4, 2, 32, 32, {2, 1, 1, 700}, 0, false, false, false, "nnns", false, false, 0.2f},
      {1, 60, 430, 2, 2, 16, 24, {}, 0, false, false, false, "snsn", false, false, 50.0f},
  };
}

/// All that can be said of what hides keys: which way, how low, in which order; rows that see nothing among them, and
/// few rows and many. Shapes take turns.
std::vector<Sample> hidden() {
  std::vector<Sample> all;
  const float numbers[] = {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::lowest(), -1e9f, -1e4f};
  std::size_t turn = 0;
  const auto add = [&](Sample sample) {
    const std::int64_t rows[] = {5, 60, 17}, keys[] = {11, 60, 33};
    sample.queries = rows[turn % 3];
    sample.keys = keys[turn % 3];
    sample.layouts = turn % 2 ? "nnns" : "ssss";
    sample.nan_guard = turn % 5 == 0;
    if (!sample.bias.empty()) sample.bias = turn % 2 ? Dims{2, 1, 1, sample.keys} : Dims{sample.queries, sample.keys};
    if (!sample.mask.empty())
      sample.mask = turn % 4 ? Dims{2, 1, sample.queries, sample.keys} : Dims{2, 1, 1, sample.keys};
    ++turn;
    all.push_back(sample);
  };
  const Sample plain = {2, 0, 0, 2, 1, 8, 8};
  for (const float number : numbers) {
    for (const char* which : {"none", "true", "false"}) {
      for (const int bias : {0, 1, 2}) {
        Sample sample = plain;
        sample.mask = {1};
        sample.masked_row = 4;
        sample.flags = true;
        sample.replaces = which;
        sample.low = number;
        if (bias) sample.bias = {1};
        sample.bias_last = bias == 2;
        add(sample);
      }
    }
    for (const int how : {0, 1, 2, 3}) {
      for (const bool masked : {false, true}) {
        Sample sample = plain;
        sample.causal = true;
        sample.causal_number = number;
        sample.causal_adds = how % 2 != 0;
        sample.causal_first = how / 2 != 0;
        if (masked) sample.mask = {1}, sample.masked_row = 3, sample.flags = how == 1;
        add(sample);
      }
    }
  }
  // Blocks of rows shared out, blocks of keys, windows.
  Sample large = {1, 430, 430, 1, 1, 8, 8, {430, 430}, 3, true, false, true, "ssss", false, true};
  Sample windows = {4, 9, 9, 2, 1, 8, 8, {2, 2, 9, 9}, 4, false, false, true, "sssn", true, true};
  large.replaces = windows.replaces = "false";
  large.causal_number = numbers[1];
  all.insert(all.end(), {large, windows});
  large.causal_adds = true;
  all.push_back(large);
  return all;
}

/// One batch of queries, or of keys and values, or of the mask, for many of the others; one query under many rows.
std::vector<Sample> repeated() {
  std::vector<Sample> all = {
      {1, 9, 12, 2, 2, 8, 8, {1, 1, 9, 12}, 0, false, false, false, "ssss"},
      {1, 60, 61, 2, 1, 8, 4, {}, 0, true, false, false, "nsns"},
      {3, 5, 7, 2, 2, 8, 8, {3, 1, 1, 7}, 0, false, false, false, "nnnn"},
      {1, 1, 70, 2, 2, 8, 8, {3, 1, 9, 70}, 0, false, false, false, "ssss"},
      {1, 1, 1, 2, 2, 8, 8, {4, 2, 5, 1}, 0, false, false, true},
  };
  all[0].kv_batch = all[1].kv_batch = 4;
  all[2].kv_batch = 1;
  return all;
}

/// Keys that lie in a grid (SAM, MViT): few rows, blocks of rows, blocks of keys, a mask behind it.
std::vector<Sample> placed() {
  std::vector<Sample> all = {
      {2, 196, 196, 2, 2, 64, 64, {}, 0, false, false, true},
      {1, 784, 49, 2, 2, 96, 96, {}, 0, false, false, false, "nnnn"},
      {2, 3, 60, 2, 1, 16, 8, {2, 1, 1, 60}, 3, false, true, false, "snsn"},
      {1, 50, 420, 1, 1, 8, 8, {50, 420}, 0, false, false, false, "ssss", false, true},
  };
  const std::int64_t rows[] = {14, 7, 5, 20};
  for (std::size_t i = 0; i < all.size(); ++i) all[i].grid = rows[i];
  return all;
}

/// Additive masks as models have them: a bias, far too small numbers, and rows that see nothing at all.
Tensor mask_of(const Sample& sample) {
  const Tensor noise = sample_weights(sample.mask, 1);
  return Tensor::make(DType::f32, sample.mask, [&](std::byte* bytes) {
    auto* out = reinterpret_cast<float*>(bytes);
    const std::int64_t width = sample.mask.back();
    for (std::int64_t i = 0; i < noise.elements(); ++i) {
      out[i] = noise.as<float>()[static_cast<std::size_t>(i)];
      if (i % 7 == 5) out[i] = i % 2 ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::lowest();
      if (sample.masked_row && i / width % sample.masked_row == 1) out[i] = -std::numeric_limits<float>::infinity();
    }
  });
}

/// Flags: rows that nothing is allowed in among them.
Tensor flags_of(const Sample& sample) {
  return Tensor::make(DType::boolean, sample.mask, [&](std::byte* bytes) {
    const std::int64_t width = sample.mask.back();
    const bool hides = std::string_view(sample.replaces) == "true";
    for (std::int64_t i = 0; i < element_count(sample.mask); ++i) {
      const bool nothing = sample.masked_row && i / width % sample.masked_row == 1;
      bytes[i] = static_cast<std::byte>((!nothing && i % 5 != 3) != hides);
    }
  });
}

Dims operand_dims(char layout, std::int64_t batch, std::int64_t sequence, std::int64_t heads, std::int64_t depth) {
  if (layout == 's') return {batch, sequence, heads * depth};
  return {batch, heads, sequence, depth};
}

void add_masks(Samples& all, const Sample& s, Call& call) {
  const float infinity = std::numeric_limits<float>::infinity();
  if (s.flags) {
    // Without a guard a row of nothing is a mean: the lowest number, not -inf.
    const float low = s.low != 0 ? s.low : s.nan_guard ? -infinity : std::numeric_limits<float>::lowest();
    const bool turned = std::string_view(s.replaces) == "true";
    call.attrs.set("boolean_mask", 1).set("mask_true", turned ? low : 0.0f).set("mask_false", turned ? 0.0f : low);
    call.attrs.set("replaces", s.replaces);
    const Tensor& mask = all.weights.emplace_back(flags_of(s));
    call.inputs.push_back({"mask", DType::boolean, Shape::of(s.mask), &mask});
    if (s.bias.empty()) return;
    call.attrs.set("has_bias", 1).set("bias_last", s.bias_last ? 1 : 0);
    call.inputs.push_back(all.operand("bias", s.bias));
  } else if (!s.mask.empty()) {
    call.inputs.push_back(all.operand("mask", s.mask));
    if (s.masked_row || s.nan_guard) call.inputs.back().constant = &all.weights.emplace_back(mask_of(s));
  }
}

void add(Samples& all, const Sample& s) {
  Call call{"Attention", {}, {}, {}};
  call.attrs.set("num_heads", s.heads).set("kv_heads", s.kv_heads).set("scale", 1.25f / static_cast<float>(s.head_dim));
  if (s.softcap != 0) call.attrs.set("softcap", s.softcap);
  call.attrs.set("causal", s.causal ? 1 : 0).set("has_mask", s.mask.empty() ? 0 : 1);
  call.attrs.set("nan_guard", s.nan_guard ? 1 : 0).set("packed", s.packed ? 1 : 0);
  call.attrs.set("windows", s.windows ? 1 : 0);
  if (s.causal) call.attrs.set("causal_number", s.causal_number);
  if (s.causal) call.attrs.set("causal_adds", s.causal_adds ? 1 : 0).set("causal_first", s.causal_first ? 1 : 0);
  const std::int64_t kv_batch = s.kv_batch ? s.kv_batch : s.batch;
  const char* const names[] = {"q_layout", "k_layout", "v_layout", "y_layout"};
  for (std::size_t i = 0; i < 4; ++i) call.attrs.set(names[i], s.layouts[i] == 's' ? "BSH" : "BNSH");
  if (s.packed) {
    call.inputs = {all.operand("qkv", {s.batch, s.queries, (s.heads + 2 * s.kv_heads) * s.head_dim})};
  } else {
    call.inputs = {all.operand("q", operand_dims(s.layouts[0], s.batch, s.queries, s.heads, s.head_dim)),
                   all.operand("k", operand_dims(s.layouts[1], kv_batch, s.keys, s.kv_heads, s.head_dim)),
                   all.operand("v", operand_dims(s.layouts[2], kv_batch, s.keys, s.kv_heads, s.value_dim))};
  }
  add_masks(all, s, call);
  if (s.grid) {
    call.attrs.set("has_grid", 1);
    call.inputs.push_back(all.operand("grid_rows", {s.batch, s.heads, s.queries, s.grid}));
    call.inputs.push_back(all.operand("grid_columns", {s.batch, s.heads, s.queries, s.keys / s.grid}));
  }
  if (all.calls.size() % 2 != 0)  // bodies that are told the sizes, and bodies that compute them
    for (const auto& [name, value] : attention_sizes(call)) call.attrs.set(name, value);
  // A mask may have more batches, and more rows than one query.
  const bool deep = s.mask.size() == 4 && !s.windows;
  const std::int64_t batch = std::max({s.batch, kv_batch, deep && s.batch != 0 ? s.mask[0] : 0});
  const std::int64_t rows = s.queries == 1 && !s.mask.empty() ? s.mask[s.mask.size() - 2] : s.queries;
  call.outputs = {all.operand("y", operand_dims(s.layouts[3], batch, rows, s.heads, s.value_dim))};
  all.calls.push_back(std::move(call));
}

}  // namespace

std::vector<Call> attention_samples() {
  static const Samples made = [] {
    Samples all;
    for (const Sample& sample : self_attention()) add(all, sample);
    for (const Sample& sample : separate()) add(all, sample);
    for (const Sample& sample : hidden()) add(all, sample);
    for (const Sample& sample : repeated()) add(all, sample);
    for (const Sample& sample : placed()) add(all, sample);
    return all;
  }();
  return made.calls;
}

}  // namespace modelflow::ops
