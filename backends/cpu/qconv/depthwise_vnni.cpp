// One task of a depthwise convolution of 8-bit numbers: rows are interleaved, and strips of neighbouring results are
// summed in registers.
#include "backends/cpu/qconv/depthwise_vnni.h"

#include "backends/cpu/qconv/epilogue_vnni.h"

namespace modelflow::cpu {
namespace {

/// The interleaved bytes and the sums of a piece of this many bytes stay in L1.
constexpr std::int64_t kPieceBytes = 24 << 10;
/// Vectors of sums that a strip holds in registers, for 1, 2 and 4 rows of results.
constexpr int kStrip[5] = {0, 8, 8, 0, 6};

/// One piece: some columns of some rows of results for one block of channels. Columns of x that are a stride apart lie
/// together (a `phase`), so that neighbouring results read neighbouring bytes.
struct Piece {
  std::int64_t units, pixels;          ///< of 16 bytes per pixel; pixels per vector
  std::int64_t columns;                ///< of results
  std::int64_t vectors;                ///< of results, per row
  std::int64_t phase, quad;            ///< steps in bytes of the interleaved data, per vector of sums
  std::int64_t part;                   ///< from one of the four vectors of sums to the next
  std::int64_t strips, strip, larger;  ///< of vectors: their number, their size, how many have one more
};

std::int64_t shift_of(const ConvGeometry& g) { return (g.kernel_w - 1) * g.dilation_w / g.stride_w; }

Piece piece_of(const ConvGeometry& g, std::int64_t units, std::int64_t columns) {
  Piece p{};
  p.units = units, p.pixels = 4 / units, p.columns = columns;
  p.vectors = (columns + p.pixels - 1) / p.pixels;
  // Whole vectors, and one more that the last shifted read may touch.
  p.part = ((columns + shift_of(g) + p.pixels - 1) / p.pixels + 1) * 64;
  p.phase = 4 * p.part;
  p.quad = g.stride_w * p.phase;
  const std::int64_t most = kStrip[depthwise_rows(g).results];
  p.strips = (p.vectors + most - 1) / most;
  p.strip = p.vectors / p.strips, p.larger = p.vectors % p.strips;
  return p;
}

std::int64_t columns_of(const ConvGeometry& g, std::int64_t units) {
  const QDepthRows rows = depthwise_rows(g);
  const std::int64_t pixel = 64 * units * (rows.quads * g.stride_w + rows.results);
  const std::int64_t pixels = 4 / units, most = kPieceBytes / pixel / pixels * pixels;
  return most < 8 ? 8 : most > g.columns ? g.columns : most;
}

/// Four rows of x; rows in the padding stand still at 64 zero points.
struct Rows {
  const std::uint8_t* first[4];  ///< column 0
  std::int64_t pixel[4];         ///< step in bytes
};

/// `Pixels` of a row, `step` bytes apart, into one vector: one of 64 channels, two of 32, four of 16.
template <int Pixels>
MODELFLOW_INLINE __m512i load_pixels(const std::uint8_t* at, std::int64_t step, std::uint64_t mask) {
  if constexpr (Pixels == 1) return _mm512_maskz_loadu_epi8(mask, at);
  if constexpr (Pixels == 2) {
    const auto m = static_cast<__mmask32>(mask);
    const __m512i low = _mm512_castsi256_si512(_mm256_maskz_loadu_epi8(m, at));
    return _mm512_inserti64x4(low, _mm256_maskz_loadu_epi8(m, at + step), 1);
  }
  const auto m = static_cast<__mmask16>(mask);
  __m512i v = _mm512_castsi128_si512(_mm_maskz_loadu_epi8(m, at));
  v = _mm512_inserti32x4(v, _mm_maskz_loadu_epi8(m, at + step), 1);
  v = _mm512_inserti32x4(v, _mm_maskz_loadu_epi8(m, at + 2 * step), 2);
  return _mm512_inserti32x4(v, _mm_maskz_loadu_epi8(m, at + 3 * step), 3);
}

/// Four vectors, byte by byte, to the four vectors of sums, `part` bytes apart.
MODELFLOW_INLINE void store_interleaved(const __m512i (&r)[4], std::uint8_t* to, std::int64_t part) {
  const __m512i low01 = _mm512_unpacklo_epi8(r[0], r[1]), high01 = _mm512_unpackhi_epi8(r[0], r[1]);
  const __m512i low23 = _mm512_unpacklo_epi8(r[2], r[3]), high23 = _mm512_unpackhi_epi8(r[2], r[3]);
  _mm512_storeu_si512(to, _mm512_unpacklo_epi16(low01, low23));
  _mm512_storeu_si512(to + part, _mm512_unpackhi_epi16(low01, low23));
  _mm512_storeu_si512(to + 2 * part, _mm512_unpacklo_epi16(high01, high23));
  _mm512_storeu_si512(to + 3 * part, _mm512_unpackhi_epi16(high01, high23));
}

/// A vector of which some pixels lie in the padding.
template <int Pixels>
void interleave_border(const QDepthwiseRun& run, const Rows& rows, std::int64_t column, std::uint64_t mask,
                       std::uint8_t* to, std::int64_t part) {
  const ConvGeometry& g = run.geometry;
  __m512i r[4];
  for (int j = 0; j < 4; ++j) {
    alignas(64) std::uint8_t pixels[64];
    for (int i = 0; i < Pixels; ++i) {
      const std::int64_t c = column + i * g.stride_w;
      const std::uint8_t* from = c >= 0 && c < g.width ? rows.first[j] + c * rows.pixel[j] : run.zeros;
      const __m512i pixel = _mm512_maskz_loadu_epi8(mask, from);
      if constexpr (Pixels == 1) _mm512_store_si512(pixels, pixel);
      if constexpr (Pixels == 2)
        _mm256_store_si256(reinterpret_cast<__m256i*>(pixels) + i, _mm512_castsi512_si256(pixel));
      if constexpr (Pixels == 4) _mm_store_si128(reinterpret_cast<__m128i*>(pixels) + i, _mm512_castsi512_si128(pixel));
    }
    r[j] = _mm512_load_si512(pixels);
  }
  store_interleaved(r, to, part);
}

/// Four rows, byte by byte, for columns from `column` on, `stride_w` apart.
template <int Pixels>
void interleave(const QDepthwiseRun& run, const Piece& p, const Rows& rows, std::int64_t column, std::uint64_t mask,
                std::uint8_t* to) {
  const ConvGeometry& g = run.geometry;
  const std::int64_t vectors = p.part / 64 - 1, step = Pixels * g.stride_w, reach = (Pixels - 1) * g.stride_w;
  std::int64_t i = 0;
  for (; i < vectors && column < 0; ++i, column += step, to += 64)
    interleave_border<Pixels>(run, rows, column, mask, to, p.part);
  for (; i < vectors && column + reach < g.width; ++i, column += step, to += 64) {
    __m512i r[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j)
      r[j] = load_pixels<Pixels>(rows.first[j] + column * rows.pixel[j], g.stride_w * rows.pixel[j], mask);
    store_interleaved(r, to, p.part);
  }
  for (; i < vectors; ++i, column += step, to += 64) interleave_border<Pixels>(run, rows, column, mask, to, p.part);
}

/// Sums of some neighbouring vectors for all rows of results.
struct Strip {
  const std::uint8_t* x;  ///< interleaved, of one vector of sums
  const std::int8_t* w;
  const std::int32_t* begin;
  std::int64_t quads, taps;
  std::int64_t quad;                ///< step of x
  const std::int64_t* tap_offsets;  ///< of x
  std::int32_t* sums;
  std::int64_t row;  ///< step of sums
};

template <int Rows, int T>
void sum_strip(const Strip& s) {
  __m512i acc[Rows][T];
#pragma GCC unroll 4
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) acc[i][t] = _mm512_loadu_si512(s.begin);
  }
  const std::int8_t* w = s.w;
  const std::uint8_t* quad = s.x;
  for (std::int64_t q = 0; q < s.quads; ++q, quad += s.quad) {
    for (std::int64_t k = 0; k < s.taps; ++k, w += 64 * Rows) {
      const std::uint8_t* x = quad + s.tap_offsets[k];
      __m512i v[T];
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) v[t] = _mm512_loadu_si512(x + 64 * t);
#pragma GCC unroll 4
      for (int i = 0; i < Rows; ++i) {
        const __m512i weights = _mm512_loadu_si512(w + 64 * i);
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) multiply_add4(acc[i][t], v[t], weights);
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) _mm512_storeu_si512(s.sums + i * s.row + 16 * t, acc[i][t]);
  }
}

