// The weights and bias of standard convolutions and products, scaled, shifted and written back.
#include "passes/graph/linear_op.h"

#include <algorithm>

#include "passes/graph/facts.h"
#include "passes/graph/folded.h"

namespace modelflow::passes {

namespace {

double at(const std::vector<double>& values, std::size_t i) { return values.size() == 1 ? values[0] : values[i]; }

}  // namespace

std::optional<LinearOp> LinearOp::of(const Node& node, std::string* why) {
  const auto refuse = [&](std::string_view reason) {
    if (why) *why = reason;
    return std::nullopt;
  };
  LinearOp op;
  op.node_ = &node;
  if (!node.domain().empty() || !node.input(0) || !node.input(1)) return refuse("not a linear op");
  op.weight_ = node.input(1)->constant();
  if (!op.weight_) return refuse("the weights are not constant");
  if (op.weight_->elements() == 0) return refuse("the weights are none");
  if (!foldable_float(op.weight_->dtype())) return refuse("the weights are neither float32 nor float64");
  const bool known = node.op() == "Conv" || node.op() == "ConvTranspose" ? op.read_conv()
                     : node.op() == "Gemm"                               ? op.read_gemm()
                     : node.op() == "MatMul"                             ? op.read_matmul()
                                                                         : false;
  if (!known) return refuse("the weights do not have the usual shape");
  if (!op.read_bias(why)) return std::nullopt;
  return op;
}

bool LinearOp::read_conv() {
  const Dims& dims = weight_->dims();
  group_ = static_cast<std::size_t>(node_->attrs.integer("group", 1));
  if (dims.size() < 3 || group_ == 0) return false;
  a_ = static_cast<std::size_t>(dims[0]);
  b_ = static_cast<std::size_t>(dims[1]);
  for (std::size_t i = 2; i < dims.size(); ++i) spatial_ *= static_cast<std::size_t>(dims[i]);
  if (a_ % group_ != 0) return false;
  a_is_out_ = node_->op() == "Conv";
  channels_in_ = a_is_out_ ? b_ * group_ : a_;
  channels_out_ = a_is_out_ ? a_ : b_ * group_;
  rank_ = dims.size();
  return true;
}

bool LinearOp::read_gemm() {
  const Dims& dims = weight_->dims();
  if (dims.size() != 2 || node_->attrs.integer("transA") != 0) return false;
  a_ = static_cast<std::size_t>(dims[0]);
  b_ = static_cast<std::size_t>(dims[1]);
  a_is_out_ = node_->attrs.integer("transB") != 0;
  channels_in_ = a_is_out_ ? b_ : a_;
  channels_out_ = a_is_out_ ? a_ : b_;
  alpha_ = node_->attrs.number("alpha", 1);
  rank_ = 2;
  last_ = true;
  return true;
}

bool LinearOp::read_matmul() {
  const Dims& dims = weight_->dims();
  if (dims.size() != 2) return false;
  a_ = static_cast<std::size_t>(dims[0]);
  b_ = static_cast<std::size_t>(dims[1]);
  a_is_out_ = false;
  channels_in_ = a_;
  channels_out_ = b_;
  rank_ = rank_of(node_->input(0)).value_or(0);
  last_ = true;
  return true;
}

bool LinearOp::read_bias(std::string* why) {
  bias_.assign(channels_out_, 0.0);
  Value* input = node_->op() == "MatMul" ? nullptr : node_->input(2);
  if (!input) return true;
  has_bias_ = true;
  std::optional<std::vector<double>> values;
  if (const Tensor* c = input->constant()) {
    if (last_)
      values = per_channel(*c, channels_out_);
    else if (c->dims() == Dims{static_cast<std::int64_t>(channels_out_)})
      values = c->to_doubles();
  }
  if (!values) {
    if (why) *why = "the bias is not one constant per output channel";
    return false;
  }
  const double beta = node_->op() == "Gemm" ? node_->attrs.number("beta", 1) : 1.0;
  for (std::size_t o = 0; o < channels_out_; ++o) bias_[o] = beta * at(*values, o);
  return true;
}

std::optional<std::vector<double>> LinearOp::per_channel(const Tensor& c, std::size_t channels) const {
  if (c.dtype() != weight_->dtype()) return std::nullopt;
  const Dims& dims = c.dims();
  if (rank_ == 0 ? dims.size() > 1 : dims.size() > rank_) return std::nullopt;
  const std::size_t from_end = last_ ? 1 : rank_ - 1;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != 1 && dims.size() - i != from_end) return std::nullopt;
  std::vector<double> values = c.to_doubles();
  if (values.size() != 1 && values.size() != channels) return std::nullopt;
  return values;
}

