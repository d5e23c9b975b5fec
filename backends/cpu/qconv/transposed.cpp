// The kernels of transposed convolutions of 8-bit numbers. As in float32, line i of the window of one input
// line is a product [width, C] x [C, kw * M], which is an output line as it lies in memory when channels are last. A
// window of few results is one product for all of its lines, since registers would be empty for the most part
// otherwise. Pieces are activated and quantized while they lie in L1. Where channels come second, pixels of a piece are
// put together before and taken apart behind the product.
#include <algorithm>

#include "backends/call_attrs.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/frame/weight_cache.h"
#include "backends/cpu/gemm/int8_isas.h"
#include "backends/cpu/loops/vector_code.h"
#include "backends/cpu/qconv/kernels.h"
#include "backends/cpu/qconv/transposed_problem.h"

namespace modelflow::cpu {
namespace {

/// Results of a piece: half of L1.
constexpr std::size_t kPieceFloats = 4096;
constexpr std::size_t kLeastRows = 28;     // some tiles of the product
constexpr std::size_t kLeastColumns = 32;  // one or two panels of it

template <class On>
class QConvTranspose : public Implementation {
 public:
  QConvTranspose(const Call& call, const VectorCode& code) : node_(call), code_(code) {
    const Tensor& w = *call.in(1).constant;
    const auto size = [&](std::size_t axis) { return static_cast<std::size_t>(w.dims()[axis]); };
    channels_ = size(0), m_ = size(1), kw_ = size(w.rank() - 1), kh_ = w.rank() == 4 ? size(2) : 1;
    joined_ = kh_ > 1 && kh_ * kw_ * m_ <= kLeastColumns;
    products_ = joined_ ? 1 : kh_;
    const std::size_t columns = kh_ / products_ * kw_ * m_;
    piece_ = std::max(kPieceFloats / std::max<std::size_t>(columns, 1), kLeastRows);
    units_.assign(piece_, node_.x.scale);
    const auto scales = call.in(2).constant->as<float>();
    const auto bias = call.in(3).constant->as<std::int32_t>();
    for (std::size_t i = 0; i < columns; ++i) {
      scale_.push_back(scales[i % m_]);
      bias_.push_back(static_cast<float>(bias[i % m_]) * (node_.x.scale * scales[i % m_]));
    }
    packed_ = packed_weights(w, std::string("qconv_transpose ") + On::kLayout,
                             products_ * On::packed_bytes(channels_, columns),
                             [&](std::byte* out) { pack(w.as<std::int8_t>().data(), columns, out); });
    // Steps below a zero point of 0 are cut off in any case.
    const bool cut = !node_.floats && node_.y.zero_point == 0 && node_.activation.kind == Activation::relu;
    active_ = (node_.activation.kind != Activation::none && !cut) || node_.activation.affine();
  }

  void run(Invocation& call) const override {
    const QConvTransposeRun r(node_, call);
    const std::size_t lines = r.batch * r.height, line = r.width * kw_ * m_;
    if (lines * line == 0) return;
    const std::size_t parts = std::min(tasks_for(lines * kh_ * line * (channels_ + 32) / 64, call) * 2, lines);
    const Scratch each = scratch_of();
    std::byte* memory = call.scratch(parts * each.bytes());
    share(call, lines, parts, [&](std::size_t begin, std::size_t end, std::size_t i) {
      for (std::size_t l = begin; l < end; ++l) expand(r, l, memory + i * each.bytes());
    });
  }

 private:
  /// What a piece needs, in bytes: its rows in panels, results of a product, results of one line of the window, and
  /// with channels second its pixels and the line in 8 bits.
  struct Scratch {
    std::size_t rows, results, line, pixels, quantized;
    std::size_t bytes() const { return rows + results + line + pixels + quantized; }
  };

  Scratch scratch_of() const {
    const auto whole = [](std::size_t bytes) { return (bytes + 63) / 64 * 64; };
    return {whole(typename On::Panels{piece_, channels_}.bytes()), whole(piece_ * scale_.size() * sizeof(float)),
            joined_ ? whole(piece_ * kw_ * m_ * sizeof(float)) : 0, node_.last ? 0 : whole(piece_ * channels_),
            node_.last ? 0 : whole(piece_ * kw_ * m_)};
  }

