// One task of a depthwise convolution of 8-bit numbers on AVX2.
#include "backends/cpu/qconv/depthwise_avx2.h"

#include "backends/cpu/qconv/epilogue_avx2.h"
#include "backends/cpu/qconv/layout.h"

namespace modelflow::cpu {
namespace {

/// Pixels whose sums are finished together.
constexpr std::int64_t kAtOnce = 32;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

BandShape shape_of(const ConvGeometry& g, const QDepthRowsTask& task) {
  return band_shape(g, {task.image, task.row0, task.row1, 0, g.columns}, true);
}

std::int64_t copied(const ConvGeometry& g, const QDepthRowsTask& task) {
  const BandShape s = shape_of(g, task);
  return s.rows * s.columns * g.channels;
}

std::int64_t pairs_of(const ConvGeometry& g) { return (g.kernel_h * g.kernel_w + 1) / 2; }

/// What the sums of a run of pixels of one row and of 16 channels read.
struct Run {
  const std::uint16_t* x;    ///< the first tap of the first pixel
  std::int64_t pixel;        ///< from pixel to pixel
  const std::int64_t* taps;  ///< of each tap from the first, two for each pair
  std::int64_t pairs;
  const std::int16_t* weights;
  const std::int32_t* begin;
};

MODELFLOW_INLINE __m256i load_halves16(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

/// P pixels at a time, so that weights are read once for all of them.
template <int P>
MODELFLOW_INLINE void add_pairs(const Run& r, const std::uint16_t* x, std::int32_t* sums) {
  __m256i low[P], high[P];
  for (int p = 0; p < P; ++p) low[p] = load_halves16(r.begin), high[p] = load_halves16(r.begin + 8);
  const std::int16_t* w = r.weights;
  for (std::int64_t i = 0; i < r.pairs; ++i, w += 2 * kPairChannels) {
    const __m256i w0 = load_halves16(w), w1 = load_halves16(w + 16);
    const std::uint16_t *first = x + r.taps[2 * i], *second = x + r.taps[2 * i + 1];
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      const __m256i a = load_halves16(first + p * r.pixel), b = load_halves16(second + p * r.pixel);
      low[p] = _mm256_add_epi32(low[p], _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), w0));
      high[p] = _mm256_add_epi32(high[p], _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), w1));
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p, sums += kFilters) {
    auto* to = reinterpret_cast<__m256i*>(sums);
    _mm256_storeu_si256(to, _mm256_permute2x128_si256(low[p], high[p], 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(low[p], high[p], 0x31));
  }
}

void sum_pixels(const Run& r, std::int64_t pixels, std::int32_t* sums) {
  const std::uint16_t* x = r.x;
  for (; pixels >= 4; pixels -= 4, x += 4 * r.pixel, sums += 4 * kFilters) add_pairs<4>(r, x, sums);
  for (; pixels > 0; --pixels, x += r.pixel, sums += kFilters) add_pairs<1>(r, x, sums);
}

/// Parts of the scratch memory, in bytes.
struct Room {
  std::size_t copy, steps, taps;
};

Room room_of(const QDepthPairs& run, const QDepthRowsTask& task) {
  const std::size_t copy = size((copied(run.geometry, task) + 63) / 64 * 64) + 64;
  return {copy, 2 * copy, size(2 * pairs_of(run.geometry)) * sizeof(std::int64_t)};
}

}  // namespace

std::size_t qdepthwise_scratch_avx2(const QDepthPairs& run, const QDepthRowsTask& task) {
  const Room r = room_of(run, task);
  return r.copy + r.steps + r.taps;
}

void qdepthwise_block_avx2(const QDepthPairs& run, const QDepthRowsTask& task, std::byte* scratch) {
  const ConvGeometry& g = run.geometry;
  const Room room = room_of(run, task);
  const BandShape s = shape_of(g, task);
  auto* copy = reinterpret_cast<std::uint8_t*>(scratch);
  auto* steps = reinterpret_cast<std::uint16_t*>(scratch + room.copy);
  auto* taps = reinterpret_cast<std::int64_t*>(scratch + room.copy + room.steps);
  copy_band_bytes(g, run.x, task.image, s, run.x_zero, copy);
  for (std::int64_t i = 0; i < copied(g, task); i += kHalves) {
    const Halves halves = load_widened(copy + i);
    __builtin_memcpy(steps + i, &halves, sizeof halves);
  }
  const std::int64_t count = g.kernel_h * g.kernel_w, row = s.columns * g.channels, pairs = pairs_of(g);
  for (std::int64_t i = 0; i < 2 * pairs; ++i) {
    const std::int64_t tap = i < count ? i : count - 1;  // the weight of one too many is 0
    taps[i] = tap / g.kernel_w * g.dilation_h * row + tap % g.kernel_w * g.dilation_w * g.channels;
  }
  const ByteFinish finish = byte_finish_of(run.epilogue);
  const std::int64_t down = (g.kernel_h == 1 ? 1 : g.stride_h) * row;
  const std::int64_t right = (g.kernel_w == 1 ? 1 : g.stride_w) * g.channels;
  alignas(64) std::int32_t sums[size(kAtOnce) * kFilters];
  for (std::int64_t h = task.row0; h < task.row1; ++h) {
    for (std::int64_t c = 0; c < g.channels; c += kPairChannels) {
      const std::int64_t left = g.channels - c;
      for (std::int64_t column = 0; column < g.columns; column += kAtOnce) {
        const std::int64_t pixels = g.columns - column < kAtOnce ? g.columns - column : kAtOnce;
        const Run r{steps + (h - task.row0) * down + column * right + c,
                    right,
                    taps,
                    pairs,
                    run.weights + 2 * c * pairs,
                    run.begin + c};
        sum_pixels(r, pixels, sums);
        const std::int64_t at = ((task.image * g.rows + h) * g.columns + column) * g.channels + c;
        const ByteTarget target{run.y + at, run.added ? run.added + at : nullptr, g.channels,
                                size(left < kPairChannels ? left : kPairChannels)};
        finish_pixels(finish, sums, run.scale + c, target, size(pixels));
      }
    }
  }
}

}  // namespace modelflow::cpu
