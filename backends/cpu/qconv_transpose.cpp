// As the float form: line i of the window of one input line is a product [width, C] x [C, kw * M] of 8-bit numbers,
// which channels last is an output line as it lies in memory. Pieces of it are activated and quantized while they lie
// in L1.
#include <algorithm>
#include <cstring>

#include "backends/cpu/bytes.h"
#include "backends/cpu/channel_mean.h"
#include "backends/cpu/gemm_vnni.h"
#include "backends/cpu/qconv_transpose_problem.h"
#include "backends/cpu/share.h"
#include "backends/cpu/weight_cache.h"
#include "backends/kernels.h"

namespace modelflow::cpu {
namespace {

/// Results of a piece: half of L1.
constexpr std::size_t kPieceFloats = 4096;
constexpr std::size_t kLeastRows = 28;  // two tiles of the product

class QConvTranspose : public Implementation {
 public:
  explicit QConvTranspose(const Call& call) : node_(call) {
    const Tensor& w = *call.in(1).constant;
    const auto size = [&](std::size_t axis) { return static_cast<std::size_t>(w.dims()[axis]); };
    channels_ = size(0), m_ = size(1), kw_ = size(w.rank() - 1), kh_ = w.rank() == 4 ? size(2) : 1;
    const std::size_t columns = kw_ * m_;
    piece_ = std::max(kPieceFloats / std::max<std::size_t>(columns, 1), kLeastRows);
    units_.assign(piece_, node_.x.scale);
    const auto scales = call.in(2).constant->as<float>();
    const auto bias = call.in(3).constant->as<std::int32_t>();
    for (std::size_t i = 0; i < columns; ++i) {
      scale_.push_back(scales[i % m_]);
      bias_.push_back(static_cast<float>(bias[i % m_]) * (node_.x.scale * scales[i % m_]));
    }
    packed_ = packed_weights(w, "qconv_transpose_vnni", kh_ * line_bytes(),
                             [&](std::byte* out) { pack(w.as<std::int8_t>().data(), out); });
  }

  void run(Invocation& call) const override {
    const QConvTransposeRun r(node_, call);
    const std::size_t lines = r.batch * r.height, line = r.width * kw_ * m_;
    if (lines * line == 0) return;
    const std::size_t parts = std::min(tasks_for(lines * kh_ * line * (channels_ + 32) / 64, call) * 2, lines);
    const std::size_t buffer = node_.floats ? 0 : piece_ * kw_ * m_;
    auto* results = reinterpret_cast<float*>(call.scratch(parts * buffer * sizeof(float)));
    // Rows are read up to the next multiple of kVnniDepth, which the last one of x does not have behind it.
    auto* tail = reinterpret_cast<std::uint8_t*>(call.scratch(r.width * channels_ + kVnniDepth));
    const std::uint8_t* last = r.x + (lines - 1) * r.width * channels_;
    std::memcpy(tail, last, r.width * channels_);
    std::memset(tail + r.width * channels_, 0, kVnniDepth);
    share(call, lines, parts, [&](std::size_t begin, std::size_t end, std::size_t i) {
      for (std::size_t l = begin; l < end; ++l) {
        const std::uint8_t* x = l + 1 < lines ? r.x + l * r.width * channels_ : tail;
        for (std::size_t h = 0; h < kh_; ++h) expand(r, x, h, (l * kh_ + h) * line, results + i * buffer);
      }
    });
  }

 private:
  std::size_t line_bytes() const { return packed_b_vnni_bytes(channels_, kw_ * m_); }

  /// [C, M, kh, kw] -> for each line of the window [C, kw * M].
  void pack(const std::int8_t* w, std::byte* out) const {
    std::vector<std::int8_t> matrix(channels_ * kw_ * m_);
    for (std::size_t i = 0; i < kh_; ++i) {
      std::int8_t* to = matrix.data();
      for (std::size_t c = 0; c < channels_; ++c) {
        for (std::size_t j = 0; j < kw_; ++j) {
          for (std::size_t m = 0; m < m_; ++m) *to++ = w[((c * m_ + m) * kh_ + i) * kw_ + j];
        }
      }
      pack_b_vnni(matrix.data(), false, channels_, kw_ * m_, out + i * line_bytes());
    }
  }

  /// One input line -> line `h` of its window, which begins at element `at` of y.
  void expand(const QConvTransposeRun& r, const std::uint8_t* x, std::size_t h, std::size_t at, float* results) const {
    VnniGemm g;
    g.n = kw_ * m_, g.k = channels_;
    g.lda = channels_, g.zero_point = node_.x.zero_point;
    g.b = packed_.get() + h * line_bytes();
    g.row_scale = units_.data(), g.column_scale = scale_.data();
    g.out.n = g.n, g.out.bias = bias_.data();
    const bool active = node_.activation.kind != Activation::none || node_.activation.affine();
    for (std::size_t first = 0; first < r.width; first += piece_) {
      const std::size_t rows = std::min(piece_, r.width - first), count = rows * g.n, to = at + first * g.n;
      g.a = x + first * channels_;
      g.out.c = node_.floats ? static_cast<float*>(r.y) + to : results;
      gemm_vnni(g, 0, rows, 0, g.n);
      // Not by the product: with few columns its registers would be empty for the most part.
      if (active) activate_avx512(node_.activation, g.out.c, g.out.c, count);
      if (!node_.floats)
        byte_loops().quantize({node_.y.scale, node_.y.zero_point}, results, count,
                              static_cast<std::uint8_t*>(r.y) + to);
    }
  }

  QConvTransposeNode node_;
  std::size_t channels_ = 0, m_ = 0, kh_ = 0, kw_ = 0, piece_ = 0;
  std::shared_ptr<const std::byte> packed_;
  std::vector<float> scale_, bias_, units_;
};

Verdict accepts(const Call& call) {
  if (Verdict verdict = accepts_qconv_transpose(call); !verdict) return verdict;
  if (call.attrs.text("layout", "NCHW") != "NHWC") return no("its channels are not last", call.in(0).name);
  for (std::size_t i = 1; i < call.inputs.size(); ++i) {
    if (!call.in(i).constant) return no("is not constant", call.in(i).name);
  }
  const Dims& w = call.in(1).constant->dims();
  for (const std::size_t i : {2, 3}) {
    if (call.in(i).constant->dims() != Dims{w[1]}) return no("has not one entry per output channel", call.in(i).name);
  }
  constexpr std::int64_t kMostChannels = 60000;
  if (w[0] > kMostChannels) return no("sums may leave the range of 32 bits", call.in(1).name);
  return w[0] > 0 && w[1] > 0 ? yes() : no("has no elements", call.in(1).name);
}

double cost(const Call& call, const Target& target) { return qconv_transpose_cost(call, target, 0.4); }

std::unique_ptr<Implementation> create(const Call& call, const Target&) {
  return std::make_unique<QConvTranspose>(call);
}

}  // namespace

const Kernel qconv_transpose_vnni = {.op = "QConvTranspose",
                                     .name = "cpu.qconv_transpose_vnni",
                                     .needs = Isa::avx512_vnni,
                                     .accepts = accepts,
                                     .cost = cost,
                                     .create = create};

const Kernel qconv_transpose_float_vnni = {.op = "QConvTransposeFloat",
                                           .name = "cpu.qconv_transpose_float_vnni",
                                           .needs = Isa::avx512_vnni,
                                           .accepts = accepts,
                                           .cost = cost,
                                           .create = create};

}  // namespace modelflow::cpu
