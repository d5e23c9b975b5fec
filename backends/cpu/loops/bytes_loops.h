// Loops over 8-bit numbers, compiled for each instruction set (see vector.h).
#pragma once

#include "backends/cpu/loops/bytes.h"
#include "backends/cpu/loops/bytes_transpose_avx512.h"
#include "backends/cpu/vector/bytes.h"
#include "backends/cpu/vector/steps.h"

namespace modelflow::cpu {
namespace {

/// The largest of a window, of the bytes that `from` loads.
template <class Load>
MODELFLOW_INLINE auto largest_of_window(const Windows<std::uint8_t>& w, std::size_t c, Load from) {
  auto best = decltype(from(w.x)){};
  for (std::size_t d = 0; d < w.deep; ++d)
    for (std::size_t h = 0; h < w.high; ++h) {
      const std::uint8_t* x = w.x + d * w.plane + h * w.line + c;
      for (std::size_t i = 0; i < w.wide; ++i, x += w.channels) {
        const auto next = from(x);
        best = best > next ? best : next;
      }
    }
  return best;
}

void max_window(const Windows<std::uint8_t>& w, std::uint8_t* y) {
  std::size_t c = 0;
  for (; c + kBytes <= w.channels; c += kBytes)
    store(y + c, largest_of_window(w, c, [](auto x) { return load_all(x); }));
  vectors(w.channels - c, [&](std::size_t at, auto part) {
    store_bytes(y + c + at, largest_of_window(w, c + at, [&](auto x) { return load_bytes(x, part); }), part);
  });
}

MODELFLOW_INLINE void add_to(std::uint32_t* sum, Ints more, auto part) {
  float* to = reinterpret_cast<float*>(sum);  // the same bits
  store(to, from_bits(bits(load(to, part)) + more), part);
}

/// The channels of `count` vectors of halves; few enough rows for sums of 16 bits.
template <std::size_t count>
MODELFLOW_INLINE void add_block(const std::uint8_t* x, std::size_t rows, std::size_t stride, std::uint32_t* sum) {
  Halves total[count] = {};
  for (std::size_t r = 0; r < rows; ++r, x += stride) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < count; ++v) total[v] += load_widened(x + v * kHalves);
  }
  for (std::size_t v = 0; v < count; ++v) {
    std::uint16_t sums[kHalves];
    __builtin_memcpy(sums, total + v, sizeof sums);
    add_to(sum + v * kHalves, load_halves(sums), Whole{});
    add_to(sum + v * kHalves + kLanes, load_halves(sums + kLanes), Whole{});
  }
}

void add_byte_rows(const std::uint8_t* x, std::size_t rows, std::size_t stride, std::size_t channels,
                   std::uint32_t* sum) {
  constexpr std::size_t kRows = 256;  // times 255 still fits 16 bits
  for (std::size_t r = 0; r < rows; r += kRows) {
    const std::size_t count = rows - r < kRows ? rows - r : kRows;
    const std::uint8_t* from = x + r * stride;
    std::size_t c = 0;
    for (; c + 4 * kHalves <= channels; c += 4 * kHalves) add_block<4>(from + c, count, stride, sum + c);
    for (; c + kHalves <= channels; c += kHalves) add_block<1>(from + c, count, stride, sum + c);
    vectors(channels - c, [&](std::size_t at, auto part) {
      Ints total = {};
      for (std::size_t i = 0; i < count; ++i) total += load_bytes(from + i * stride + c + at, part);
      add_to(sum + c + at, total, part);
    });
  }
}

std::uint64_t sum_bytes(const std::uint8_t* x, std::size_t n) {
  constexpr std::size_t kFew = std::size_t{1} << 24;  // their sum fits the lanes
  std::uint64_t sum = 0;
  for (std::size_t begin = 0; begin < n; begin += kFew) {
    Ints total[4] = {};
    vectors_by_four(n - begin < kFew ? n - begin : kFew,
                    [&](std::size_t i, auto part, std::size_t v) { total[v] += load_bytes(x + begin + i, part); });
    const Ints all_four = (total[0] + total[1]) + (total[2] + total[3]);
    for (std::size_t lane = 0; lane < kLanes; ++lane) sum += static_cast<std::uint32_t>(all_four[lane]);
  }
  return sum;
}

/// `factor(i, part)` of number i.
template <class Factor>
MODELFLOW_INLINE void rescale_row(const Rescale& r, const std::uint8_t* x, std::size_t n, std::uint8_t* y,
                                  Factor factor) {
  const ToByte byte{r.y_zero};
  write_bytes(n, y, [&](std::size_t i, auto part) {
    return byte(as_floats(load_bytes(x + i, part) - r.x_zero) * factor(i, part));
  });
}

void rescale_rows(const Rescale& r, const std::uint8_t* x, const float* factor, std::size_t rows, std::size_t channels,
                  std::uint8_t* y) {
  for (std::size_t row = 0; row < rows; ++row, x += channels, y += channels)
    rescale_row(r, x, channels, y, [&](std::size_t i, auto part) { return load(factor + i, part); });
}

void rescale(const Rescale& r, const std::uint8_t* x, float factor, std::size_t n, std::uint8_t* y) {
  rescale_row(r, x, n, y, [&](std::size_t, auto) { return all(factor); });
}

