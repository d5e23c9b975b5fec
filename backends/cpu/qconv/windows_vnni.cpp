// Fills the table of windows tile by tile, and copies operands and results of a task where their order asks for it.
#include "backends/cpu/qconv/windows_vnni.h"

#include <immintrin.h>

#include "backends/cpu/qconv/layout.h"
#include "backends/cpu/vector/activation.h"

namespace modelflow::cpu {
namespace {

/// x as the row pointers see it: the tensor itself, or a copy of what the task reads with its padding.
struct QSource {
  const std::uint8_t* data;
  std::int64_t height, width;      ///< beyond them lies padding
  std::int64_t image, row, pixel;  ///< steps in bytes
  std::int64_t stride_h, stride_w, top, left;
  std::int64_t first;  ///< the output pixel that its first window belongs to
};

BandShape shape_of(const ConvGeometry& g, const QDenseTask& task) {
  const std::int64_t row0 = task.pixel0 / g.columns % g.rows, rows = (task.pixel1 - task.pixel0) / g.columns;
  return band_shape(g, {0, row0, row0 + rows, 0, g.columns}, true);
}

std::int64_t round_up(std::int64_t n) { return (n + 63) / 64 * 64; }

std::int64_t segments_of(const QDenseRun& run) {
  return run.geometry.kernel_h * (run.joined ? 1 : run.geometry.kernel_w);
}

std::int64_t length_of(const QDenseRun& run) {
  return ((run.joined ? run.geometry.kernel_w : 1) * run.group_channels + 3) / 4 * 4;
}

std::int64_t filters_of(const QDenseRun& run, const QDenseTask& task) {
  const QPanel& last = run.panels[task.panel1 - 1];
  return last.first + last.filters - run.panels[task.panel0].first;
}

struct Sizes {
  std::int64_t table, band, result, added;  ///< in bytes
};

Sizes sizes(const QDenseRun& run, const QDenseTask& task) {
  const ConvGeometry& g = run.geometry;
  const std::int64_t pixels = task.pixel1 - task.pixel0;
  Sizes s{};
  // All 16 lanes are stored where a tile has fewer pixels.
  s.table = round_up((pixels * segments_of(run) + 16) * static_cast<std::int64_t>(sizeof(std::uint8_t*)));
  if (run.copied) {
    const BandShape shape = shape_of(g, task);
    s.band = round_up(shape.rows * shape.columns * g.channels + 3);  // the last window is read up to 3 bytes too far
  }
  if (!g.y_last) s.result = round_up(pixels * filters_of(run, task));
  if (!g.y_last && run.added) s.added = s.result;
  return s;
}

QSource source_of(const QDenseRun& run, const QDenseTask& task, std::uint8_t* memory) {
  const ConvGeometry& g = run.geometry;
  if (!run.copied) {
    const std::int64_t row = g.width * g.channels;
    return {run.x, g.height, g.width, g.height * row, row, g.channels, g.stride_h, g.stride_w, g.top, g.left, 0};
  }
  const BandShape s = shape_of(g, task);
  copy_band_bytes(g, run.x, task.pixel0 / (g.rows * g.columns), s, run.x_zero, memory);
  return {memory,
          s.rows,
          s.columns,
          0,
          s.columns * g.channels,
          g.channels,
          g.kernel_h == 1 ? 1 : g.stride_h,
          g.kernel_w == 1 ? 1 : g.stride_w,
          0,
          0,
          task.pixel0};
}

MODELFLOW_INLINE __m512i all(std::int64_t value) { return _mm512_set1_epi32(static_cast<int>(value)); }

/// 16 neighbouring pixels of y. Kept up to date from tile to tile: divisions would take longer than a small tile.
class Pixels {
 public:
  Pixels(const ConvGeometry& g, std::int64_t first) : columns_(all(g.columns)), rows_(all(g.rows)) {
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    column = _mm512_add_epi32(all(first % g.columns), lanes);
    row = all(first / g.columns % g.rows), image = all(first / g.columns / g.rows);
    carry(column, columns_, row);
    carry(row, rows_, image);
  }
  void advance(std::int64_t pixels) {
    column = _mm512_add_epi32(column, all(pixels));
    carry(column, columns_, row);
    carry(row, rows_, image);
  }
  __m512i column, row, image;

