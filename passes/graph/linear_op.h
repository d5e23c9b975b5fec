// Standard convolutions and products as one kind of linear map.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "modelflow/graph.h"
#include "modelflow/pattern.h"

namespace modelflow::passes {

/// A Conv, ConvTranspose, Gemm or MatMul with constant float weights, seen as
/// y[out] = sum over in of w[in, out] * x[in] + bias[out], whatever the memory order and grouping of w.
///
///     std::optional<LinearOp> op = LinearOp::of(node, &why);
///     op->scale_outputs(k);  op->shift_outputs(s);   // y * k + s
///     Value* y = op->build(build, x);                // the same node with new constants
///
/// Scales and shifts hold one number per channel, or one for all.
class LinearOp {
 public:
  /// Nullopt when the node is none of these or its weights or bias are not constant; `why` then says it.
  static std::optional<LinearOp> of(const Node& node, std::string* why = nullptr);

  std::size_t channels_in() const { return channels_in_; }
  std::size_t channels_out() const { return channels_out_; }
  /// Numbers of constant `c` that is broadcast with x (or y) of this op; nullopt when it varies along another axis than
  /// the channels or would enlarge the tensor.
  std::optional<std::vector<double>> over_inputs(const Tensor& c) const { return per_channel(c, channels_in_); }
  std::optional<std::vector<double>> over_outputs(const Tensor& c) const { return per_channel(c, channels_out_); }
  /// Channels lie on axis 1 of a tensor of this rank: where BatchNormalization looks for them.
  bool channels_second() const { return !last_ || rank_ == 2; }
  /// No padded border: a shift of x is the same shift for every output.
  bool shift_safe() const;

  void scale_outputs(const std::vector<double>& k);
  void shift_outputs(const std::vector<double>& s);
  void scale_inputs(const std::vector<double>& k);
  void shift_inputs(const std::vector<double>& s);

  /// The op with its new weights on input `x`, for MatMul with an Add behind it when a bias appeared: what a rule gives
  /// back. A refusal where folding would lose something (passes/folded.h).
  std::vector<Value*> build(Build& build, Value* x) const;

 private:
  bool read_conv();
  bool read_gemm();
  bool read_matmul();
  bool read_bias(std::string* why);
  std::optional<std::vector<double>> per_channel(const Tensor& c, std::size_t channels) const;
  template <class F>
  void each_weight(F f);  // f(weight, in, out)

  const Node* node_ = nullptr;
  const Tensor* weight_ = nullptr;
  std::vector<double> weights_, bias_;  // weights_ stays empty until one of them changes
  // The weight is [a, b, spatial]: a = out and b = in / group, or (a_is_out_ == false) a = in and b = out / group.
  std::size_t a_ = 0, b_ = 0, spatial_ = 1, group_ = 1;
  bool a_is_out_ = true;
  std::size_t channels_in_ = 0, channels_out_ = 0;
  std::size_t rank_ = 0;  // of x and y; 0: unknown
  bool last_ = false;     // channels on the last axis, else on axis 1
  double alpha_ = 1;
  bool has_bias_ = false;
  bool lost_ = false;  // a scale is too large or too small, or a shift cancels the bias
};

}  // namespace modelflow::passes
