// The kernel of transposed convolutions whose windows overlap: along the last axis results stride * v + r with the same
// inputs in reach are columns of one product, whose row v is x[v + shift .. v + shift + taps - 1]. With channels last
// that row is one piece of memory, rows overlap, and the result lies where it belongs. Where several input lines add to
// an output line, or a window reaches over the border, pixels are put together first.
#include <algorithm>
#include <array>
#include <limits>

#include "backends/cpu/conv/transposed.h"
#include "backends/cpu/conv/transposed_problem.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/frame/weight_cache.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kMostRows = 288;  // of a line at once, so that pixels put together stay near
constexpr std::size_t kLeastRows = 48;  // below that weights are read too often: threads rather share columns
constexpr std::size_t kMostPieces = 64;

/// Output lines that see the same taps of the outer axes.
struct Outer {
  Phase d, h;
  std::vector<std::size_t> weights;  ///< where those of each group of columns begin
  std::size_t lines() const { return d.taps * h.taps; }
};

/// Every group of columns is cut into slices; so many pieces of lines are multiplied together.
struct Run : ConvTransposeRun {
  std::size_t slices = 1, together = 1;
};

/// Some rows of an output line.
struct Piece {
  std::size_t begin, end;
  float* y;                       ///< the line
  const float* pixels = nullptr;  ///< null: no input line is in reach
  std::int64_t first = 0;         ///< the pixel that lies there
};

class OverlappingConvTranspose : public Implementation {
 public:
  OverlappingConvTranspose(const Call& call, const Target& target, const F32Code& code)
      : code_(code), blocks_(code.blocks(target)), node_(call), groups_(phase_groups(node_.axis[2])) {
    std::size_t floats = 0;
    for (std::size_t d = 0; d < node_.axis[0].stride; ++d) {
      for (std::size_t h = 0; h < node_.axis[1].stride; ++h)
        floats = add_outer(node_.axis[0].phase(d), node_.axis[1].phase(h), floats);
    }
    for (std::size_t i = 0; !node_.bias.empty() && i < node_.axis[2].stride * node_.m; ++i)
      bias_.push_back(node_.bias[i % node_.m]);
    const Tensor& w = *call.in(1).constant;
    packed_ = packed_weights(w, "overlapping " + std::string(code.layout) + node_.layout, floats * sizeof(float),
                             [&](std::byte* out) { pack(w, reinterpret_cast<float*>(out)); });
  }

  void run(Invocation& call) const override {
    Run r{node_.read(call)};
    if (r.lines() * r.out[2] * node_.m == 0) return;
    const std::size_t wanted = share_out(r, call), items = r.lines() * r.cuts * r.slices;
    const std::size_t parts = std::min(wanted, items), each = own_floats(r) + r.together * piece_floats(r);
    auto* scratch = reinterpret_cast<float*>(call.scratch(parts * each * sizeof(float)));
    share(call, items, parts,
          [&](std::size_t begin, std::size_t end, std::size_t i) { work(r, begin, end, scratch + i * each); });
  }

 private:
  std::size_t depth(const Outer& outer, std::size_t group) const {
    return groups_[group].first.taps * outer.lines() * node_.channels;
  }

