// oneDNN's engine and streams, activations as post-ops, and weights in the layout that a primitive wants.
#include "backends/cpu/onednn/onednn.h"

#include <fmt/ranges.h>

#include <limits>

#include "backends/cpu/frame/weight_cache.h"
#include "backends/parallel.h"

namespace modelflow::cpu {

const dnnl::engine& onednn_engine() {
  static const dnnl::engine* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

OnednnStream::OnednnStream(Invocation& call)
    : call_(call), stream_(dnnl::threadpool_interop::make_stream(onednn_engine(), this)) {}

void OnednnStream::execute(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
                           std::unordered_map<int, dnnl::memory> args) {
  if (scratchpad.get_size() > 0) {
    args[DNNL_ARG_SCRATCHPAD] = dnnl::memory(scratchpad, onednn_engine(), call_.scratch(scratchpad.get_size()));
  }
  primitive.execute(stream_, args);
}

int OnednnStream::get_num_threads() const { return static_cast<int>(call_.threads()); }

bool OnednnStream::get_in_parallel() const { return ParallelRegion::active(); }

void OnednnStream::parallel_for(int n, const std::function<void(int, int)>& body) {
  call_.parallel(static_cast<std::size_t>(n), [&](std::size_t i) { body(static_cast<int>(i), n); });
}

namespace {

void append_plain(dnnl::post_ops& ops, const ActivationSpec& a) {
  using dnnl::algorithm;
  switch (a.kind) {
    case Activation::none:
      return;
    case Activation::relu:
      return ops.append_eltwise(algorithm::eltwise_relu, 0, 0);
    case Activation::squared_relu:
      ops.append_eltwise(algorithm::eltwise_relu, 0, 0);
      return ops.append_eltwise(algorithm::eltwise_square, 0, 0);
    case Activation::clip:
      return ops.append_eltwise(algorithm::eltwise_clip, a.alpha, a.beta);
    case Activation::leaky_relu:
    case Activation::prelu:
      return ops.append_eltwise(algorithm::eltwise_relu, a.alpha, 0);
    case Activation::bounded_leaky_relu:
      ops.append_eltwise(algorithm::eltwise_relu, a.alpha, 0);
      return ops.append_eltwise(algorithm::eltwise_clip, a.beta, std::numeric_limits<float>::infinity());
    case Activation::sigmoid:
      return ops.append_eltwise(algorithm::eltwise_logistic, 0, 0);
    case Activation::silu:
      return ops.append_eltwise(algorithm::eltwise_swish, 1, 0);
    case Activation::hard_swish:
      return ops.append_eltwise(algorithm::eltwise_hardswish, a.alpha, a.beta);
    case Activation::hard_sigmoid:
      return ops.append_eltwise(algorithm::eltwise_hardsigmoid, a.alpha, a.beta);
    case Activation::gelu:
      return ops.append_eltwise(algorithm::eltwise_gelu_erf, 0, 0);
    case Activation::gelu_tanh:
      return ops.append_eltwise(algorithm::eltwise_gelu_tanh, 0, 0);
    case Activation::quick_gelu:
      return ops.append_eltwise(algorithm::eltwise_swish, a.alpha, 0);
    case Activation::mish:
      return ops.append_eltwise(algorithm::eltwise_mish, 0, 0);
    case Activation::tanh:
      return ops.append_eltwise(algorithm::eltwise_tanh, 0, 0);
    case Activation::elu:
      return ops.append_eltwise(algorithm::eltwise_elu, a.alpha, 0);
    case Activation::softplus:
      return ops.append_eltwise(algorithm::eltwise_soft_relu, 1, 0);
  }
}

/// All that bytes in this layout depend on. Not oneDNN's blob: it has bytes that nobody has written, and two sessions
/// would hold the same weights twice. Compensation for 8 bits, which only the blob tells, is in no reorder that is
/// built.
std::string layout_key(const dnnl::memory::desc& desc) {
  std::string key = fmt::format("onednn {} {} {} {}", static_cast<int>(desc.get_data_type()),
                                static_cast<int>(desc.get_format_kind()), desc.get_submemory_offset(), desc.get_size());
  for (const dnnl::memory::dims& part : {desc.get_dims(), desc.get_padded_dims(), desc.get_padded_offsets(),
                                         desc.get_strides(), desc.get_inner_blks(), desc.get_inner_idxs()})
    key += fmt::format(" [{}]", fmt::join(part, ","));
  return key;
}

}  // namespace

int residual_position(bool before, const ActivationSpec& activation) {
  const bool two = activation.kind == Activation::bounded_leaky_relu || activation.kind == Activation::squared_relu;
  return before ? 0 : (activation.kind != Activation::none) + two + activation.affine();
}

void append_activation(dnnl::post_ops& ops, const ActivationSpec& a) {
  append_plain(ops, a);
  if (a.affine()) ops.append_eltwise(dnnl::algorithm::eltwise_linear, a.scale, a.shift);
}

std::shared_ptr<const std::byte> onednn_packed(const Tensor& weights, const dnnl::memory::desc& plain,
                                               const dnnl::memory::desc& wanted) {
  return packed_weights(weights, layout_key(wanted) + " from " + layout_key(plain), wanted.get_size(),
                        [&](std::byte* out) {
                          // Serial: packing happens once, and the runtime's threads are busy with the call that came
                          // first.
                          dnnl::stream stream(onednn_engine());
                          dnnl::memory from(plain, onednn_engine(), const_cast<std::byte*>(weights.data()));
                          dnnl::memory to(wanted, onednn_engine(), out);
                          dnnl::reorder(from, to).execute(stream, from, to);
                          stream.wait();
                        });
}

void plan_for_threads(std::size_t threads) { dnnl_threadpool_interop_set_max_concurrency(static_cast<int>(threads)); }

void onednn_guard(const char* what, const std::function<void()>& body) {
  try {
    body();
  } catch (const dnnl::error& error) {
    throw Error(ErrorKind::unsupported, std::string(what) + ": " + error.message);
  }
}

}  // namespace modelflow::cpu