using StripFunction = void (*)(const Strip&);

template <int Rows, int T = kStrip[Rows]>
StripFunction strip_of(std::int64_t vectors) {
  if constexpr (T > 1) {
    if (vectors < T) return strip_of<Rows, T - 1>(vectors);
  }
  return sum_strip<Rows, T>;
}

StripFunction strip_function(std::int64_t rows, std::int64_t vectors) {
  return rows == 1 ? strip_of<1>(vectors) : rows == 2 ? strip_of<2>(vectors) : strip_of<4>(vectors);
}

/// Where the results of a piece go.
struct Output {
  std::int64_t rows, row_step;  ///< that exist; bytes from row to row
  std::int64_t at;              ///< of the first pixel
  std::uint64_t mask;           ///< channels of a pixel that exist
};

/// `bytes`: the results of one vector of pixels.
MODELFLOW_INLINE void store_pixels(const ConvGeometry& g, const Piece& p, std::int64_t column, std::uint64_t mask,
                                   __m512i bytes, std::uint8_t* y) {
  if (p.units == 4) return _mm512_mask_storeu_epi8(y, mask, bytes);
  const std::int64_t left = p.columns - column;
  for (std::int64_t i = 0; i < (left < p.pixels ? left : p.pixels); ++i, y += g.channels) {
    const __m512i first = bytes;
    if (p.units == 2) {
      _mm256_mask_storeu_epi8(y, static_cast<__mmask32>(mask), _mm512_castsi512_si256(first));
      bytes = _mm512_shuffle_i64x2(bytes, bytes, 0x0e);
    } else {
      _mm_mask_storeu_epi8(y, static_cast<__mmask16>(mask), _mm512_castsi512_si128(first));
      bytes = _mm512_shuffle_i64x2(bytes, bytes, 0x39);
    }
  }
}

