// Heads of attention in numbers, and the table of code that each instruction set has for them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/loops/attention_mask.h"

namespace modelflow::cpu {

/// Keys behind their query: `number` stands in place of their scores, or is added to them.
struct AttentionCausal {
  bool on = false;
  float number = 0;
  bool adds = false, first = false;  ///< the mask acts on what comes out, else on what comes in
};

/// Keys that lie in a grid: a query has a number for each row of it and one for each column, which are added.
struct AttentionGrid {
  const float *rows = nullptr, *columns = nullptr;
  std::size_t high = 0, wide = 0;

  explicit operator bool() const { return rows; }
};

/// One query head against the keys and values of its head: y = softmax(scale * q k^T + mask) v. Matrices are row-major;
/// `*_row` are floats from one row to the next.
struct AttentionHead {
  std::size_t rows = 0, keys = 0, depth = 0, width = 0;  ///< q [rows, depth], k [keys, depth], v [keys, width]
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  float* y = nullptr;
  std::size_t q_row = 0, k_row = 0, v_row = 0, y_row = 0;
  AttentionMask mask;
  AttentionGrid grid;  ///< acts before the mask
  float scale = 1;
  float cap = 0;       ///< c: scores become c * tanh(scores / c) before the mask; 0: they stay
  bool guard = false;  ///< rows that are NaN become 0
  AttentionCausal causal;
  /// Causal: all keys are computed and the hidden ones made low, else the hidden ones are left out. That is the same
  /// where they have no weight: see causal.h.
  bool whole = false;
  float largest_key = 0, largest_value = 0;  ///< in size; NaN or inf where one is
  std::size_t near = 256 << 10;              ///< bytes of a head that fit in L2 beside another

  /// How many keys a row computes: the first ones.
  std::size_t seen(std::size_t row) const { return causal.on && !whole && row + 1 < keys ? row + 1 : keys; }
};

/// A row of queries against some of the keys: the largest score, the sum of exp(score - max), and that sum weighted by
/// the values.
struct AttentionRow {
  const float* q = nullptr;
  AttentionMask mask;     ///< from key 0 on
  AttentionGrid grid;     ///< of its head
  std::size_t index = 0;  ///< which row it is
  float* values = nullptr;
  float max = 0, sum = 0;
};

/// The arithmetic of attention for one instruction set. All of it runs on the calling thread.
struct AttentionCode {
  /// Rows that one call of `rows` should get.
  std::size_t row_block;
  /// Keys and values in the order in which `rows` reads them: floats of a head, and one of `parts` shares of the work.
  std::size_t (*packed_floats)(const AttentionHead& head);
  void (*pack)(const AttentionHead& head, std::size_t part, std::size_t parts, float* packed);
  /// Floats of scratch memory that `rows` needs.
  std::size_t (*scratch_floats)(const AttentionHead& head);
  /// Rows [begin, end) of y. `next` (may be null) is the head whose turn it is after this one: its operands are fetched
  /// into L2 meanwhile.
  void (*rows)(const AttentionHead& head, const AttentionHead* next, const float* packed, std::size_t begin,
               std::size_t end, float* scratch);
  /// Rows against the keys [begin, end) of a head, at most kAttentionRows and kAttentionStream of them, read where they
  /// lie: for few rows and many keys. Null: those go through `rows` as well.
  void (*stream)(const AttentionHead& head, AttentionRow* rows, std::size_t count, std::size_t begin, std::size_t end);
  /// The largest of rows of numbers in size, `step` floats apart; NaN where one is.
  float (*largest)(const float* x, std::size_t rows, std::size_t n, std::size_t step);
  std::size_t most_keys = SIZE_MAX;
  /// A value that is infinite or NaN counts in a row that the guard makes 0, 0 times it being NaN.
  bool guarded_values = false;
};

inline constexpr std::size_t kAttentionRows = 4, kAttentionStream = 512;

/// Each only where host_isas() has it.
extern const AttentionCode attention_code_any, attention_code_avx2, attention_code_avx512;
/// Those of QAttention. 2^31 / (255 * 127) keys are what sums of probabilities by values can take.
extern const AttentionCode qattention_code_any, qattention_code_avx2, qattention_code_vnni;
inline constexpr std::size_t kMostStepKeys = 65536;
/// Those of AttentionBf16.
extern const AttentionCode attention_bf16_code_any, attention_bf16_code_avx2, attention_bf16_code_amx;

}  // namespace modelflow::cpu
