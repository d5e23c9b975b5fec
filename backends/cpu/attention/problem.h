// A call of Attention in numbers: where each head lies, which calls the kernels take, and its work.
#pragma once

#include "backends/cpu/attention/attention.h"
#include "backends/ops/attention_attrs.h"
#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// An Attention call in numbers: where every head lies.
struct AttentionProblem {
  /// Checks types and shapes; throws Error(invalid_input).
  AttentionProblem(const ops::AttentionAttrs& attrs, const Invocation& call);

  /// Query head `n` of batch `b`.
  AttentionHead head(std::size_t b, std::size_t n, float* y) const;

  Dims y;
  std::size_t batch = 0, heads = 0, kv_heads = 0, rows = 0, keys = 0, depth = 0, width = 0;
  std::size_t near = 256 << 10;                           ///< of a head, see there
  std::size_t group() const { return heads / kv_heads; }  ///< query heads that share keys and values
  /// Floating point operations of one query head.
  double head_flops() const;

 private:
  struct Place {
    const float* data = nullptr;
    std::size_t batch = 0, head = 0, row = 0, column = 1;  ///< floats from one to the next
  };
  void read_packed(const Invocation& call);
  void read_separate(const Invocation& call);
  Place read(const View& view, ops::AttentionAttrs::Layout layout, const char* what, std::size_t count,
             std::size_t& sequence, std::size_t& size);
  void join(std::size_t batches, const char* what);
  /// How far apart the masks of batches and of heads lie, 0 where they are repeated.
  struct MaskStrides {
    std::size_t batch = 0, head = 0;
    std::size_t batches = 1;  ///< then the mask begins anew
  };
  void read_masks(const Invocation& call);
  void read_grid(const Invocation& call);
  MaskStrides read_strides(const View& view, AttentionMask::Strides& inner);

  const ops::AttentionAttrs& attrs_;
  Place q_, k_, v_, y_;
  AttentionMask mask_;  ///< of the first head
  AttentionGrid grid_;  ///< likewise
  MaskStrides numbers_, flags_;
  bool repeats_key_ = false;  ///< as many values as a mask has columns, of one key
};

/// Shares the heads of a call out to `code`.
std::unique_ptr<Implementation> attention_tasks(const Call& call, const Target& target, const AttentionCode& code);

/// What all kernels of Attention can run at all.
Verdict accepts_attention(const Call& call, const Target&);
/// The same without a grid.
Verdict accepts_low_attention(const Call& call, const Target& target);
/// Floating point operations, where one does so many products of the two matrix products, of sequences of 128 where
/// their length is not known.
double attention_flops(const Call& call, double products = 1);
/// Bytes moved, unknown dims as 1.
double attention_bytes(const Call& call);

}  // namespace modelflow::cpu
