// One task of an 8-bit convolution in words of four bytes, on AVX2 and on AVX-VNNI: a copy of what the task reads, with
// its padding and in steps as wide as the words have them, then panels of filters over tiles of pixels.
#include "backends/cpu/gemm/word_tile.h"
#include "backends/cpu/qconv/dense.h"
#include "backends/cpu/qconv/epilogue_avx2.h"
#include "backends/cpu/qconv/layout.h"

namespace modelflow::cpu {
namespace {

/// Tiles that are finished together.
constexpr std::int64_t kBatch = 8;
constexpr auto kTilePixels = static_cast<std::int64_t>(kWordRows);

static_assert(kWordColumns == kFilters);

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

BandShape shape_of(const ConvGeometry& g, const QDenseTask& task) {
  const std::int64_t row0 = task.pixel0 / g.columns % g.rows, rows = (task.pixel1 - task.pixel0) / g.columns;
  return band_shape(g, {0, row0, row0 + rows, 0, g.columns}, true);
}

std::int64_t filters_of(const QDenseRun& run, const QDenseTask& task) {
  const QPanel& last = run.panels[task.panel1 - 1];
  return last.first + last.filters - run.panels[task.panel0].first;
}

/// Parts of the scratch memory, in bytes: the copy, the same in wider steps, the table, and results and residual where
/// these have one plane per filter.
struct Room {
  std::size_t copy, steps, table, result, added;
  std::size_t bytes() const { return copy + steps + table + result + added; }
};

template <class Word>
class Task {
 public:
  using Step = typename Word::Step;

  Task(const QDenseRun& run, const QDenseTask& task)
      : run_(run),
        task_(task),
        g_(run.geometry),
        shape_(shape_of(g_, task)),
        pixels_(task.pixel1 - task.pixel0),
        tiles_(ceil_div(pixels_, kTilePixels)),
        columns_(run.joined ? 1 : g_.kernel_w),
        words_(ceil_div((run.joined ? g_.kernel_w : 1) * run.group_channels, static_cast<std::int64_t>(Word::kSteps))) {
  }

  Room room() const {
    const auto whole = [](std::int64_t bytes) { return size((bytes + 63) / 64 * 64); };
    Room r{};
    r.copy = whole(copied()) + 64;  // the last word is read to its end
    if (sizeof(Step) > 1) r.steps = r.copy * sizeof(Step);
    r.table = whole(pixels_ * segments() * static_cast<std::int64_t>(sizeof(Step*)));
    if (!g_.y_last) r.result = whole(pixels_ * filters_of(run_, task_));
    if (!g_.y_last && run_.added) r.added = r.result;
    return r;
  }

  void work(std::byte* scratch) const {
    const Room r = room();
    auto* copy = reinterpret_cast<std::uint8_t*>(scratch);
    auto* table = reinterpret_cast<const Step**>(scratch + r.copy + r.steps);
    std::uint8_t *result = copy + r.copy + r.steps + r.table, *added = result + r.result;
    copy_band_bytes(g_, run_.x, task_.pixel0 / (g_.rows * g_.columns), shape_, run_.x_zero, copy);
    fill_table(steps_of(copy, scratch + r.copy), table);
    const std::int64_t plane = g_.rows * g_.columns, first = run_.panels[task_.panel0].first;
    const std::int64_t filters = filters_of(run_, task_), in_image = task_.pixel0 % plane;
    const std::int64_t at = (task_.pixel0 - in_image) * g_.filters;  // of the image
    if (g_.y_last) {
      const std::int64_t to = at + in_image * g_.filters + first;
      return panels(table, {run_.y + to, run_.added ? run_.added + to : nullptr, g_.filters, 0});
    }
    const std::int64_t to = at + first * plane + in_image;
    if (r.added) transpose_bytes(run_.added + to, plane, added, filters, filters, pixels_);
    panels(table, {result, r.added ? added : nullptr, filters, 0});
    transpose_bytes(result, filters, run_.y + to, plane, pixels_, filters);
  }

 private:
  std::int64_t copied() const { return shape_.rows * shape_.columns * g_.channels; }
  std::int64_t segments() const { return g_.kernel_h * columns_; }
  /// The first pixel of a tile; all tiles have nearly one size.
  std::int64_t begin(std::int64_t tile) const { return pixels_ * tile / tiles_; }

  const Step* steps_of(const std::uint8_t* copy, std::byte* wide) const {
    if constexpr (sizeof(Step) == 1) {
      return copy;
    } else {
      auto* steps = reinterpret_cast<Step*>(wide);
      for (std::int64_t i = 0; i < copied(); i += kHalves) {
        const Halves halves = load_widened(copy + i);
        __builtin_memcpy(steps + i, &halves, sizeof halves);
      }
      return steps;
    }
  }

