// The kernels of convolutions by oneDNN, in float32 and bfloat16.
#include <optional>

#include "backends/cpu/conv/by_definition.h"
#include "backends/cpu/conv/kernels.h"
#include "backends/cpu/conv/problem.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/gemm/low_precision_problem.h"
#include "backends/cpu/onednn/kernels.h"
#include "backends/cpu/onednn/moderate.h"
#include "backends/cpu/onednn/product.h"
#include "backends/ops/work.h"

namespace modelflow::cpu {
namespace {

using dnnl::memory;
using ops::ConvAttrs;
using ops::Residual;
using tag = memory::format_tag;

constexpr auto kFloat = memory::data_type::f32;

memory::data_type type_of(const Operand& operand) {
  return operand.dtype == DType::bf16 ? memory::data_type::bf16 : kFloat;
}

/// What runs for one set of extents. The convolution itself is channels last, oneDNN's fast order on every machine;
/// operands in channels-second order are reordered around it, which rounds x where bfloat16 is multiplied.
struct Prepared {
  dnnl::convolution_forward::primitive_desc desc;
  dnnl::convolution_forward primitive;
  std::optional<dnnl::reorder> x_reorder, added_reorder, y_reorder;
  memory::desc x_given, y_given, added_given;  // as the operands lie in memory
  memory::desc added_last;
  std::shared_ptr<const std::byte> packed;
};

tag order(std::size_t rank, bool last) {
  if (rank == 1) return last ? tag::nwc : tag::ncw;
  if (rank == 2) return last ? tag::nhwc : tag::nchw;
  return last ? tag::ndhwc : tag::ncdhw;
}

tag weights_order(std::size_t rank, bool grouped) {
  if (rank == 1) return grouped ? tag::goiw : tag::oiw;
  if (rank == 2) return grouped ? tag::goihw : tag::oihw;
  return grouped ? tag::goidhw : tag::oidhw;
}

// oneDNN names dims in channels-second order, whatever the strides.
memory::dims channels_second(const Dims& dims, bool last) {
  memory::dims out(dims.begin(), dims.end());
  if (last) {
    out.erase(out.end() - 1);
    out.insert(out.begin() + 1, dims.back());
  }
  return out;
}

class OnednnConv : public ModerateOnly {
 public:
  /// `type`: of the numbers that are multiplied, x and the weights.
  OnednnConv(const Call& call, const Target& target, memory::data_type type)
      : ModerateOnly(call, target),
        type_(type),
        x_type_(type_of(call.in(0))),
        added_type_(type_of(call.inputs.back())),
        y_type_(type_of(call.outputs.at(0))),
        conv_(call),
        activation_(activation_of(call)) {}

  void run(Invocation& call) const override {
    const Dims x = checked_dims(call);
    const Dims y = conv_.output_dims(x, weights_.dims()[0]);
    check_others(call, y);
    const bool empty = element_count(y) == 0;
    if (!empty && (one_column(y) || sees_padding_alone(x, y) || !takes(call))) return slowly(x, y, call);
    void* out = call.output(0, y);
    if (empty) return;
    onednn_guard("Conv", [&] {
      const std::shared_ptr<const Prepared> ready = prepare(x, y, call.threads());
      execute(*ready, call, out);
    });
    if (conv_.has_slopes) bend(y, static_cast<float*>(out), call);
  }

 private:
  [[noreturn]] static void mismatch(const std::string& what) { throw Error(ErrorKind::invalid_input, "Conv: " + what); }

  /// oneDNN 3.7.2 gets the rows behind the first of such results wrong, where the width has a stride (more than four
  /// rows; found by tools/fuzz in bfloat16, by generated cases in float32).
  bool one_column(const Dims& y) const {
    const std::size_t rank = conv_.rank(), width = conv_.y_last ? rank : rank + 1;
    return rank > 1 && y[width] == 1 && conv_.strides.back() > 1;
  }

  /// oneDNN 3.7.2 ends the process on windows that lie in padding as a whole, by some numbers of threads (24 to 40).
  bool sees_padding_alone(const Dims& x, const Dims& y) const {
    for (std::size_t i = 0; i < conv_.rank(); ++i) {
      const std::int64_t extent = x[i + (conv_.x_last ? 1 : 2)], results = y[i + (conv_.y_last ? 1 : 2)];
      const std::int64_t reach = (conv_.kernel[i] - 1) * conv_.dilations[i] + 1, before = conv_.pads[i];
      if (extent == 0 || reach <= before || (results - 1) * conv_.strides[i] - before >= extent) return true;
    }
    return false;
  }