MODELFLOW_INLINE void quantize_row(const Quantization& q, const float* x, std::size_t n, std::uint8_t* y) {
  const ToByte byte{q.zero};
  const Steps steps(q.scale);
  std::size_t i = 0;
  for (; i + kBytes <= n; i += kBytes) {
    Floats of[4];
    steps.write(of, [&](int v) { return load(x + i + static_cast<std::size_t>(v) * kLanes); });
    store(y + i, narrowed(byte(of[0]), byte(of[1]), byte(of[2]), byte(of[3])));
  }
  write_bytes(n - i, y + i, [&](std::size_t at, auto part) { return byte(steps(load(x + i + at, part))); });
}

MODELFLOW_INLINE void dequantize_row(const Quantization& q, const std::uint8_t* x, std::size_t n, float* y) {
  vectors(n,
          [&](std::size_t i, auto part) { store(y + i, as_floats(load_bytes(x + i, part) - q.zero) * q.scale, part); });
}

void quantize(const Quantization& q, const float* x, std::size_t n, std::uint8_t* y) { quantize_row(q, x, n, y); }
void dequantize(const Quantization& q, const std::uint8_t* x, std::size_t n, float* y) { dequantize_row(q, x, n, y); }

#ifdef __AVX512F__

constexpr auto quantize_last = quantize_last_avx512;
constexpr auto dequantize_second = dequantize_second_avx512;

#else

// Images turn 16 channels of kBytes pixels at a time: then row i holds the channels of pixels i, 16 + i, ...
using Tile = Bytes[16];

/// f(pixel, its channels in the turned tile).
template <class Rows, class F>
MODELFLOW_INLINE void each_pixel(Rows& rows, std::size_t pixels, F f) {
  for (std::size_t group = 0; group < pixels; group += 16) {
    const auto pixel = [&](std::size_t row) { f(group + row, bytes_of(rows[row]) + group); };
    if (group + 16 <= pixels) {
#pragma GCC unroll 16
      for (std::size_t row = 0; row < 16; ++row) pixel(row);
    } else {
      for (std::size_t row = 0; group + row < pixels; ++row) pixel(row);
    }
  }
}

void quantize_last(const Quantization& q, const Planes& p, const float* x, std::uint8_t* y) {
  for (std::size_t at = p.begin; at < p.end; at += kBytes) {
    const std::size_t pixels = p.end - at < kBytes ? p.end - at : kBytes;
    for (std::size_t c = 0; c < p.channels; c += 16) {
      const std::size_t channels = p.channels - c < 16 ? p.channels - c : 16;
      Tile rows = {};
      const float* from = x + c * p.pixels + at;
      for (std::size_t i = 0; i < channels; ++i, from += p.pixels) {
        if (pixels == kBytes)
          quantize_row(q, from, kBytes, bytes_of(rows[i]));
        else
          quantize_row(q, from, pixels, bytes_of(rows[i]));
      }
      turn_sixteens(rows);
      each_pixel(rows, pixels, [&](std::size_t i, const std::uint8_t* pixel) {
        copy_sixteen(y + (at + i) * p.channels + c, pixel, channels);
      });
    }
  }
}

void dequantize_second(const Quantization& q, const Planes& p, const std::uint8_t* x, float* y) {
  for (std::size_t at = p.begin; at < p.end; at += kBytes) {
    const std::size_t pixels = p.end - at < kBytes ? p.end - at : kBytes;
    for (std::size_t c = 0; c < p.channels; c += 16) {
      const std::size_t channels = p.channels - c < 16 ? p.channels - c : 16;
      Tile rows = {};
      each_pixel(rows, pixels, [&](std::size_t i, std::uint8_t* pixel) {
        copy_sixteen(pixel, x + (at + i) * p.channels + c, channels);
      });
      turn_sixteens(rows);
      float* to = y + c * p.pixels + at;
      for (std::size_t i = 0; i < channels; ++i, to += p.pixels) {
        if (pixels == kBytes)
          dequantize_row(q, bytes_of(rows[i]), kBytes, to);
        else
          dequantize_row(q, bytes_of(rows[i]), pixels, to);
      }
    }
  }
}

#endif

// (a - a_zero) * a_scale / y_scale + ..., the zero points gathered in one number.
void add(const ByteSum& s, const std::uint8_t* a, const std::uint8_t* b, std::size_t n, std::uint8_t* y) {
  const float fa = s.a.scale / s.y.scale, fb = s.b.scale / s.y.scale;
  const float rest = -(static_cast<float>(s.a.zero) * fa + static_cast<float>(s.b.zero) * fb);
  const auto sum = [=](std::size_t i, auto part) {
    return as_floats(load_bytes(a + i, part)) * fa + (as_floats(load_bytes(b + i, part)) * fb + rest);
  };
  const std::int32_t zero = s.y.zero;
  // Such sums are integers of 32 bits, and cutting them took a quarter of the time.
  if (s.relu)
    return write_bytes(n, y, [=](std::size_t i, auto part) { return nearest(max(sum(i, part), Floats{})) + zero; });
  write_bytes(n, y, [=](std::size_t i, auto part) { return nearest(sum(i, part)) + zero; });
}

void add_by_definition(const ByteSum& s, const std::uint8_t* a, const std::uint8_t* b, std::size_t n, std::uint8_t* y) {
  const ToByte byte{s.y.zero};
  const Floats unit = all(s.y.scale), least = all(s.relu ? 0.0f : -1024.0f);
  const auto number = [](const std::uint8_t* x, const Quantization& q, std::size_t i, auto part) {
    return rounded(as_floats(load_bytes(x + i, part) - q.zero) * q.scale);
  };
  write_bytes(n, y, [=](std::size_t i, auto part) {
    return byte(max((number(a, s.a, i, part) + number(b, s.b, i, part)) / unit, least));
  });
}

}  // namespace
}  // namespace modelflow::cpu
