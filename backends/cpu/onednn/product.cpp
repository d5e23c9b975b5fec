// Residual and activation of a product or convolution as oneDNN's post-ops, in the order that the op gives them.
#include "backends/cpu/onednn/product.h"

namespace modelflow::cpu {

using ops::Residual;

dnnl::primitive_attr product_attr(Residual residual, const ActivationSpec& activation, const dnnl::memory::desc& y) {
  dnnl::post_ops ops;
  if (residual == Residual::before) ops.append_binary(dnnl::algorithm::binary_add, y);
  append_activation(ops, activation);
  if (residual == Residual::after) ops.append_binary(dnnl::algorithm::binary_add, y);
  if (residual == Residual::times) ops.append_binary(dnnl::algorithm::binary_mul, y);
  dnnl::primitive_attr attr;
  attr.set_post_ops(ops);
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

}  // namespace modelflow::cpu