  /// For every tile, segment and pixel the address of what that segment reads.
  void fill_table(const Step* x, const Step** table) const {
    const std::int64_t row = shape_.columns * g_.channels;
    const std::int64_t down = (g_.kernel_h == 1 ? 1 : g_.stride_h) * row;
    const std::int64_t right = (g_.kernel_w == 1 ? 1 : g_.stride_w) * g_.channels;
    const Step* line = x;
    std::int64_t column = 0;
    for (std::int64_t tile = 0; tile < tiles_; ++tile) {
      const std::int64_t count = begin(tile + 1) - begin(tile);
      for (std::int64_t r = 0; r < count; ++r) {
        const Step** to = table + r;
        for (std::int64_t h = 0; h < g_.kernel_h; ++h)
          for (std::int64_t k = 0; k < columns_; ++k, to += count)
            *to = line + column * right + h * g_.dilation_h * row + k * g_.dilation_w * g_.channels;
        if (++column == g_.columns) column = 0, line += down;
      }
      table += count * segments();
    }
  }

  void panels(const Step* const* table, const ByteTarget& target) const {
    const ByteFinish finish = byte_finish_of(run_.epilogue);
    const std::int64_t bytes = segments() * words_ * static_cast<std::int64_t>(kFilters * Word::kSteps);
    // Panels whose weights stay in L2 while the pixels of the task pass by.
    const std::int64_t at_once = bytes < run_.near ? run_.near / bytes : 1;
    for (std::int64_t from = task_.panel0; from < task_.panel1; from += at_once) {
      const std::int64_t to = from + at_once < task_.panel1 ? from + at_once : task_.panel1;
      for (std::int64_t tile = 0; tile < tiles_; tile += kBatch)
        for (std::int64_t i = from; i < to; ++i) batch(run_.panels[i], tile, table, target, finish);
    }
  }

  /// Some tiles by one panel.
  void batch(const QPanel& panel, std::int64_t first, const Step* const* table, const ByteTarget& all,
             const ByteFinish& finish) const {
    alignas(64) std::int32_t sums[kBatch * kTilePixels * static_cast<std::int64_t>(kFilters)];
    // Sums of filters that are not there may be any number.
    const std::int64_t last = first + kBatch < tiles_ ? first + kBatch : tiles_, pixel = begin(first);
    WordTile<Word> t{table + pixel * segments(),
                     size(panel.channel),
                     size(segments()),
                     size(words_),
                     reinterpret_cast<const std::byte*>(run_.weights) + panel.offset,
                     run_.begin + panel.scales,
                     sums};
    for (std::int64_t tile = first; tile < last; ++tile) {
      const std::int64_t rows = begin(tile + 1) - begin(tile);
      run_word_tile<Word>(t, size(rows), size(panel.filters));
      t.rows += rows * segments(), t.sums += rows * static_cast<std::int64_t>(kFilters);
    }
    const std::int64_t at = pixel * all.step + panel.first - run_.panels[task_.panel0].first;
    const ByteTarget target{all.y + at, all.added ? all.added + at : nullptr, all.step, size(panel.filters)};
    finish_pixels(finish, sums, run_.scale + panel.scales, target, size(begin(last) - pixel));
  }

  const QDenseRun& run_;
  const QDenseTask& task_;
  const ConvGeometry& g_;
  BandShape shape_;
  std::int64_t pixels_, tiles_;
  std::int64_t columns_, words_;  ///< segments of a row of the window; words of a segment
};

}  // namespace

std::size_t qdense_scratch_pairs_avx2(const QDenseRun& run, const QDenseTask& task) {
  return Task<PairWords>(run, task).room().bytes();
}
void qdense_block_pairs_avx2(const QDenseRun& run, const QDenseTask& task, std::byte* scratch) {
  Task<PairWords>(run, task).work(scratch);
}
std::size_t qdense_scratch_bounded_avx2(const QDenseRun& run, const QDenseTask& task) {
  return Task<BoundedWords>(run, task).room().bytes();
}
void qdense_block_bounded_avx2(const QDenseRun& run, const QDenseTask& task, std::byte* scratch) {
  Task<BoundedWords>(run, task).work(scratch);
}
std::size_t qdense_scratch_quads_avx2(const QDenseRun& run, const QDenseTask& task) {
  return Task<QuadWords>(run, task).room().bytes();
}
void qdense_block_quads_avx2(const QDenseRun& run, const QDenseTask& task, std::byte* scratch) {
  Task<QuadWords>(run, task).work(scratch);
}

}  // namespace modelflow::cpu