/// The residual of one vector of pixels, in the order of the bytes of a result.
MODELFLOW_INLINE __m512i load_residual(const ConvGeometry& g, const Piece& p, std::int64_t column, std::uint64_t mask,
                                       const std::uint8_t* from) {
  if (p.units == 4) return _mm512_maskz_loadu_epi8(mask, from);
  alignas(64) std::uint8_t bytes[64] = {};
  const std::int64_t left = p.columns - column, unit = 16 * p.units;
  for (std::int64_t i = 0; i < (left < p.pixels ? left : p.pixels); ++i)
    _mm512_mask_storeu_epi8(bytes + i * unit, mask, _mm512_maskz_loadu_epi8(mask, from + i * g.channels));
  return _mm512_load_si512(bytes);
}

/// Bytes 4 * `vector` .. of each lane as floats.
MODELFLOW_INLINE __m512 floats_of(__m512i bytes, int vector) {
  const __m128i order = _mm_setr_epi8(0, -1, -1, -1, 1, -1, -1, -1, 2, -1, -1, -1, 3, -1, -1, -1);
  const __m128i from = _mm_add_epi8(
      order, _mm_setr_epi8(static_cast<char>(4 * vector), 0, 0, 0, static_cast<char>(4 * vector), 0, 0, 0,
                           static_cast<char>(4 * vector), 0, 0, 0, static_cast<char>(4 * vector), 0, 0, 0));
  return _mm512_cvtepi32_ps(_mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(from)));
}

template <bool Bounded, bool Added, class Act>
MODELFLOW_INLINE void finish_columns(const QDepthwiseRun& run, const Piece& p, const QFinish& f, const Output& out,
                                     const float* scale, const std::int32_t* sums, Act act) {
  const __m512 step = _mm512_set1_ps(f.added_step), at_zero = _mm512_set1_ps(f.added_0);
  __m512 factor[4];
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v)
    factor[v] = _mm512_mul_ps(_mm512_loadu_ps(scale + 16 * v), _mm512_set1_ps(f.gates.before));
  const std::int64_t part = p.vectors * 16, vector = p.pixels * run.geometry.channels;
  for (std::int64_t r = 0; r < out.rows; ++r) {
    std::int64_t at = out.at + r * out.row_step;
    for (std::int64_t i = 0; i < p.vectors; ++i, at += vector) {
      __m512i q[4], bytes = _mm512_setzero_si512();
      if (Added) bytes = load_residual(run.geometry, p, i * p.pixels, out.mask, run.added + at);
      __m512 added[4] = {};
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
        if (Added) added[v] = _mm512_fmadd_ps(floats_of(bytes, v), step, at_zero);
        q[v] = _mm512_loadu_si512(sums + (4 * r + v) * part + 16 * i);
      }
      steps_of<Bounded, Added>(f, q, factor, added, act, q);
      store_pixels(run.geometry, p, i * p.pixels, out.mask, pack_bytes<4>(q, f), run.y + at);
    }
  }
}

__attribute__((noinline)) void finish_piece(const QDepthwiseRun& run, const Piece& p, const QFinish& f,
                                            const Output& out, const float* scale, const std::int32_t* sums) {
  with_finish(f, run.added, [&](auto bounded, auto added, auto act) {
    finish_columns<decltype(bounded)::value, decltype(added)::value>(run, p, f, out, scale, sums, act);
  });
}

struct PieceTask {
  std::int64_t image, row, rows, column;
};

