// Attention cut into tasks. Keys and values of a head are packed once and read by every block of rows: when there are
// heads enough, by the task that has the whole head, else by all tasks after a loop that packs. Few rows (one token of
// a text generator) read keys and values where they lie, and each task has a part of them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/attention/problem.h"
#include "backends/cpu/frame/near.h"
#include "backends/cpu/frame/share.h"

namespace modelflow::cpu {
namespace {

std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

/// Rows per head up to which reading in place is faster than packing.
constexpr std::size_t kFewRows = 8;

float* scratch(Invocation& call, std::size_t floats) {
  return reinterpret_cast<float*>(call.scratch(floats * sizeof(float) + 64));
}

/// What a row has gathered so far.
struct Gathered {
  float max = -std::numeric_limits<float>::infinity(), sum = 0;

  void add(const AttentionRow& part, std::size_t width, float* values) {
    const float larger = std::max(max, part.max);
    const bool none = larger == -std::numeric_limits<float>::infinity();
    const float mine = none ? 1 : std::exp(max - larger), other = none ? 1 : std::exp(part.max - larger);
    for (std::size_t i = 0; i < width; ++i) values[i] = values[i] * mine + part.values[i] * other;
    sum = sum * mine + part.sum * other;
    max = larger;
  }
};

class FusedAttention : public Implementation {
 public:
  FusedAttention(const Call& call, const Target& target, const AttentionCode& code)
      : attrs_(call), code_(code), near_(near_bytes(target, 256 << 10)) {}

  void run(Invocation& call) const override {
    AttentionProblem p(attrs_, call);
    p.near = near_;
    if (p.keys > code_.most_keys)
      throw Error(ErrorKind::limit, "QAttention: " + std::to_string(p.keys) + " keys, sums in 32 bits hold " +
                                        std::to_string(code_.most_keys) + ": leave attention in float32");
    auto* y = static_cast<float*>(call.output(0, p.y));
    const auto count = static_cast<std::size_t>(element_count(p.y));
    if (count == 0) return;
    if (p.keys == 0) return static_cast<void>(std::fill_n(y, count, 0.0f));
    compute(p, y, call);
    if (attrs_.nan_guard && code_.guarded_values) spoil(p, y, call);
  }

 private:
  void compute(const AttentionProblem& p, float* y, Invocation& call) const {
    if (code_.stream && p.rows * p.group() <= kFewRows) return stream(p, y, call);
    const std::size_t units = p.batch * p.kv_heads, threads = call.threads();
    const bool enough = threads == 1 || units % threads == 0 || units >= 4 * threads;
    const bool small = p.head_flops() * static_cast<double>(p.heads * p.batch) < 4e5;
    const bool whole = p.rows * p.group() <= code_.row_block;
    enough || small || whole ? by_head(p, y, small, call) : by_rows(p, y, call);
  }

  /// Values that were not multiplied, of rows that the guard made 0: what is not finite makes NaN of its columns.
  void spoil(const AttentionProblem& p, float* y, Invocation& call) const {
    const std::size_t heads = p.batch * p.heads;
    share(call, heads, std::min(heads, call.threads()), [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i) {
        const AttentionHead head = p.head(i / p.heads, i % p.heads, y);
        if (may_be_spoiled(head)) spoil(head);
      }
    });
  }

  /// False where the last row says that nothing is: it has multiplied all values.
  static bool may_be_spoiled(const AttentionHead& h) {
    const float* last = h.y + (h.rows - 1) * h.y_row;
    if (h.seen(h.rows - 1) == h.keys && !all_zero(last, h.width) && all_finite(last, h.width)) return false;
    for (std::size_t j = 0; j < h.keys; ++j)
      if (!all_finite(h.v + j * h.v_row, h.width)) return true;
    return false;
  }