 private:
  static void carry(__m512i& digit, __m512i base, __m512i& next) {
    while (const __mmask16 over = _mm512_cmpge_epi32_mask(digit, base)) {
      digit = _mm512_mask_sub_epi32(digit, over, digit, base);
      next = _mm512_mask_add_epi32(next, over, next, _mm512_set1_epi32(1));
    }
  }
  __m512i columns_, rows_;
};

/// Where the first tap of each lies.
struct Windows {
  __m512i y, x;        ///< row and column in the source, 32 bits
  __m512i offsets[2];  ///< from its start, 64 bits
};

MODELFLOW_INLINE Windows windows_of(const QSource& s, const Pixels& pixels) {
  Windows w;
  w.y = _mm512_sub_epi32(_mm512_mullo_epi32(pixels.row, all(s.stride_h)), all(s.top));
  w.x = _mm512_sub_epi32(_mm512_mullo_epi32(pixels.column, all(s.stride_w)), all(s.left));
  const auto half = [](__m512i v, int i) {
    return _mm512_cvtepi32_epi64(i ? _mm512_extracti64x4_epi64(v, 1) : _mm512_castsi512_si256(v));
  };
  for (int i = 0; i < 2; ++i) {
    const __m512i row = _mm512_mul_epi32(half(w.y, i), _mm512_set1_epi64(s.row));
    const __m512i pixel = _mm512_mul_epi32(half(w.x, i), _mm512_set1_epi64(s.pixel));
    const __m512i image = _mm512_mullo_epi64(half(pixels.image, i), _mm512_set1_epi64(s.image));
    w.offsets[i] = _mm512_add_epi64(image, _mm512_add_epi64(row, pixel));
  }
  return w;
}

/// Whether output pixels are the pixels of the source, one after the other.
bool is_product(const ConvGeometry& g, const QSource& s) {
  return g.kernel_h * g.kernel_w * s.stride_h * s.stride_w == 1 && s.top == 0 && s.left == 0 && g.rows == s.height &&
         g.columns == s.width;
}

/// The segments of a tile whose windows lie inside, or cover padding that the copy holds. Returns where the table ends.
const std::uint8_t** fill_inside(const QDenseRun& run, const QSource& s, const Windows& w, std::int64_t pixels,
                                 const std::uint8_t** table) {
  const ConvGeometry& g = run.geometry;
  const __m512i down = _mm512_set1_epi64(g.dilation_h * s.row), right = _mm512_set1_epi64(g.dilation_w * s.pixel);
  const __m512i data = _mm512_set1_epi64(reinterpret_cast<std::int64_t>(s.data));
  const std::int64_t columns = run.joined ? 1 : g.kernel_w;
  __m512i low = _mm512_add_epi64(data, w.offsets[0]), high = _mm512_add_epi64(data, w.offsets[1]);
  for (std::int64_t h = 0; h < g.kernel_h; ++h) {
    __m512i at[2] = {low, high};
    for (std::int64_t k = 0; k < columns; ++k, table += pixels) {
      _mm512_storeu_si512(table, at[0]);
      _mm512_storeu_si512(table + 8, at[1]);
      at[0] = _mm512_add_epi64(at[0], right), at[1] = _mm512_add_epi64(at[1], right);
    }
    low = _mm512_add_epi64(low, down), high = _mm512_add_epi64(high, down);
  }
  return table;
}

/// The same where some lie in the padding.
const std::uint8_t** fill_border(const QDenseRun& run, const QSource& s, const Windows& w, std::int64_t pixels,
                                 const std::uint8_t** table) {
  const ConvGeometry& g = run.geometry;
  const __m512i padding = _mm512_set1_epi64(reinterpret_cast<std::int64_t>(run.zeros));
  for (std::int64_t h = 0; h < g.kernel_h; ++h) {
    const __mmask16 row = _mm512_cmplt_epu32_mask(_mm512_add_epi32(w.y, all(h * g.dilation_h)), all(s.height));
    for (std::int64_t k = 0; k < g.kernel_w; ++k, table += pixels) {
      const __m512i x = _mm512_add_epi32(w.x, all(k * g.dilation_w));
      const __mmask16 inside = _mm512_mask_cmplt_epu32_mask(row, x, all(s.width));
      const std::int64_t offset = h * g.dilation_h * s.row + k * g.dilation_w * s.pixel;
      const __m512i base = _mm512_set1_epi64(reinterpret_cast<std::int64_t>(s.data) + offset);
      for (int half = 0; half < 2; ++half) {
        const auto mask = static_cast<__mmask8>(inside >> (8 * half));
        _mm512_storeu_si512(table + 8 * half, _mm512_mask_add_epi64(padding, mask, base, w.offsets[half]));
      }
    }
  }
  return table;
}

/// For every tile, segment and pixel the address of what that segment reads.
void fill_table(const QDenseRun& run, const QSource& s, const QDenseTask& task, std::int64_t most,
                const std::uint8_t** table) {
  const ConvGeometry& g = run.geometry;
  if (is_product(g, s)) {
    for (std::int64_t i = task.pixel0; i < task.pixel1; ++i) *table++ = s.data + (i - s.first) * s.pixel;
    return;
  }
  const PixelTiles tiles(task.pixel1 - task.pixel0, most);
  // First rows and columns of windows that lie inside.
  const std::int64_t down = s.height - (g.kernel_h - 1) * g.dilation_h;
  const std::int64_t right = s.width - (g.kernel_w - 1) * g.dilation_w;
  const __m512i rows = all(down > 0 ? down : 0), columns = all(right > 0 ? right : 0);
  Pixels position(g, task.pixel0 - s.first);
  for (std::int64_t i = 0; i < tiles.count; ++i) {
    const std::int64_t pixels = tiles.size + (i < tiles.larger);
    const Windows w = windows_of(s, position);
    position.advance(pixels);
    const auto lanes = static_cast<__mmask16>((1u << pixels) - 1);
    const __mmask16 inside = _mm512_mask_cmplt_epu32_mask(_mm512_cmplt_epu32_mask(w.y, rows), w.x, columns);
    const bool all_inside = run.copied || (inside & lanes) == lanes;
    table = all_inside ? fill_inside(run, s, w, pixels, table) : fill_border(run, s, w, pixels, table);
  }
}

/// Bytes of channels-second y (or residual) that belong to the first pixel and filter of the task.
std::int64_t plane_offset(const ConvGeometry& g, const QDenseTask& task, std::int64_t first) {
  const std::int64_t plane = g.rows * g.columns;
  return (task.pixel0 / plane * g.filters + first) * plane + task.pixel0 % plane;
}

}  // namespace

std::int64_t window_bytes(const QDenseRun& run) { return segments_of(run) * length_of(run); }

std::size_t qsweep_bytes(const QDenseRun& run, const QDenseTask& task) {
  const Sizes s = sizes(run, task);
  return static_cast<std::size_t>(s.table + s.band + s.result + s.added);
}

void qsweep_vnni(const QDenseRun& run, const QDenseTask& task, std::int64_t most, std::byte* scratch,
                 QProducts products) {
  const ConvGeometry& g = run.geometry;
  const Sizes s = sizes(run, task);
  auto* table = reinterpret_cast<const std::uint8_t**>(scratch);
  auto* band = reinterpret_cast<std::uint8_t*>(scratch) + s.table;
  std::uint8_t *result = band + s.band, *added = result + s.result;
  const QSource source = source_of(run, task, band);
  const std::int64_t pixels = task.pixel1 - task.pixel0, plane = g.rows * g.columns;
  const std::int64_t first = run.panels[task.panel0].first, filters = filters_of(run, task);
  if (s.added) transpose_bytes(run.added + plane_offset(g, task, first), plane, added, filters, filters, pixels);
  QTarget target{result, s.added ? added : nullptr, filters, 0};
  if (g.y_last) {
    const std::int64_t at = task.pixel0 * g.filters + first;
    target = {run.y + at, run.added ? run.added + at : nullptr, g.filters, 0};
  }
  fill_table(run, source, task, most, table);
  products({run, task, most, segments_of(run), length_of(run), table, !run.copied && is_product(g, source), target},
           reinterpret_cast<std::byte*>(added + s.added));
  if (!g.y_last) transpose_bytes(result, filters, run.y + plane_offset(g, task, first), plane, pixels, filters);
}

}  // namespace modelflow::cpu
