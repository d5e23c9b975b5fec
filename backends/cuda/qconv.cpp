// QConv on a GPU: 8-bit images of one to three axes in either layout, on tensor cores where channels are last and there
// are no groups.
#include "backends/cuda/bytes.h"
#include "backends/cuda/conv_geometry.h"
#include "backends/cuda/epilogue.h"
#include "backends/cuda/filters.h"
#include "backends/cuda/invocation.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"
#include "backends/cuda/work.h"
#include "backends/ops/qconv_attrs.h"

namespace modelflow::cuda {
namespace {

using ops::ConvAttrs;
using ops::QConvAttrs;

constexpr const char* kOp = "QConv";

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorKind::invalid_input, std::string(kOp) + ": " + message);
}

class QConv : public Implementation {
 public:
  QConv(const Call& call, const DeviceLibrary& library, const Target& target)
      : library_(library),
        target_(target),
        attrs_(call),
        activation_(activation_of(call)),
        weights_(call.in(1).constant->dims()),
        w_(uploaded(library, laid_out(*call.in(1).constant))),
        scale_(uploaded(library, scaled(*call.in(QConvAttrs::kScale).constant, attrs_.x.scale))),
        shift_(uploaded(library,
                        shifts(*call.in(1).constant, call.in(QConvAttrs::kBias).constant, attrs_.x.zero_point))) {}

  void run(Invocation& call) const override {
    if (call.inputs() != attrs_.inputs()) fail("takes " + std::to_string(attrs_.inputs()) + " inputs");
    QConvLaunch q = {};
    ConvLaunch& c = q.conv;
    const Dims y = read_geometry(kOp, attrs_.conv, weights_, bytes(call, 0).dims, c);
    q.epilogue = epilogue(call, y);
    c.x = call.input(0).data;
    c.w = w_.data();
    c.y = call.output(0, y);
    if (element_count(y) == 0) return;
    c.outside = static_cast<std::uint8_t>(attrs_.x.zero_point);
    c.direct = !dense(attrs_.conv);
    q.four =
        attrs_.conv.x_last && attrs_.conv.y_last && c.group == c.channels && c.group == c.filters && c.group % 4 == 0;
    q.w_stride = row_bytes(element_count(weights_) / weights_[0]);
    c.large = large_tiles(pixels_of(c), c.filters, 1, target_);
    check(kOp, library_.qconv(q, call.stream()));
  }

 private:
  Tensor laid_out(const Tensor& w) const { return dense(attrs_.conv) ? padded(turned(w, false)) : turned(w, true); }

  static View bytes(const Invocation& call, std::size_t i) {
    const View view = call.input(i);
    if (view.dtype != DType::u8) fail("input " + std::to_string(i) + " is not uint8");
    return view;
  }

  StepsEpilogue epilogue(const Invocation& call, const Dims& y) const {
    const auto steps = [](const ops::Quantization& q) { return Steps{q.scale, q.zero_point}; };
    StepsEpilogue e = {static_cast<const std::int32_t*>(shift_.data()),
                       static_cast<const float*>(scale_.data()),
                       nullptr,
                       static_cast<EpilogueLaunch::Residual>(attrs_.conv.residual),
                       steps(attrs_.residual),
                       steps(attrs_.y),
                       activation_};
    if (attrs_.conv.residual == ops::Residual::none) return e;
    const View residual = bytes(call, QConvAttrs::kResidual);
    if (!std::ranges::equal(residual.dims, y)) fail("residual is not of the shape of the result");
    e.residual = static_cast<const std::uint8_t*>(residual.data);
    return e;
  }

  const DeviceLibrary& library_;
  Target target_;
  QConvAttrs attrs_;
  ActivationSpec activation_;
  Dims weights_;
  DeviceMemory w_, scale_, shift_;
};

Verdict accepts(const Call& call, const Target&) {
  const QConvAttrs attrs(call);
  if (attrs.conv.has_slopes || call.inputs.size() != attrs.inputs()) return no("the attributes ask for other inputs");
  if (Verdict v = accepts_declared_types(call); !v) return v;
  const Operand &w = call.in(1), &bias = call.in(QConvAttrs::kBias);
  if (Verdict v = accepts_filters(w, attrs.conv); !v) return v;
  if (!bias.constant) return no("is not constant", bias.name);
  if (bias.constant->dims() != Dims{w.constant->dims()[0]}) return no("has not one entry per filter", bias.name);
  return accepts_rows(w, 0, call.in(QConvAttrs::kScale), bias.constant);
}

double cost(const Call& call, const Target& target) {
  return product_seconds_in(dense(ConvAttrs(call)) ? DType::u8 : DType::f32, 0, call, target);
}

}  // namespace

const Kernel qconv = {
    .op = kOp,
    .name = "cuda.qconv",
    .device = Device::cuda,
    .sm = kTensorCores,
    .accepts = accepts,
    .cost = cost,
    .create = create<QConv>,
};

}  // namespace modelflow::cuda