  /// [C, M, kh, kw] -> for each product [C, columns], columns being those of all its lines.
  void pack(const std::int8_t* w, std::size_t columns, std::byte* out) const {
    std::vector<std::int8_t> matrix(channels_ * columns);
    for (std::size_t p = 0; p < products_; ++p) {
      std::int8_t* to = matrix.data();
      for (std::size_t c = 0; c < channels_; ++c) {
        for (std::size_t column = 0; column < columns; ++column) {
          const std::size_t i = p + column / (kw_ * m_), j = column / m_ % kw_, m = column % m_;
          *to++ = w[((c * m_ + m) * kh_ + i) * kw_ + j];
        }
      }
      On::pack(matrix.data(), false, channels_, columns, out + p * On::packed_bytes(channels_, columns));
    }
  }

  /// One input line -> kh output lines.
  void expand(const QConvTransposeRun& r, std::size_t l, std::byte* memory) const {
    const Scratch scratch = scratch_of();
    auto* steps = reinterpret_cast<std::uint8_t*>(memory);
    auto* results = reinterpret_cast<float*>(memory + scratch.rows);
    auto* picked = reinterpret_cast<float*>(memory + scratch.rows + scratch.results);
    auto* pixels = steps + scratch.rows + scratch.results + scratch.line;
    BytesGemm<typename On::Panels> g;
    g.n = scale_.size(), g.a = steps, g.zero_point = node_.x.zero_point;
    g.row_scale = units_.data(), g.column_scale = scale_.data();
    g.out.n = g.n, g.out.bias = bias_.data();
    const std::size_t pixel = kw_ * m_, line = r.width * pixel;
    for (std::size_t first = 0; first < r.width; first += piece_) {
      const std::size_t rows = std::min(piece_, r.width - first);
      g.rows = {rows, channels_};
      On::pack_rows(g.rows, pixels_of(r, l, first, rows, pixels), steps);
      for (std::size_t h = 0; h < kh_; ++h) {
        const std::size_t to = (l * kh_ + h) * line + first * pixel;
        const bool in_place = node_.floats && node_.last;
        float* floats = in_place ? static_cast<float*>(r.y) + to : joined_ ? picked : results;
        if (h < products_) {
          g.b = packed_.get() + h * On::packed_bytes(channels_, g.n);
          g.out.c = joined_ ? results : floats;
          On::multiply(g, 0, g.rows.count(), 0, g.n);
        }
        if (joined_) pick_line(results + h * pixel, rows, floats);
        // Not by the product, whose registers need not be full.
        if (active_) code_.pointwise.activate(node_.activation, floats, floats, rows * pixel);
        if (in_place) continue;
        if (node_.last) {
          quantize(floats, rows * pixel, static_cast<std::uint8_t*>(r.y) + to);
        } else if (node_.floats) {
          write_planes(r, l, h, first, rows, floats, static_cast<float*>(r.y));
        } else {
          std::uint8_t* bytes = pixels + scratch.pixels;
          quantize(floats, rows * pixel, bytes);
          write_planes(r, l, h, first, rows, bytes, static_cast<std::uint8_t*>(r.y));
        }
      }
    }
  }

  void quantize(const float* x, std::size_t n, std::uint8_t* y) const {
    code_.bytes.quantize({node_.y.scale, node_.y.zero_point}, x, n, y);
  }

  /// `rows` pixels of input line l from `first` on, channels last; put together in `room` where they are not.
  const std::uint8_t* pixels_of(const QConvTransposeRun& r, std::size_t l, std::size_t first, std::size_t rows,
                                std::uint8_t* room) const {
    if (node_.last) return r.x + (l * r.width + first) * channels_;
    const std::size_t plane = r.height * r.width;
    const std::uint8_t* x = r.x + l / r.height * channels_ * plane + l % r.height * r.width + first;
    for (std::size_t c = 0; c < channels_; ++c, x += plane)
      for (std::size_t i = 0; i < rows; ++i) room[i * channels_ + c] = x[i];
    return room;
  }

