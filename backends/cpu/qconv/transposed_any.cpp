// Transposed convolution of 8-bit numbers in plain C++: exact, not fast, in either layout.
#include <algorithm>
#include <cmath>

#include "backends/cpu/qconv/kernels.h"
#include "backends/cpu/qconv/transposed_problem.h"

namespace modelflow::cpu {
namespace {

class Any : public Implementation {
 public:
  explicit Any(const Call& call) : node_(call) {}

  void run(Invocation& call) const override {
    const QConvTransposeRun r(node_, call);
    const std::size_t lines = r.batch * r.height, window = r.filters * r.kernel_h * r.kernel_w;
    if (lines * r.width * window == 0) return;
    const std::size_t tasks = std::min(lines, call.threads() * 4);
    auto* memory = reinterpret_cast<std::int32_t*>(call.scratch(tasks * window * sizeof(std::int32_t)));
    call.parallel(tasks, [&](std::size_t task) {
      std::int32_t* sums = memory + task * window;
      for (std::size_t line = lines * task / tasks; line < lines * (task + 1) / tasks; ++line) {
        for (std::size_t pixel = 0; pixel < r.width; ++pixel) {
          multiply(r, line, pixel, window, sums);
          finish(r, line, pixel, sums);
        }
      }
    });
  }

 private:
  /// What one input pixel gives: sums[m, i, j].
  void multiply(const QConvTransposeRun& r, std::size_t line, std::size_t pixel, std::size_t window,
                std::int32_t* sums) const {
    const std::size_t image = line / r.height, row = line % r.height, plane = r.height * r.width;
    const std::size_t step = node_.last ? 1 : plane;
    const std::uint8_t* x =
        r.x + (node_.last ? (line * r.width + pixel) * r.channels : image * r.channels * plane + row * r.width + pixel);
    std::fill_n(sums, window, 0);
    const std::int8_t* w = r.w;
    for (std::size_t c = 0; c < r.channels; ++c, w += window) {
      const std::int32_t value = x[c * step] - node_.x.zero_point;
      for (std::size_t i = 0; i < window; ++i) sums[i] += value * w[i];
    }
  }

  void finish(const QConvTransposeRun& r, std::size_t line, std::size_t pixel, const std::int32_t* sums) const {
    const std::size_t image = line / r.height, rows = r.height * r.kernel_h, columns = r.width * r.kernel_w;
    for (std::size_t m = 0; m < r.filters; ++m) {
      const float unit = node_.x.scale * r.w_scale[m];
      for (std::size_t i = 0; i < r.kernel_h; ++i) {
        for (std::size_t j = 0; j < r.kernel_w; ++j) {
          const float v = activate(node_.activation, static_cast<float>(*sums++ + r.bias[m]) * unit);
          const std::size_t row = line % r.height * r.kernel_h + i, column = pixel * r.kernel_w + j;
          put(r,
              node_.last ? ((image * rows + row) * columns + column) * r.filters + m
                         : ((image * r.filters + m) * rows + row) * columns + column,
              v);
        }
      }
    }
  }

  void put(const QConvTransposeRun& r, std::size_t at, float v) const {
    if (node_.floats) {
      static_cast<float*>(r.y)[at] = v;
      return;
    }
    const float q = std::nearbyint(v / node_.y.scale) + static_cast<float>(node_.y.zero_point);
    static_cast<std::uint8_t*>(r.y)[at] = static_cast<std::uint8_t>(std::min(255.0f, std::max(0.0f, q)));
  }

  QConvTransposeNode node_;
};

double cost(const Call& call, const Target& target) { return qconv_transpose_cost(call, target, 0.02); }

std::unique_ptr<Implementation> create(const Call& call, const Target&) { return std::make_unique<Any>(call); }

}  // namespace

const Kernel qconv_transpose_any = {.op = "QConvTranspose",
                                    .name = "cpu.qconv_transpose_any",
                                    .needs = Isa::avx2,
                                    .accepts = accepts_qconv_transpose,
                                    .cost = cost,
                                    .create = create};

const Kernel qconv_transpose_float_any = {.op = "QConvTransposeFloat",
                                          .name = "cpu.qconv_transpose_float_any",
                                          .needs = Isa::avx2,
                                          .accepts = accepts_qconv_transpose,
                                          .cost = cost,
                                          .create = create};

}  // namespace modelflow::cpu