  static Dims dims_of(Invocation& call, std::size_t index, memory::data_type type = kFloat) {
    const View view = call.input(index);
    if (view.dtype != (type == kFloat ? DType::f32 : DType::bf16))
      mismatch("input " + std::to_string(index) + " is " + std::string(name(view.dtype)));
    return {view.dims.begin(), view.dims.end()};
  }

  Dims checked_dims(Invocation& call) const {
    if (call.inputs() != conv_.inputs()) mismatch("got " + std::to_string(call.inputs()) + " inputs");
    Dims x = dims_of(call, 0, x_type_);
    const std::size_t rank = conv_.rank();
    if (x.size() != rank + 2) mismatch("x is " + Shape::of(x).str());
    const std::int64_t channels = x[conv_.x_last ? rank + 1 : 1], wanted = weights_.dims()[1] * conv_.group;
    if (channels != wanted)
      mismatch("x has " + std::to_string(channels) + " channels, weights ask for " + std::to_string(wanted));
    return x;
  }

  void check_others(Invocation& call, const Dims& y) const {
    if (conv_.has_bias && dims_of(call, 2) != Dims{weights_.dims()[0]})
      mismatch("bias is " + Shape::of(dims_of(call, 2)).str());
    if (conv_.has_slopes && dims_of(call, conv_.slopes_index()) != Dims{weights_.dims()[0]})
      mismatch("slopes are " + Shape::of(dims_of(call, conv_.slopes_index())).str());
    if (conv_.residual == Residual::none) return;
    const Dims added = dims_of(call, conv_.residual_index(), added_type_);
    if (added != y) mismatch("residual is " + Shape::of(added).str() + ", the result is " + Shape::of(y).str());
  }

  /// What oneDNN cannot take: in float32 by its definition, in bfloat16 as on CPUs that have no products of it.
  void slowly(const Dims& x, const Dims& y, Invocation& call) const {
    if (type_ != kFloat) return run_by(y_type_ == kFloat ? conv_bf16_widened : conv_to_bf16_widened, call);
    PlainConv plain{conv_, activation_, x, weights_.dims()};
    const auto floats = [&](std::size_t i) { return static_cast<const float*>(call.input(i).data); };
    plain.x = floats(0), plain.w = weights_.as<float>().data();
    if (conv_.has_bias) plain.bias = floats(2);
    if (conv_.residual != Residual::none) plain.residual = floats(conv_.residual_index());
    if (conv_.has_slopes) plain.slopes = floats(conv_.slopes_index());
    conv_by_definition(plain, static_cast<float*>(call.output(0, y)), call);
  }

  void execute(const Prepared& ready, Invocation& call, void* out) const {
    OnednnStream stream(call);
    const auto at = [](const memory::desc& desc, const void* data) {
      return memory(desc, onednn_engine(), const_cast<void*>(data));  // oneDNN does not write to its inputs
    };
    const auto room = [&](const memory::desc& desc) { return at(desc, call.scratch(desc.get_size() + 64)); };
    const auto given = [&](std::size_t index, const memory::desc& desc, const std::optional<dnnl::reorder>& reorder,
                           const memory::desc& wanted) {
      memory from = at(desc, call.input(index).data);
      if (!reorder) return from;
      memory to = room(wanted);
      reorder->execute(stream.stream(), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
      return to;
    };
    const memory y_given = at(ready.y_given, out);
    const memory y = ready.y_reorder ? room(ready.desc.dst_desc()) : y_given;
    const void* weights = ready.packed ? static_cast<const void*>(ready.packed.get()) : weights_.data();
    std::unordered_map<int, memory> args = {
        {DNNL_ARG_SRC, given(0, ready.x_given, ready.x_reorder, ready.desc.src_desc())},
        {DNNL_ARG_WEIGHTS, at(ready.desc.weights_desc(), weights)},
        {DNNL_ARG_DST, y},
        {DNNL_ARG_SCRATCHPAD, room(ready.desc.scratchpad_desc())}};
    if (conv_.has_bias) args.emplace(DNNL_ARG_BIAS, at(ready.desc.bias_desc(), call.input(2).data));
    if (in_primitive()) {
      args.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(residual_position(conv_.residual == Residual::before, activation_)) |
                       DNNL_ARG_SRC_1,
                   given(conv_.residual_index(), ready.added_given, ready.added_reorder, ready.added_last));
    }
    ready.primitive.execute(stream.stream(), args);
    if (ready.y_reorder) ready.y_reorder->execute(stream.stream(), {{DNNL_ARG_FROM, y}, {DNNL_ARG_TO, y_given}});
  }

