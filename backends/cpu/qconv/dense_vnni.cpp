// One task of an 8-bit convolution on VNNI: panels of filters over batches of tiles.
#include "backends/cpu/qconv/dense.h"
#include "backends/cpu/qconv/tile_vnni.h"
#include "backends/cpu/qconv/windows_vnni.h"

namespace modelflow::cpu {
namespace {

/// Tiles whose sums are finished together: the setting up is shared, and results of several tiles overlap better than
/// those of one. Their sums stay in L1.
constexpr std::int64_t kBatch = 8;

/// Most pixels of a tile: one table of pointers serves all panels.
std::int64_t rows_of(const QDenseRun& run, const QDenseTask& task) {
  std::int64_t rows = kQTileRows[1];
  for (std::int64_t i = task.panel0; i < task.panel1; ++i) {
    const std::int64_t here = kQTileRows[run.panels[i].vectors];
    rows = here < rows ? here : rows;
  }
  return rows;
}

/// Tiles [first, last) for one panel; the table and the target are those of the first. `fetched`: bytes of the weights
/// behind `next` that were brought into L2, of `size`.
struct Weights {
  const std::int8_t* next;
  std::int64_t fetched, size;
};

/// What sums become, and memory for those of a batch.
struct Sums {
  QFinish finish;
  std::int32_t* memory;
};

void run_batch(const QSweep& sweep, const Sums& sums, const QPanel& panel, const PixelTiles& tiles, std::int64_t first,
               Weights& weights) {
  const std::int64_t last = first + kBatch < tiles.count ? first + kBatch : tiles.count;
  const std::int64_t pixel = tiles.begin(first);
  const std::int64_t offset = panel.first - sweep.run.panels[sweep.task.panel0].first;
  const QTarget& all = sweep.target;
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - panel.filters);
  const QTarget target{all.y + pixel * all.step + offset, all.added ? all.added + pixel * all.step + offset : nullptr,
                       all.step, mask};
  const QWidth& width = kQWidths[panel.vectors];
  const QEnd end = !sums.finish.bounded ? QEnd::sums : target.added ? QEnd::added : QEnd::results;
  const QTileFunction normal = width.tile(tiles.size, end), bigger = width.tile(tiles.size + 1, end);
  QTile t{};
  t.rows = sweep.table + pixel * sweep.segments, t.segments = sweep.segments;
  t.from = panel.channel, t.to = panel.channel + sweep.length;
  t.b = sweep.run.weights + panel.offset, t.begin = sweep.run.begin + panel.scales;
  t.scale = sweep.run.scale + panel.scales, t.sums = sums.memory;
  const std::int64_t bytes = t.segments * sweep.length / 4 * 64;
  const std::int64_t batch = kBatch * tiles.size * all.step;
  t.later = target.y + batch, t.later_added = target.added ? target.added + batch : t.later, t.later_step = all.step;
  std::int64_t done = 0;
  QTarget here = target;
  for (std::int64_t i = first; i < last; ++i) {
    const std::int64_t pixels = tiles.pixels(i);
    const bool fetch = weights.fetched < weights.size;
    t.ahead = fetch ? weights.next + weights.fetched : t.b;
    t.ahead_step = fetch ? 64 : 0;
    if (fetch) weights.fetched += bytes;
    (i < tiles.larger ? bigger : normal)(t, sums.finish, here);
    t.rows += pixels * t.segments, t.sums += 16 * panel.vectors * pixels;
    here.y += pixels * all.step;
    if (here.added) here.added += pixels * all.step;
    t.later += pixels * all.step, t.later_added += pixels * all.step;
    done += pixels;
  }
  if (end == QEnd::sums) width.finish(sums.finish, sums.memory, t.scale, target, static_cast<int>(done));
}

/// Panels in runs of which the weights fit L2; within such a run a batch of tiles meets one panel after the other.
void run_panels(const QSweep& sweep, std::byte* scratch) {
  const Sums sums{finish_of(sweep.run.epilogue), reinterpret_cast<std::int32_t*>(scratch)};
  const QDenseTask& task = sweep.task;
  const QPanel* panels = sweep.run.panels;
  const PixelTiles tiles(task.pixel1 - task.pixel0, sweep.rows);
  const std::int64_t per_vector = sweep.segments * sweep.length * 16;
  const auto run_of = [&](std::int64_t from) {
    std::int64_t to = from + 1, bytes = panels[from].vectors * per_vector;
    while (to < task.panel1 && bytes + panels[to].vectors * per_vector <= sweep.run.near)
      bytes += panels[to++].vectors * per_vector;
    return to;
  };
  for (std::int64_t from = task.panel0, to = 0; from < task.panel1; from = to) {
    to = run_of(from);
    Weights weights{};
    if (to < task.panel1) {
      const QPanel& last = panels[run_of(to) - 1];
      weights.next = sweep.run.weights + panels[to].offset;
      weights.size = last.offset + last.vectors * per_vector - panels[to].offset;
    }
    for (std::int64_t tile = 0; tile < tiles.count; tile += kBatch) {
      for (std::int64_t i = from; i < to; ++i) run_batch(sweep, sums, panels[i], tiles, tile, weights);
    }
  }
}

}  // namespace

std::size_t qdense_scratch_vnni(const QDenseRun& run, const QDenseTask& task) {
  return qsweep_bytes(run, task) + kBatch * 28 * 64;  // no tile has more than 28 vectors of sums
}

void qdense_block_vnni(const QDenseRun& run, const QDenseTask& task, std::byte* scratch) {
  qsweep_vnni(run, task, rows_of(run, task), scratch, run_panels);
}

}  // namespace modelflow::cpu