bool LinearOp::shift_safe() const {
  if (last_) return true;
  if (node_->op() == "ConvTranspose") return false;  // border outputs see fewer inputs
  const std::string auto_pad = node_->attrs.text("auto_pad", "NOTSET");
  if (auto_pad != "NOTSET" && auto_pad != "VALID") return false;
  const Ints pads = auto_pad == "VALID" ? Ints{} : node_->attrs.ints("pads");
  return std::all_of(pads.begin(), pads.end(), [](std::int64_t p) { return p == 0; });
}

template <class F>
void LinearOp::each_weight(F f) {
  if (weights_.empty()) {
    weights_ = weight_->to_doubles();
    lost_ = lost_ || !ordinary(weights_);  // what overflows by them would no longer
  }
  std::size_t i = 0;
  for (std::size_t a = 0; a < a_; ++a) {
    const std::size_t block = a / (a_ / group_) * b_;  // first channel of this group on the side of b
    for (std::size_t b = 0; b < b_; ++b)
      for (std::size_t s = 0; s < spatial_; ++s, ++i)
        f(weights_[i], a_is_out_ ? block + b : a, a_is_out_ ? a : block + b);
  }
}

void LinearOp::scale_outputs(const std::vector<double>& k) {
  lost_ = lost_ || !ordinary(k);
  each_weight([&](double& w, std::size_t, std::size_t out) { w *= at(k, out); });
  for (std::size_t o = 0; o < channels_out_; ++o) bias_[o] *= at(k, o);
}

void LinearOp::shift_outputs(const std::vector<double>& s) {
  lost_ = lost_ || cancels(bias_, s);
  has_bias_ = true;
  for (std::size_t o = 0; o < channels_out_; ++o) bias_[o] += at(s, o);
}

void LinearOp::scale_inputs(const std::vector<double>& k) {
  lost_ = lost_ || !ordinary(k);
  each_weight([&](double& w, std::size_t in, std::size_t) { w *= at(k, in); });
}

void LinearOp::shift_inputs(const std::vector<double>& s) {
  has_bias_ = true;
  each_weight([&](double& w, std::size_t in, std::size_t out) { bias_[out] += alpha_ * w * at(s, in); });
}

std::vector<Value*> LinearOp::build(Build& build, Value* x) const {
  const auto refuse = [&] {
    return build.refuse(no("folding would overflow or lose digits", node_->output()->name()));
  };
  if (lost_) return refuse();
  Value* w = node_->input(1);
  if (!weights_.empty()) {
    std::optional<Tensor> scaled = from_doubles(weight_->dtype(), weight_->dims(), weights_);
    if (!scaled) return refuse();
    w = &build.constant(std::move(*scaled), w->name());
  }
  Value* bias = nullptr;
  if (has_bias_) {
    std::optional<Tensor> shifted = from_doubles(weight_->dtype(), {static_cast<std::int64_t>(channels_out_)}, bias_);
    if (!shifted) return refuse();
    Value* old = node_->op() == "MatMul" ? nullptr : node_->input(2);
    bias = &build.constant(std::move(*shifted), old ? old->name() : w->name() + "_bias");
  }
  if (node_->op() == "MatMul") {
    Value& y = build.op("MatMul", {x, w});
    return {bias ? &build.op("Add", {&y, bias}) : &y};
  }
  std::vector<Value*> inputs = {x, w};
  if (bias) inputs.push_back(bias);
  Attrs attrs = node_->attrs;
  if (node_->op() == "Gemm") attrs.erase("beta");
  return {&build.op(node_->op(), std::move(inputs), std::move(attrs))};
}

}  // namespace modelflow::passes
