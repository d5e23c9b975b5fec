// One task of an 8-bit convolution on AMX. Tiles are loaded from rows at one distance: from the pixels themselves where
// a window is one of them, else from copies of windows (im2col for as many pixels as stay in L2), which all filters of
// the task read.
#include "backends/cpu/gemm/tiles_amx.h"
#include "backends/cpu/qconv/dense.h"
#include "backends/cpu/qconv/epilogue_vnni.h"
#include "backends/cpu/qconv/windows_vnni.h"

namespace modelflow::cpu {
namespace {

/// The copies of windows stay in L2 (2 MiB) beside some panels of weights.
constexpr std::int64_t kCopyBytes = 512 << 10;
constexpr auto kTilePixels = static_cast<std::int64_t>(kTileRows);
constexpr std::size_t kSumsBytes = kTileBlock * kTileBlock * sizeof(std::int32_t);

std::size_t row_bytes(const QDenseRun& run) { return tile_row(static_cast<std::size_t>(window_bytes(run))); }

/// Tiles of pixels that are copied at once, an even number.
std::int64_t tiles_at_once(const QDenseRun& run, const PixelTiles& tiles) {
  const std::int64_t pair = 2 * kTilePixels * static_cast<std::int64_t>(row_bytes(run)), fit = kCopyBytes / pair * 2;
  const std::int64_t all = (tiles.count + 1) / 2 * 2;
  return fit < 2 ? 2 : fit < all ? fit : all;
}

PixelTiles tiles_of(const QDenseTask& task) { return {task.pixel1 - task.pixel0, kTilePixels}; }

/// The windows of a tile's pixels, each in a row of `row` bytes. What a row holds behind its window meets weights of 0.
void copy_windows(const QSweep& s, const PixelTiles& tiles, std::int64_t tile, std::size_t row, std::byte* to) {
  const std::int64_t pixels = tiles.pixels(tile), whole = s.length / 64 * 64;
  const std::uint8_t* const* table = s.table + tiles.begin(tile) * s.segments;
  const __mmask64 rest = s.length > whole ? ~std::uint64_t{0} >> (64 - (s.length - whole)) : 0;
  for (std::int64_t segment = 0; segment < s.segments; ++segment, to += s.length, table += pixels) {
    std::byte* out = to;
    for (std::int64_t r = 0; r < pixels; ++r, out += row) {
      const std::uint8_t* in = table[r];
      for (std::int64_t i = 0; i < whole; i += 64) _mm512_storeu_si512(out + i, _mm512_loadu_si512(in + i));
      if (rest) _mm512_mask_storeu_epi8(out + whole, rest, _mm512_maskz_loadu_epi8(rest, in + whole));
    }
  }
}

/// Tiles [first, first + count) of a task, and where their rows lie: `copies` for all tiles, or where they are in x.
struct Batch {
  std::int64_t first, count;
  std::size_t row;
  const std::byte* copies;
  bool in_place;

  const std::byte* at(const QSweep& s, const PixelTiles& tiles, std::int64_t tile) const {
    if (in_place) return reinterpret_cast<const std::byte*>(s.table[tiles.begin(tile)]);
    return copies + static_cast<std::size_t>(tile - first) * kTileRows * row;
  }
};

/// Whether tiles can be loaded from x: windows of one pixel, whole lines of channels, and 16 pixels to read everywhere.
bool in_place(const QSweep& s, const PixelTiles& tiles, std::int64_t first, std::int64_t count) {
  if (!s.is_product || s.length % 64 != 0) return false;
  const ConvGeometry& g = s.run.geometry;
  return s.task.pixel0 + tiles.begin(first + count - 1) + kTilePixels <= g.batch * g.height * g.width;
}

/// A batch by all filters of a panel.
template <int N>
void run_panel(const QSweep& s, const QFinish& finish, const QPanel& panel, const PixelTiles& tiles, const Batch& batch,
               std::int32_t* sums) {
  const std::size_t steps = tile_steps(static_cast<std::size_t>(window_bytes(s.run)));
  const std::int64_t offset = panel.first - s.run.panels[s.task.panel0].first;
  const std::int8_t* b = s.run.weights + panel.offset;
  TileProduct p{nullptr, batch.row, 0, b, steps, s.run.begin + panel.scales, 0, sums};
  // The next panel is brought into L2, each pair of tiles a part of it.
  const std::size_t pairs = static_cast<std::size_t>(batch.count + 1) / 2, lines = kTileRows * N;
  const std::size_t each = (lines + pairs - 1) / pairs;
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - panel.filters);
  for (std::int64_t i = 0; i < batch.count; i += 2) {
    const std::size_t fetched = static_cast<std::size_t>(i / 2) * each;
    const int rows = i + 1 < batch.count ? 2 : 1;
    const std::byte* a = batch.at(s, tiles, batch.first + i);
    p.a = a;
    p.a_low = rows == 2 ? static_cast<std::size_t>(batch.at(s, tiles, batch.first + i + 1) - a) : 0;
    const FetchLines next{b + (lines + fetched) * steps * kTileBytes, fetched < lines ? each : 0};
    multiply_tiles<TileKind::bytes>(p, rows, N, next);
    for (int r = 0; r < rows; ++r) {
      const std::int64_t tile = batch.first + i + r;
      const std::ptrdiff_t at = tiles.begin(tile) * s.target.step + offset;
      const QTarget target{s.target.y + at, s.target.added ? s.target.added + at : nullptr, s.target.step, mask};
      finish_pixels<N>(finish, sums + static_cast<std::size_t>(r) * kTileRows * kTileColumns * N,
                       s.run.scale + panel.scales, target, static_cast<int>(tiles.pixels(tile)));
    }
  }
}

void run_tiles(const QSweep& s, std::byte* scratch) {
  const TileRegisters registers;
  const QFinish finish = finish_of(s.run.epilogue);
  const PixelTiles tiles = tiles_of(s.task);
  const std::int64_t at_once = tiles_at_once(s.run, tiles);
  auto* sums = reinterpret_cast<std::int32_t*>(scratch);
  std::byte* copies = scratch + kSumsBytes;
  for (std::int64_t first = 0; first < tiles.count; first += at_once) {
    Batch batch{first, at_once < tiles.count - first ? at_once : tiles.count - first, row_bytes(s.run), copies, false};
    batch.in_place = in_place(s, tiles, first, batch.count);
    if (batch.in_place) batch.row = static_cast<std::size_t>(s.length);
    for (std::int64_t i = 0; i < batch.count && !batch.in_place; ++i)
      copy_windows(s, tiles, first + i, batch.row, copies + static_cast<std::size_t>(i) * kTileRows * batch.row);
    for (std::int64_t i = s.task.panel0; i < s.task.panel1; ++i) {
      const QPanel& panel = s.run.panels[i];
      (panel.vectors == 2 ? run_panel<2> : run_panel<1>)(s, finish, panel, tiles, batch, sums);
    }
  }
}

}  // namespace

std::size_t qdense_scratch_amx(const QDenseRun& run, const QDenseTask& task) {
  const auto tiles = static_cast<std::size_t>(tiles_at_once(run, tiles_of(task)));
  return (qsweep_bytes(run, task) + 63) / 64 * 64 + kSumsBytes + tiles * kTileRows * row_bytes(run);
}

void qdense_block_amx(const QDenseRun& run, const QDenseTask& task, std::byte* scratch) {
  qsweep_vnni(run, task, kTilePixels, scratch, run_tiles);
}

}  // namespace modelflow::cpu
