// Residual and activation of a matrix product as oneDNN's post-ops, in the order that the op gives them.
#include "backends/cpu/onednn/product.h"

namespace modelflow::cpu {

dnnl::primitive_attr product_attr(ops::MatMulAttrs::Residual residual, const ActivationSpec& activation,
                                  const dnnl::memory::desc& y) {
  using Use = ops::MatMulAttrs::Residual;
  dnnl::post_ops ops;
  if (residual == Use::before) ops.append_binary(dnnl::algorithm::binary_add, y);
  append_activation(ops, activation);
  if (residual == Use::after) ops.append_binary(dnnl::algorithm::binary_add, y);
  if (residual == Use::times) ops.append_binary(dnnl::algorithm::binary_mul, y);
  dnnl::primitive_attr attr;
  attr.set_post_ops(ops);
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

}  // namespace modelflow::cpu