  std::shared_ptr<const Prepared> prepare(const Dims& x, const Dims& y, std::size_t threads) const {
    return prepared_.get(x, [&] { return make(x, y, threads); });
  }

  std::shared_ptr<const Prepared> make(const Dims& x, const Dims& y, std::size_t threads) const {
    plan_for_threads(threads);
    const std::size_t rank = conv_.rank();
    const memory::dims x_dims = channels_second(x, conv_.x_last), y_dims = channels_second(y, conv_.y_last);
    const memory::desc x_last(x_dims, type_, order(rank, true)), y_last(y_dims, y_type_, order(rank, true)),
        added_last(y_dims, added_type_, order(rank, true));
    memory::dims w_dims(weights_.dims().begin(), weights_.dims().end());
    if (conv_.group > 1) {
      w_dims[0] /= conv_.group;
      w_dims.insert(w_dims.begin(), conv_.group);
    }
    const memory::desc plain(w_dims, type_, weights_order(rank, conv_.group > 1)), any(w_dims, type_, tag::any);
    const memory::desc bias = conv_.has_bias ? memory::desc({weights_.dims()[0]}, kFloat, tag::a) : memory::desc();
    memory::dims dilations, before, after;
    for (std::size_t i = 0; i < rank; ++i) {
      dilations.push_back(conv_.dilations[i] - 1);
      before.push_back(conv_.pads[i]);
      // The end padding that oneDNN's own arithmetic agrees with: what the last window reaches beyond x.
      const std::int64_t reach = (conv_.kernel[i] - 1) * conv_.dilations[i] + 1;
      after.push_back((y_dims[i + 2] - 1) * conv_.strides[i] + reach - x_dims[i + 2] - conv_.pads[i]);
    }
    const dnnl::convolution_forward::primitive_desc desc(onednn_engine(), dnnl::prop_kind::forward_inference,
                                                         dnnl::algorithm::convolution_direct, x_last, any, bias, y_last,
                                                         conv_.strides, dilations, before, after, post_ops(added_last));
    auto made =
        std::make_shared<Prepared>(Prepared{desc, dnnl::convolution_forward(desc), {}, {}, {}, {}, {}, {}, {}, {}});
    made->x_given = memory::desc(x_dims, x_type_, order(rank, conv_.x_last));
    made->y_given = memory::desc(y_dims, y_type_, order(rank, conv_.y_last));
    made->added_given = memory::desc(y_dims, added_type_, order(rank, conv_.y_last));
    made->added_last = added_last;
    const auto between = [](const memory::desc& from, const memory::desc& to) {
      return dnnl::reorder(dnnl::reorder::primitive_desc(onednn_engine(), from, onednn_engine(), to));
    };
    if (made->x_given != x_last) made->x_reorder = between(made->x_given, x_last);
    if (made->y_given != y_last) {
      made->y_reorder = between(y_last, made->y_given);
      made->added_reorder = between(made->added_given, added_last);
    }
    if (desc.weights_desc() != plain) made->packed = onednn_packed(weights_, plain, desc.weights_desc());
    return made;
  }

  /// The residual is a post-op.
  bool in_primitive() const {
    return conv_.residual == Residual::before || (conv_.residual != Residual::none && !conv_.has_slopes);
  }

  dnnl::primitive_attr post_ops(const memory::desc& residual) const {
    return product_attr(in_primitive() ? conv_.residual : Residual::none,
                        conv_.has_slopes ? ActivationSpec{} : activation_, residual);
  }

