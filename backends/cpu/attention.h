#pragma once

#include <cstddef>
#include <cstdint>

namespace modelflow::cpu {

/// What is added to scores: numbers, or one of two numbers by a flag; neither: nothing.
struct AttentionMask {
  const float* numbers = nullptr;
  const std::uint8_t* flags = nullptr;
  std::size_t row = 0, column = 0;  ///< steps, 0 where the mask is repeated; column is 0 or 1
  float on = 0, off = 0;            ///< what flags mean

  explicit operator bool() const { return numbers || flags; }
  float operator[](std::size_t key) const { return numbers ? numbers[key * column] : flags[key * column] ? on : off; }
  /// The mask from this row and key on.
  AttentionMask from(std::size_t r, std::size_t key) const {
    AttentionMask rest = *this;
    if (numbers) rest.numbers += r * row + key * column;
    if (flags) rest.flags += r * row + key * column;
    return rest;
  }
};

/// One query head against the keys and values of its head: y = softmax(scale * q k^T + mask) v. Matrices are row-major;
/// `*_row` are floats from one row to the next.
struct AttentionHead {
  std::size_t rows = 0, keys = 0, depth = 0, width = 0;  ///< q [rows, depth], k [keys, depth], v [keys, width]
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  float* y = nullptr;
  std::size_t q_row = 0, k_row = 0, v_row = 0, y_row = 0;
  AttentionMask mask;
  float scale = 1;
  float cap = 0;        ///< c: scores become c * tanh(scores / c) before the mask; 0: they stay
  bool causal = false;  ///< row i sees the keys up to i
  bool guard = false;   ///< rows that are NaN become 0

  /// How many keys a row sees: the first ones.
  std::size_t seen(std::size_t row) const { return causal && row + 1 < keys ? row + 1 : keys; }
};

/// A row of queries against some of the keys: the largest score, the sum of exp(score - max), and that sum weighted by
/// the values.
struct AttentionRow {
  const float* q = nullptr;
  AttentionMask mask;  ///< from key 0 on
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
  std::size_t most_keys = SIZE_MAX;
  /// A value that is infinite or NaN counts although its weight is 0, 0 times it being NaN: that of a key that a row
  /// does not see, and of any key in a row that the guard makes 0.
  bool unseen_values = false, guarded_values = false;
};

inline constexpr std::size_t kAttentionRows = 4, kAttentionStream = 512;

/// Each only where host_isa() has it.
extern const AttentionCode attention_code_any, attention_code_avx2, attention_code_avx512;
/// Those of QAttention. 2^31 / (255 * 127) keys are what sums of probabilities by values can take.
extern const AttentionCode qattention_code_any, qattention_code_vnni;
inline constexpr std::size_t kMostStepKeys = 65536;
/// Those of AttentionBf16.
extern const AttentionCode attention_bf16_code_any, attention_bf16_code_amx;

}  // namespace modelflow::cpu