  /// Line h of the windows of these pixels, [pixel, column, filter], into the planes of y.
  template <class T>
  void write_planes(const QConvTransposeRun& r, std::size_t l, std::size_t h, std::size_t first, std::size_t rows,
                    const T* from, T* y) const {
    const std::size_t plane = r.height * kh_ * r.width * kw_, columns = rows * kw_;
    y += l / r.height * m_ * plane + (l % r.height * kh_ + h) * r.width * kw_ + first * kw_;
    for (std::size_t m = 0; m < m_; ++m, y += plane)
      for (std::size_t column = 0; column < columns; ++column) y[column] = from[column * m_ + m];
  }

  /// The results of one line of the window, which lie beside those of the others.
  void pick_line(const float* from, std::size_t rows, float* to) const {
    const std::size_t pixel = kw_ * m_, step = scale_.size();
    if (pixel == 2) {  // a last layer has one channel and doubles the image
      for (std::size_t r = 0; r < rows; ++r, from += step, to += 2) to[0] = from[0], to[1] = from[1];
      return;
    }
    for (std::size_t r = 0; r < rows; ++r, from += step, to += pixel) std::copy_n(from, pixel, to);
  }

  QConvTransposeNode node_;
  const VectorCode& code_;
  std::size_t channels_ = 0, m_ = 0, kh_ = 0, kw_ = 0;
  std::size_t products_ = 0, piece_ = 0;  ///< per input line; rows of one at a time
  bool joined_ = false, active_ = false;
  std::shared_ptr<const std::byte> packed_;
  std::vector<float> scale_, bias_, units_;
};

Verdict accepts(const Call& call, const Target& target) {
  if (Verdict verdict = accepts_qconv_transpose(call, target); !verdict) return verdict;
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

template <int hundredths>
double cost(const Call& call, const Target& target) {
  return qconv_transpose_cost(call, target, hundredths / 100.0);
}

template <class On>
std::unique_ptr<Implementation> create(const Call& call, const Target& target) {
  return std::make_unique<QConvTranspose<On>>(call, vector_code(target));
}

}  // namespace

const Kernel qconv_transpose_vnni = {.op = "QConvTranspose",
                                     .name = "cpu.qconv_transpose_vnni",
                                     .needs = Isa::avx512_vnni,
                                     .accepts = accepts,
                                     .cost = cost<40>,
                                     .create = create<OnVnni>};

const Kernel qconv_transpose_avx_vnni = {.op = "QConvTranspose",
                                         .name = "cpu.qconv_transpose_avx_vnni",
                                         .needs = Isa::avx_vnni,
                                         .accepts = accepts,
                                         .cost = cost<40>,
                                         .create = create<OnQuads>};

const Kernel qconv_transpose_avx2 = {.op = "QConvTranspose",
                                     .name = "cpu.qconv_transpose_avx2",
                                     .needs = Isa::avx2,
                                     .accepts = accepts,
                                     .cost = cost<20>,
                                     .create = create<OnPairs>};

const Kernel qconv_transpose_float_vnni = {.op = "QConvTransposeFloat",
                                           .name = "cpu.qconv_transpose_float_vnni",
                                           .needs = Isa::avx512_vnni,
                                           .accepts = accepts,
                                           .cost = cost<40>,
                                           .create = create<OnVnni>};

const Kernel qconv_transpose_float_avx_vnni = {.op = "QConvTransposeFloat",
                                               .name = "cpu.qconv_transpose_float_avx_vnni",
                                               .needs = Isa::avx_vnni,
                                               .accepts = accepts,
                                               .cost = cost<40>,
                                               .create = create<OnQuads>};

const Kernel qconv_transpose_float_avx2 = {.op = "QConvTransposeFloat",
                                           .name = "cpu.qconv_transpose_float_avx2",
                                           .needs = Isa::avx2,
                                           .accepts = accepts,
                                           .cost = cost<20>,
                                           .create = create<OnPairs>};

}  // namespace modelflow::cpu