  static void spoil(const AttentionHead& h) {
    for (std::size_t row = 0; row < h.rows; ++row) {
      float* out = h.y + row * h.y_row;
      if (!all_zero(out, h.width)) continue;
      for (std::size_t j = 0; j < h.keys; ++j)
        for (std::size_t i = 0; i < h.width; ++i) out[i] += 0 * h.v[j * h.v_row + i];
    }
  }

  static bool all_zero(const float* x, std::size_t n) {
    return std::all_of(x, x + n, [](float v) { return v == 0; });
  }
  static bool all_finite(const float* x, std::size_t n) {
    return std::all_of(x, x + n, [](float v) { return std::isfinite(v); });
  }

  /// What leaving out hidden keys depends on, of a head's keys and values.
  struct Sizes {
    float key = 0, value = 0;
    void set(AttentionHead& head) const { head.largest_key = key, head.largest_value = value; }
  };
  Sizes sizes(const AttentionHead& h) const {
    if (!attrs_.causal) return {};
    return {attrs_.causal_adds ? code_.largest(h.k, h.keys, h.depth, h.k_row) : 0,
            code_.largest(h.v, h.keys, h.width, h.v_row)};
  }

  void by_head(const AttentionProblem& p, float* y, bool small, Invocation& call) const {
    const AttentionHead first = p.head(0, 0, y);
    const std::size_t packed_floats = round_up(code_.packed_floats(first), 16),
                      floats = packed_floats + round_up(code_.scratch_floats(first), 16);
    const std::size_t units = p.batch * p.kv_heads, tasks = small ? 1 : std::min(units, call.threads() * 4);
    float* memory = scratch(call, tasks * floats);
    share(call, units, tasks, [&](std::size_t begin, std::size_t end, std::size_t task) {
      float *packed = memory + task * floats, *rest = packed + packed_floats;
      for (std::size_t unit = begin; unit < end; ++unit) {
        const std::size_t b = unit / p.kv_heads, n = unit % p.kv_heads * p.group();
        code_.pack(p.head(b, n, y), 0, 1, packed);
        const Sizes largest = sizes(p.head(b, n, y));
        for (std::size_t i = n; i < n + p.group(); ++i) {
          // The head behind the last one of this task as well: most likely this thread gets it.
          const std::size_t after = b * p.heads + i + 1;
          const AttentionHead next = p.head(after / p.heads % p.batch, after % p.heads, y);
          AttentionHead head = p.head(b, i, y);
          largest.set(head);
          code_.rows(head, &next, packed, 0, p.rows, rest);
        }
      }
    });
  }

  void by_rows(const AttentionProblem& p, float* y, Invocation& call) const {
    const AttentionHead first = p.head(0, 0, y);
    const std::size_t packed_floats = round_up(code_.packed_floats(first), 16),
                      floats = round_up(code_.scratch_floats(first), 16), units = p.batch * p.kv_heads;
    const std::size_t parts = round_up(3 * call.threads(), units) / units;
    float* packed = scratch(call, units * packed_floats);
    std::vector<Sizes> largest(units);
    call.parallel(units * parts, [&](std::size_t i) {
      const std::size_t unit = i / parts;
      const AttentionHead head = p.head(unit / p.kv_heads, unit % p.kv_heads * p.group(), y);
      code_.pack(head, i % parts, parts, packed + unit * packed_floats);
      if (i % parts == 0) largest[unit] = sizes(head);
    });
    const std::size_t blocks = round_up(p.rows, code_.row_block) / code_.row_block, items = units * p.group() * blocks;
    const std::size_t tasks = std::min(items, call.threads() * 6);
    float* memory = scratch(call, tasks * floats);
    share(call, items, tasks, [&](std::size_t begin, std::size_t end, std::size_t task) {
      for (std::size_t item = begin; item < end; ++item) {
        const std::size_t n = item / blocks, row = item % blocks * code_.row_block, unit = n / p.group();
        AttentionHead head = p.head(n / p.heads, n % p.heads, y);
        largest[unit].set(head);
        code_.rows(head, nullptr, packed + unit * packed_floats, row, std::min(row + code_.row_block, p.rows),
                   memory + task * floats);
      }
    });
  }