/// Interleaves what the piece reads.
void read_piece(const QDepthwiseRun& run, const QDepthBlock& block, QDepthRows rows, const Piece& p,
                const PieceTask& task, std::uint64_t mask, std::uint8_t* to) {
  const ConvGeometry& g = run.geometry;
  const std::int64_t needed = g.dilation_h == 1 ? (task.rows - 1) * g.stride_h + g.kernel_h : g.kernel_h;
  const std::int64_t column = task.column * g.stride_w - g.left;
  for (std::int64_t q = 0; q < rows.quads; ++q) {
    Rows from{};
    for (std::int64_t j = 0; j < 4; ++j) {
      const std::int64_t slot = 4 * q + j, y = task.row * g.stride_h - g.top + slot * g.dilation_h;
      const bool inside = slot < needed && y >= 0 && y < g.height;
      from.first[j] = inside ? run.x + (task.image * g.height + y) * g.width * g.channels + block.first : run.zeros;
      from.pixel[j] = inside ? g.channels : 0;
    }
    for (std::int64_t phase = 0; phase < g.stride_w; ++phase) {
      std::uint8_t* at = to + q * p.quad + phase * p.phase;
      if (p.pixels == 1) interleave<1>(run, p, from, column + phase, mask, at);
      if (p.pixels == 2) interleave<2>(run, p, from, column + phase, mask, at);
      if (p.pixels == 4) interleave<4>(run, p, from, column + phase, mask, at);
    }
  }
}

void sum_piece(const QDepthwiseRun& run, const QDepthBlock& block, QDepthRows rows, const Piece& p,
               const std::int64_t* tap_offsets, const std::uint8_t* x, std::int32_t* sums) {
  const ConvGeometry& g = run.geometry;
  const StripFunction normal = strip_function(rows.results, p.strip);
  const StripFunction bigger = strip_function(rows.results, p.strip + 1);
  for (std::int64_t v = 0; v < 4; ++v) {
    Strip s{x + v * p.part,
            run.weights + block.weights + v * rows.quads * g.kernel_w * rows.results * 64,
            run.begin + block.scales + 16 * v,
            rows.quads,
            g.kernel_w,
            p.quad,
            tap_offsets,
            sums + v * p.vectors * 16,
            4 * p.vectors * 16};
    for (std::int64_t i = 0; i < p.strips; ++i) {
      const std::int64_t vectors = p.strip + (i < p.larger);
      (i < p.larger ? bigger : normal)(s);
      s.x += 64 * vectors, s.sums += 16 * vectors;
    }
  }
}

}  // namespace

std::size_t qdepthwise_scratch(const ConvGeometry& g) {
  const QDepthRows rows = depthwise_rows(g);
  std::int64_t most = 0;
  for (const std::int64_t units : {1, 2, 4}) {
    const Piece p = piece_of(g, units, columns_of(g, units));
    const std::int64_t bytes = rows.quads * p.quad + rows.results * 4 * p.vectors * 64;
    most = bytes > most ? bytes : most;
  }
  return static_cast<std::size_t>(most + (g.kernel_w * 8 + 63) / 64 * 64);
}

void qdepthwise_block_vnni(const QDepthwiseRun& run, const QDepthTask& task, std::byte* scratch) {
  const ConvGeometry& g = run.geometry;
  const QDepthRows rows = depthwise_rows(g);
  const QFinish finish = finish_of(run.epilogue);
  auto* tap_offsets = reinterpret_cast<std::int64_t*>(scratch);
  auto* memory = reinterpret_cast<std::uint8_t*>(scratch) + (g.kernel_w * 8 + 63) / 64 * 64;
  for (std::int64_t b = task.block0; b < task.block1; ++b) {
    const QDepthBlock& block = run.blocks[b];
    const std::int64_t width = columns_of(g, block.units);
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - block.channels);
    for (std::int64_t column = 0; column < g.columns; column += width) {
      const Piece p = piece_of(g, block.units, g.columns - column < width ? g.columns - column : width);
      for (std::int64_t k = 0; k < g.kernel_w; ++k) {
        const std::int64_t at = k * g.dilation_w;
        tap_offsets[k] = at % g.stride_w * p.phase + at / g.stride_w * p.units * 16;
      }
      auto* sums = reinterpret_cast<std::int32_t*>(memory + rows.quads * p.quad);
      for (std::int64_t row = task.row0; row < task.row1; row += rows.results) {
        const std::int64_t count = task.row1 - row < rows.results ? task.row1 - row : rows.results;
        read_piece(run, block, rows, p, {task.image, row, count, column}, mask, memory);
        sum_piece(run, block, rows, p, tap_offsets, memory, sums);
        const std::int64_t at = ((task.image * g.rows + row) * g.columns + column) * g.channels + block.first;
        finish_piece(run, p, finish, {count, g.columns * g.channels, at, mask}, run.scale + block.scales, sums);
      }
    }
  }
}

}  // namespace modelflow::cpu
