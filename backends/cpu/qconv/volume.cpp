// The kernels of QConv over three axes: the windows of some pixels are copied as rows of a matrix, and their product
// with the weights is finished and quantized while it lies in L2.
#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/frame/scratch_tasks.h"
#include "backends/cpu/frame/weight_cache.h"
#include "backends/cpu/gemm/int8_isas.h"
#include "backends/cpu/loops/vector_code.h"
#include "backends/cpu/qconv/kernels.h"
#include "backends/cpu/qconv/problem.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kAxes = 3;
/// Pixels of a piece: some tiles of the product.
constexpr std::int64_t kPiece = 48;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
std::size_t whole(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Where the windows of an image lie: for each axis and output index the offsets of its taps, -1 in the padding.
struct Windows {
  std::int64_t channels, filters, pixels;  // of y
  std::int64_t x_image, x_plane;           // elements of an image, and from channel to channel
  std::array<std::int64_t, kAxes> y, kernel;
  std::array<std::vector<std::int64_t>, kAxes> offsets;

  Windows(const ops::ConvAttrs& conv, const QConvOperands& o) {
    const std::size_t first_x = conv.x_last ? 1 : 2, first_y = conv.y_last ? 1 : 2;
    channels = o.x_dims[conv.x_last ? kAxes + 1 : 1], filters = o.y_dims[conv.y_last ? kAxes + 1 : 1];
    std::int64_t step = conv.x_last ? channels : 1;
    pixels = 1;
    for (std::size_t axis = kAxes; axis-- > 0;) {
      const std::int64_t extent = o.x_dims[first_x + axis];
      y[axis] = o.y_dims[first_y + axis], kernel[axis] = conv.kernel[axis];
      for (std::int64_t i = 0; i < y[axis] * kernel[axis]; ++i) {
        const std::int64_t at =
            i / kernel[axis] * conv.strides[axis] - conv.pads[axis] + i % kernel[axis] * conv.dilations[axis];
        offsets[axis].push_back(at < 0 || at >= extent ? -1 : at * step);
      }
      step *= extent, pixels *= y[axis];
    }
    x_plane = conv.x_last ? 1 : step;
    x_image = conv.x_last ? step : step * channels;
  }

  /// Calls body(offset) for every tap of a pixel, in the order of the weights.
  template <class Body>
  void taps(std::int64_t pixel, Body body) const {
    const std::int64_t column = pixel % y[2], row = pixel / y[2] % y[1], slice = pixel / y[2] / y[1];
    for (std::int64_t i = 0; i < kernel[0]; ++i) {
      const std::int64_t far = offsets[0][size(slice * kernel[0] + i)];
      for (std::int64_t j = 0; j < kernel[1]; ++j) {
        const std::int64_t down = offsets[1][size(row * kernel[1] + j)];
        for (std::int64_t k = 0; k < kernel[2]; ++k) {
          const std::int64_t across = offsets[2][size(column * kernel[2] + k)];
          body(far < 0 || down < 0 || across < 0 ? -1 : far + down + across);
        }
      }
    }
  }
};

template <class On>
class Volume : public Implementation {
 public:
  Volume(const Call& call, const VectorCode& code) : node_(call), code_(code) {
    const Tensor& w = *call.in(1).constant;
    filters_ = size(w.dims()[0]), depth_ = size(w.elements()) / filters_;
    units_.assign(size(kPiece), node_.attrs.x.scale);
    const auto scales = call.in(ops::QConvAttrs::kScale).constant->as<float>();
    const auto bias = call.in(ops::QConvAttrs::kBias).constant->as<std::int32_t>();
    scale_.assign(scales.begin(), scales.end());
    for (std::size_t f = 0; f < filters_; ++f)
      bias_.push_back(static_cast<float>(bias[f]) * (node_.attrs.x.scale * scales[f]));
    const bool last = node_.attrs.conv.x_last;
    packed_ = packed_weights(w, std::string("qconv_volume ") + On::kLayout + (last ? " last" : ""),
                             On::packed_bytes(depth_, filters_), [&](std::byte* out) {
                               const auto from = w.as<std::int8_t>();
                               std::vector<std::int8_t> matrix(from.begin(), from.end());
                               if (last) taps_before_channels(from, size(w.dims()[1]), matrix);
                               On::pack(matrix.data(), true, depth_, filters_, out);
                             });
  }

  void run(Invocation& call) const override {
    const QConvOperands o = node_.operands(call);
    if (element_count(o.y_dims) == 0) return;
    const Windows windows(node_.attrs.conv, o);
    const std::int64_t pieces = ceil_div(windows.pixels, kPiece);
    const Scratch scratch = scratch_of();
    run_with_scratch(call, o.y_dims[0] * pieces, scratch.bytes(), [&](std::int64_t task, std::byte* memory) {
      const std::int64_t image = task / pieces, piece = task % pieces;
      const std::int64_t first = windows.pixels * piece / pieces, end = windows.pixels * (piece + 1) / pieces;
      run_piece(o, windows, {image, first, size(end - first)}, memory);
    });
  }

 private:
  struct Piece {
    std::int64_t image, first;
    std::size_t rows;
  };
  /// What a piece needs, in bytes: windows, the same in panels, results, a residual, and the results in 8 bits.
  struct Scratch {
    std::size_t windows, panels, floats, bytes_of_y;
    std::size_t bytes() const { return windows + panels + 2 * floats + bytes_of_y; }
  };
  Scratch scratch_of() const {
    const std::size_t piece = size(kPiece), results = piece * filters_;
    return {whole(piece * depth_), whole(typename On::Panels{piece, depth_}.bytes()), whole(results * sizeof(float)),
            whole(results)};
  }

  /// [M, C, taps] -> [M, taps, C].
  void taps_before_channels(std::span<const std::int8_t> from, std::size_t channels,
                            std::vector<std::int8_t>& to) const {
    const std::size_t taps = depth_ / channels;
    for (std::size_t i = 0; i < from.size(); ++i) {
      const std::size_t filter = i / depth_, c = i / taps % channels, tap = i % taps;
      to[filter * depth_ + tap * channels + c] = from[i];
    }
  }

  void copy_window(const Windows& w, const std::uint8_t* x, std::int64_t pixel, std::uint8_t* to) const {
    const int zero = node_.attrs.x.zero_point;
    if (node_.attrs.conv.x_last) {
      return w.taps(pixel, [&](std::int64_t offset) {
        if (offset < 0)
          std::memset(to, zero, size(w.channels));
        else
          std::memcpy(to, x + offset, size(w.channels));
        to += w.channels;
      });
    }
    const auto taps = static_cast<std::int64_t>(depth_) / w.channels;
    w.taps(pixel, [&](std::int64_t offset) {
      for (std::int64_t c = 0; c < w.channels; ++c)
        to[c * taps] = offset < 0 ? static_cast<std::uint8_t>(zero) : x[c * w.x_plane + offset];
      ++to;
    });
  }

  void run_piece(const QConvOperands& o, const Windows& w, const Piece& piece, std::byte* memory) const {
    const Scratch scratch = scratch_of();
    auto* windows = reinterpret_cast<std::uint8_t*>(memory);
    std::uint8_t* steps = windows + scratch.windows;
    auto* results = reinterpret_cast<float*>(steps + scratch.panels);
    auto* added = reinterpret_cast<float*>(steps + scratch.panels + scratch.floats);
    std::uint8_t* bytes = steps + scratch.panels + 2 * scratch.floats;
    for (std::size_t i = 0; i < piece.rows; ++i)
      copy_window(w, o.x + piece.image * w.x_image, piece.first + static_cast<std::int64_t>(i), windows + i * depth_);
    BytesGemm<typename On::Panels> g;
    g.rows = {piece.rows, depth_};
    g.n = filters_, g.a = steps, g.zero_point = node_.attrs.x.zero_point, g.b = packed_.get();
    g.row_scale = units_.data(), g.column_scale = scale_.data();
    g.out.c = results, g.out.n = filters_, g.out.bias = bias_.data();
    On::pack_rows(g.rows, windows, steps);
    On::multiply(g, 0, g.rows.count(), 0, g.n);
    finish(o, w, piece, results, added, bytes);
  }

  /// Residual, activation, rounding, and out into y.
  void finish(const QConvOperands& o, const Windows& w, const Piece& piece, float* results, float* added,
              std::uint8_t* bytes) const {
    const QEpilogue& e = node_.epilogue;
    const bool last = node_.attrs.conv.y_last;
    const std::size_t count = piece.rows * filters_, plane = size(w.pixels);
    const std::size_t at = size(piece.image) * filters_ * plane + size(piece.first) * (last ? filters_ : 1);
    const auto planes = [&](auto body) {  // [pixel, filter] beside [filter, pixel]
      for (std::size_t f = 0; f < filters_; ++f)
        for (std::size_t i = 0; i < piece.rows; ++i) body(i * filters_ + f, at + f * plane + i);
    };
    if (o.added) {
      if (!last) planes([&](std::size_t here, std::size_t there) { bytes[here] = o.added[there]; });
      code_.bytes.dequantize({e.added.scale, e.added.zero_point}, last ? o.added + at : bytes, count, added);
    }
    const auto add = [&](ops::Residual use) {
      if (o.added && e.residual == use) code_.pointwise.step(PointwiseOp::add, results, added, results, count);
    };
    add(ops::Residual::before);
    code_.pointwise.activate(e.activation, results, results, count);
    add(ops::Residual::after);
    code_.bytes.quantize({e.y.scale, e.y.zero_point}, results, count, last ? o.y + at : bytes);
    if (!last) planes([&](std::size_t here, std::size_t there) { o.y[there] = bytes[here]; });
  }

  QConvNode node_;
  const VectorCode& code_;
  std::size_t filters_ = 0, depth_ = 0;
  std::shared_ptr<const std::byte> packed_;
  std::vector<float> scale_, bias_, units_;
};

Verdict accepts(const Call& call, const Target& target) {
  if (Verdict verdict = accepts_qconv_vectors(call, target, kAxes); !verdict) return verdict;
  const ops::ConvAttrs conv(call);
  if (conv.rank() != kAxes) return no("has not three axes", call.in(1).name);
  return conv.group == 1 ? yes() : no("is grouped", call.in(1).name);
}

template <int hundredths>
double cost(const Call& call, const Target& target) {
  return qconv_cost(call, target, hundredths / 100.0);
}

template <class On>
std::unique_ptr<Implementation> create(const Call& call, const Target& target) {
  return std::make_unique<Volume<On>>(call, vector_code(target));
}

}  // namespace

const Kernel qconv_volume_vnni = {.op = "QConv",
                                  .name = "cpu.qconv_volume_vnni",
                                  .needs = Isa::avx512_vnni,
                                  .accepts = accepts,
                                  .cost = cost<30>,
                                  .create = create<OnVnni>};

const Kernel qconv_volume_avx_vnni = {.op = "QConv",
                                      .name = "cpu.qconv_volume_avx_vnni",
                                      .needs = Isa::avx_vnni,
                                      .accepts = accepts,
                                      .cost = cost<30>,
                                      .create = create<OnQuads>};

const Kernel qconv_volume_avx2 = {.op = "QConv",
                                  .name = "cpu.qconv_volume_avx2",
                                  .needs = Isa::avx2,
                                  .accepts = accepts,
                                  .cost = cost<15>,
                                  .create = create<OnPairs>};

}  // namespace modelflow::cpu