  /// PRelu with a slope for each channel, for which oneDNN's fast convolutions have no post-op, and what follows it.
  void bend(const Dims& dims, float* y, Invocation& call) const {
    const auto floats = [&](std::size_t i) { return static_cast<const float*>(call.input(i).data); };
    const float *slopes = floats(conv_.slopes_index()),
                *other = conv_.residual == Residual::none || in_primitive() ? nullptr : floats(conv_.residual_index());
    const auto channels = static_cast<std::size_t>(weights_.dims()[0]),
               all = static_cast<std::size_t>(element_count(dims));
    const std::size_t pixels = conv_.y_last ? 1 : all / (static_cast<std::size_t>(dims[0]) * channels);
    const std::size_t row = conv_.y_last ? channels : pixels, rows = all / row;
    share(call, rows, tasks_for(all, call), [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t r = begin; r < end; ++r)
        for (std::size_t i = 0; i < row; ++i) {
          const float x = y[r * row + i], slope = slopes[conv_.y_last ? i : r % channels];
          const float bent = (x < 0 ? x * slope : x) * activation_.scale + activation_.shift;
          y[r * row + i] = !other                              ? bent
                           : conv_.residual == Residual::after ? bent + other[r * row + i]
                                                               : bent * other[r * row + i];
        }
    });
  }

  memory::data_type type_, x_type_, added_type_, y_type_;
  ConvAttrs conv_;
  ActivationSpec activation_;
  mutable PreparedFor<Dims, Prepared> prepared_;
};

Verdict accepts(const Call& call, const Target&) { return accepts_conv(call, 3); }

Verdict accepts_bf16(const Call& call, const Target&) {
  if (Verdict v = accepts_conv_bf16(call, 3); !v) return v;
  // oneDNN 3.7.2 gets the first results of some of these wrong (found by tests/generated_test.cpp, windows in padding).
  const ConvAttrs conv(call);
  if (conv.rank() == 3 && conv.group > 1) return no("has groups along three axes", call.in(1).name);
  // Nor is anything right, on AMX, of windows that are wide and few channels (of 4 to 14, by widths of 8, 12, 16, 24,
  // 32).
  constexpr std::int64_t kWide = 8, kFew = 16;
  if (conv.kernel.back() >= kWide && call.in(1).constant->dims()[1] < kFew)
    return no("has few channels under a wide window", call.in(1).name);
  constexpr std::int64_t kLeastChannels = 8;  // they are filled up to 32
  if (conv.group == 1 && call.in(1).constant->dims()[1] < kLeastChannels)
    return no("has few channels", call.in(1).name);
  return call.in(1).constant->dims()[1] > 1 ? yes() : no("one channel per filter: there are no pairs to multiply");
}

double cost(const Call& call, const Target& target) {
  return std::max(target.compute(ops::conv_flops(call), 0.6), target.stream(conv_bytes(call)));
}

/// See bf16_gain: the rates are those of the instructions.
double cost_bf16(const Call& call, const Target& target) {
  const Shape& w = call.in(1).shape;
  const double x = 4 * call.in(0).shape.known_elements();
  const double gain = bf16_gain(target, w.has_rank() && w[1].known() ? static_cast<double>(w[1].value()) : 1);
  const double rounding = 1.5 * x / (target.l2_bandwidth * target.cores);
  return std::max(target.compute(ops::conv_flops(call) / gain, 0.5) + rounding, target.stream(conv_bytes(call)));
}

std::unique_ptr<Implementation> create_bf16(const Call& call, const Target& target) {
  return std::make_unique<OnednnConv>(call, target, memory::data_type::bf16);
}

}  // namespace

const Kernel onednn_conv = {
    .op = "Conv",
    .name = "cpu.onednn_conv",
    .needs = Isa::avx2,
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<OnednnConv>(call, target, kFloat);
    },
};

const Kernel onednn_conv_bf16 = {
    .op = "ConvBf16",
    .name = "cpu.onednn_conv_bf16",
    .needs = Isa::avx512_bf16,
    .accepts = accepts_bf16,
    .cost = cost_bf16,
    .create = create_bf16,
};

const Kernel onednn_conv_to_bf16 = {
    .op = "ConvToBf16",
    .name = "cpu.onednn_conv_to_bf16",
    .needs = Isa::avx512_bf16,
    .accepts = accepts_bf16,
    .cost = cost_bf16,
    .create = create_bf16,
};

}  // namespace modelflow::cpu