  /// All rows of a head, or a share of its keys: what they gather, one after the other.
  void gather(const AttentionProblem& p, std::size_t unit, std::size_t begin, std::size_t end, float* y,
              Gathered* gathered, float* values, float* part) const {
    const std::size_t b = unit / p.kv_heads, n = unit % p.kv_heads * p.group();
    std::fill_n(values, p.group() * p.rows * p.width, 0.0f);
    for (std::size_t i = 0; i < p.group() * p.rows; ++i) gathered[i] = {};
    const std::size_t rows = p.group() * p.rows;
    for (std::size_t at = begin; at < end; at += kAttentionStream) {
      for (std::size_t first = 0; first < rows; first += kAttentionRows) {
        const std::size_t count = std::min(kAttentionRows, rows - first), last = std::min(at + kAttentionStream, end);
        AttentionRow found[kAttentionRows];
        AttentionHead head;
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t row = (first + i) % p.rows;
          head = p.head(b, n + (first + i) / p.rows, y);
          found[i] = {head.q + row * head.q_row, head.mask.from(row, 0), head.grid, row, part + i * p.width};
        }
        head.whole = attrs_.causal;  // of few rows none leaves much out
        code_.stream(head, found, count, at, last);
        for (std::size_t i = 0; i < count; ++i) {
          gathered[first + i].add(found[i], p.width, values + (first + i) * p.width);
        }
      }
    }
  }

  void stream(const AttentionProblem& p, float* y, Invocation& call) const {
    const std::size_t units = p.batch * p.kv_heads, rows = p.group() * p.rows, threads = call.threads();
    const bool small = units * p.keys * (p.depth + p.width) < 32768;
    std::size_t splits = 1;
    if (!small && units < 2 * threads && units != threads)
      splits = std::clamp<std::size_t>(p.keys / 64, 1, 3 * threads / units + 1);
    const std::size_t tasks = small ? 1 : std::min(units * splits, threads * 4);
    std::vector<Gathered> gathered(units * splits * rows);
    const std::size_t floats = rows * p.width;
    float* values = scratch(call, (units * splits + tasks) * floats);
    share(call, units * splits, tasks, [&](std::size_t begin, std::size_t end, std::size_t task) {
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t split = i % splits;
        gather(p, i / splits, p.keys * split / splits, p.keys * (split + 1) / splits, y, &gathered[i * rows],
               values + i * floats, values + (units * splits + task) * floats);
      }
    });
    for (std::size_t i = 0; i < units * rows; ++i) {
      const std::size_t unit = i / rows, row = i % rows;
      const std::size_t at = unit * splits * rows + row;
      float* sums = values + at * p.width;
      for (std::size_t split = 1; split < splits; ++split) {
        const std::size_t other = at + split * rows;
        gathered[at].add({nullptr, {}, {}, 0, values + other * p.width, gathered[other].max, gathered[other].sum},
                         p.width, sums);
      }
      const std::size_t n = unit % p.kv_heads * p.group() + row / p.rows;
      float* to = p.head(unit / p.kv_heads, n, y).y;
      finish(gathered[at].sum, sums, p.width, to + row % p.rows * p.head(0, 0, y).y_row);
    }
  }

  void finish(float sum, const float* values, std::size_t width, float* y) const {
    if (attrs_.nan_guard && !(sum > 0)) return static_cast<void>(std::fill_n(y, width, 0.0f));
    for (std::size_t i = 0; i < width; ++i) y[i] = values[i] / sum;
  }

  ops::AttentionAttrs attrs_;
  const AttentionCode& code_;
  std::size_t near_;
};

}  // namespace

std::unique_ptr<Implementation> attention_tasks(const Call& call, const Target& target, const AttentionCode& code) {
  return std::make_unique<FusedAttention>(call, target, code);
}

}  // namespace modelflow::cpu