  std::size_t add_outer(const Phase& d, const Phase& h, std::size_t floats) {
    Outer outer{d, h, {}};
    most_lines_ = std::max(most_lines_, outer.lines());
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const PhaseGroup& group = groups_[i];
      outer.weights.push_back(floats);
      floats += code_.packed_floats(depth(outer, i), group.size * node_.m);
      if (group.first.taps == 0) continue;
      reach_begin_ = std::min(reach_begin_, group.first.shift);
      reach_end_ = std::max(reach_end_, group.first.shift + number(group.first.taps));
    }
    outer_.push_back(std::move(outer));
    return floats;
  }

  /// [C, M, kd, kh, kw] -> for each product [taps, lines, C] x [phases, M].
  void pack(const Tensor& w, float* out) const {
    std::vector<float> matrix;
    for (const Outer& outer : outer_) {
      for (std::size_t i = 0; i < groups_.size(); ++i) {
        const std::size_t k = depth(outer, i), columns = groups_[i].size * node_.m;
        matrix.clear();
        for (std::size_t row = 0; row < k; ++row) push_row(w, outer, groups_[i], row, matrix);
        code_.pack_b(matrix.data(), columns, false, k, columns, 0, code_.panels(columns), out + outer.weights[i]);
      }
    }
  }

  void push_row(const Tensor& w, const Outer& outer, const PhaseGroup& group, std::size_t row,
                std::vector<float>& to) const {
    const std::size_t c = row % node_.channels, line = row / node_.channels % outer.lines();
    const std::size_t d = outer.d.tap(line / outer.h.taps), h = outer.h.tap(line % outer.h.taps);
    const std::size_t j = group.first.tap(row / node_.channels / outer.lines());
    const std::size_t plane = node_.axis[1].kernel * node_.axis[2].kernel, window = node_.axis[0].kernel * plane;
    const float* from = w.as<float>().data() + c * node_.m * window + d * plane + h * node_.axis[2].kernel + j;
    for (std::size_t phase = 0; phase < group.size; ++phase)
      for (std::size_t m = 0; m < node_.m; ++m) to.push_back(from[m * window + phase]);
  }

  /// Cuts lines and columns; returns how many tasks they are worth.
  std::size_t share_out(Run& r, const Invocation& call) const {
    const std::size_t parts = node_.cut(r, call, kMostRows, kLeastRows), pieces = r.lines() * r.cuts;
    if (pieces < parts) r.slices = std::min((parts + pieces - 1) / pieces, (columns() + code_.tile - 1) / code_.tile);
    r.together = std::clamp<std::size_t>(blocks_.rows / r.rows_of_cut(), 1, kMostPieces);
    return parts;
  }

  /// Of the largest group.
  std::size_t columns() const {
    std::size_t most = 0;
    for (const PhaseGroup& group : groups_) most = std::max(most, group.size * node_.m);
    return most;
  }

  std::size_t own_floats(const Run& r) const {
    std::size_t most = 0;
    Gemm g;
    g.blocks = blocks_;
    for (const Outer& outer : outer_) {
      for (std::size_t i = 0; i < groups_.size(); ++i) {
        g.k = depth(outer, i);
        most = std::max(most, code_.packed_a_floats(g, r.rows_of_cut(), groups_[i].size * node_.m));
      }
    }
    return (most + 15) / 16 * 16;
  }

  /// Pixels put together.
  std::size_t piece_floats(const Run& r) const {
    const std::size_t pixels = r.rows_of_cut() + size(reach_end_ - reach_begin_);
    return (pixels * most_lines_ * node_.channels + 15) / 16 * 16;
  }

  std::size_t lines_of(const Run& r, const Outer& outer) const {
    return r.batch * places(r.out[0], outer.d.r, node_.axis[0].stride) *
           places(r.out[1], outer.h.r, node_.axis[1].stride);
  }

  /// These pieces: those of one phase of the outer axes after those of the other, there slice after slice.
  void work(const Run& r, std::size_t begin, std::size_t end, float* scratch) const {
    std::size_t first = 0;
    for (const Outer& outer : outer_) {
      const std::size_t pieces = lines_of(r, outer) * r.cuts, last = std::min(end, first + pieces * r.slices);
      for (std::size_t i = std::max(begin, first); i < last;) {
        const std::size_t slice = (i - first) / pieces, piece = (i - first) % pieces;
        const std::size_t count = std::min({r.together, pieces - piece, last - i});
        multiply(r, outer, slice, piece, count, scratch);
        i += count;
      }
      first += pieces * r.slices;
    }
  }

  void multiply(const Run& r, const Outer& outer, std::size_t slice, std::size_t first, std::size_t count,
                float* scratch) const {
    std::array<Piece, kMostPieces> all;
    float* own = scratch;
    scratch += own_floats(r);
    for (std::size_t i = 0; i < count; ++i) all[i] = piece_of(r, outer, first + i, scratch + i * piece_floats(r));
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const std::size_t n = groups_[i].size * node_.m, tiles = (n + code_.tile - 1) / code_.tile;
      const std::size_t end = std::min(n, tiles * (slice + 1) / r.slices * code_.tile);
      // Weights that several pieces are multiplied by stay near meanwhile.
      const std::size_t near = std::max<std::size_t>(2 * blocks_.depth / std::max<std::size_t>(depth(outer, i), 1), 1);
      const std::size_t step = count > 1 ? near * code_.tile : n;
      for (std::size_t at = tiles * slice / r.slices * code_.tile; at < end; at += step) {
        for (std::size_t p = 0; p < count; ++p)
          product(r, outer, i, all[p], at, std::min(at + step, end), count > 1 ? nullptr : own);
      }
    }
  }

  /// The columns [begin, end) of a group.
  void product(const Run& r, const Outer& outer, std::size_t group, const Piece& piece, std::size_t begin,
               std::size_t end, float* own) const {
    const Phase& phase = groups_[group].first;
    const std::size_t stride = node_.axis[2].stride, rows_end = std::min(piece.end, places(r.out[2], phase.r, stride));
    if (piece.begin >= rows_end) return;
    Gemm g;
    g.m = rows_end - piece.begin, g.n = groups_[group].size * node_.m;
    g.b = reinterpret_cast<const float*>(packed_.get()) + outer.weights[group];
    g.ldb = code_.panel, g.panel = code_.panel * depth(outer, group);
    g.c = piece.y + (piece.begin * stride + phase.r) * node_.m, g.ldc = stride * node_.m;
    g.bias = bias_.empty() ? nullptr : bias_.data();
    g.activation = node_.activation;
    g.blocks = blocks_;
    g.lda = outer.lines() * node_.channels;
    if (piece.pixels && phase.taps > 0) {
      g.k = depth(outer, group);
      g.a = piece.pixels + size(number(piece.begin) + phase.shift - piece.first) * g.lda;
    } else {  // bias and activation alone
      g.a = g.c;
    }
    const bool packs = own && code_.packed_a_floats(g, g.m, end - begin) > 0;
    code_.gemm(g, 0, g.m, begin, end, packs ? own : nullptr);
  }

  Piece piece_of(const Run& r, const Outer& outer, std::size_t index, float* memory) const {
    const std::size_t line = index / r.cuts, cut = index % r.cuts;
    const std::size_t planes = places(r.out[0], outer.d.r, node_.axis[0].stride);
    const std::size_t height = places(r.out[1], outer.h.r, node_.axis[1].stride);
    const std::size_t image = line / (planes * height), d = line / height % planes, h = line % height;
    const std::size_t y_d = d * node_.axis[0].stride + outer.d.r, y_h = h * node_.axis[1].stride + outer.h.r;
    Piece piece{r.first_row(cut), r.first_row(cut + 1),
                r.y + ((image * r.out[0] + y_d) * r.out[1] + y_h) * r.out[2] * node_.m};
    const std::int64_t from = number(piece.begin) + reach_begin_, to = number(piece.end) - 1 + reach_end_;
    for (std::size_t i = 0; i < outer.lines() && r.in[2] > 0; ++i) {
      const float* x = input_line(r, outer, image, d, h, i);
      if (!x) continue;
      if (outer.lines() == 1 && from >= 0 && to <= number(r.in[2])) {
        piece.pixels = x, piece.first = 0;  // as they lie
        return piece;
      }
      piece.pixels = memory, piece.first = from;
    }
    if (!piece.pixels) return piece;
    for (std::size_t i = 0; i < outer.lines(); ++i)
      put_line(r, input_line(r, outer, image, d, h, i), from, to, outer.lines() * node_.channels,
               memory + i * node_.channels);
    return piece;
  }

  /// Line `i` of those in reach of an output line; null where that is outside of x.
  const float* input_line(const Run& r, const Outer& outer, std::size_t image, std::size_t d, std::size_t h,
                          std::size_t i) const {
    return node_.line(r, image, number(d + i / outer.h.taps) + outer.d.shift,
                      number(h + i % outer.h.taps) + outer.h.shift);
  }

  /// The pixels [from, to) of a line, `step` floats apart, zeros outside of x.
  void put_line(const Run& r, const float* x, std::int64_t from, std::int64_t to, std::size_t step, float* out) const {
    for (std::int64_t pixel = from; pixel < to; ++pixel, out += step) {
      if (x && inside(pixel, r.in[2]))
        std::copy_n(x + size(pixel) * node_.channels, node_.channels, out);
      else
        std::fill_n(out, node_.channels, 0.0f);
    }
  }

  const F32Code& code_;
  GemmBlocks blocks_;
  ConvTransposeNode node_;
  std::size_t most_lines_ = 0;
  std::vector<PhaseGroup> groups_;  ///< of the last axis
  std::vector<Outer> outer_;        ///< of those around it
  /// What row v of a line needs: pixels from v + begin to v + end - 1.
  std::int64_t reach_begin_ = std::numeric_limits<std::int64_t>::max(), reach_end_ = 0;
  std::shared_ptr<const std::byte> packed_;
  std::vector<float> bias_;
};

}  // namespace

std::unique_ptr<Implementation> overlapping_conv_transpose(const Call& call, const Target& target,
                                                           const F32Code& code) {
  return std::make_unique<OverlappingConvTranspose>(call, target, code);
}

}  // namespace modelflow::cpu
