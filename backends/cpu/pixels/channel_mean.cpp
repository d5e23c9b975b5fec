// The mean of each channel of an image: parts of it are summed in tasks.
#include "backends/cpu/pixels/channel_mean.h"

#include <algorithm>
#include <vector>

#include "backends/cpu/frame/share.h"
#include "backends/cpu/loops/vector_code.h"

namespace modelflow::cpu {
namespace {

// Rows summed in one float before they join the total: keeps long sums exact to float rounding.
constexpr std::size_t kBlock = 256;

void sum_part(const ChannelLoops& loops, const float* x, std::size_t rows, std::size_t channels, float* total,
              float* block) {
  std::fill_n(total, channels, 0.0f);
  for (std::size_t r = 0; r < rows; r += kBlock) {
    std::fill_n(block, channels, 0.0f);
    loops.add_rows(x + r * channels, std::min(kBlock, rows - r), channels, block);
    for (std::size_t c = 0; c < channels; ++c) total[c] += block[c];
  }
}

void mean_last(const VectorCode& code, const float* x, const ChannelTensor& t, float* mean, Invocation& call) {
  const std::size_t parts = std::min(tasks_for(t.rows * t.channels, call), t.rows);
  const std::size_t stride = (t.channels + 15) / 16 * 16;
  auto* sums = reinterpret_cast<float*>(call.scratch(t.batch * parts * 2 * stride * sizeof(float)));
  const auto task = [&](std::size_t i) {
    const std::size_t first = t.rows * (i % parts) / parts, last = t.rows * (i % parts + 1) / parts;
    float* total = sums + i * 2 * stride;
    sum_part(code.channels, x + (i / parts * t.rows + first) * t.channels, last - first, t.channels, total,
             total + stride);
  };
  if (t.batch * parts == 1)
    task(0);
  else
    call.parallel(t.batch * parts, task);
  for (std::size_t n = 0; n < t.batch; ++n) {
    for (std::size_t c = 0; c < t.channels; ++c) {
      float sum = 0;
      for (std::size_t p = 0; p < parts; ++p) sum += sums[(n * parts + p) * 2 * stride + c];
      mean[n * t.channels + c] = sum / static_cast<float>(t.rows);
    }
  }
}

void mean_second(const VectorCode& code, const float* x, const ChannelTensor& t, float* mean, Invocation& call) {
  const std::size_t planes = t.batch * t.channels, parts = std::min(tasks_for(t.size(), call), planes);
  share(call, planes, parts, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t p = begin; p < end; ++p)
      mean[p] = code.channels.sum(x + p * t.rows, t.rows) / static_cast<float>(t.rows);
  });
}

}  // namespace

void channel_mean(const VectorCode& code, const std::uint8_t* x, const ChannelTensor& t, float* mean,
                  Invocation& call) {
  if (t.batch * t.channels == 0) return;
  const auto rows = static_cast<double>(std::max<std::size_t>(t.rows, 1));
  if (!t.last) {
    for_channels(t, call, [&](const ChannelPart& part) {
      for (std::size_t c = 0; c < part.units; ++c) {
        const std::uint64_t sum = code.bytes.sum(x + part.at + c * part.width, part.width);
        mean[part.channel + c] = static_cast<float>(static_cast<double>(sum) / rows);
      }
    });
    return;
  }
  constexpr std::size_t kMostSummed = 1 << 24;  // bytes, in 32 bits
  const std::size_t wanted = std::max(tasks_for(t.rows * t.channels / 4, call), t.rows / kMostSummed + 1);
  const std::size_t parts = std::min(wanted, std::max<std::size_t>(t.rows, 1));
  const std::size_t stride = (t.channels + 15) / 16 * 16;
  auto* sums = reinterpret_cast<std::uint32_t*>(call.scratch(t.batch * parts * stride * sizeof(std::uint32_t)));
  share(call, t.batch * parts, t.batch * parts, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t first = t.rows * (i % parts) / parts, last = t.rows * (i % parts + 1) / parts;
      std::fill_n(sums + i * stride, t.channels, 0U);
      code.bytes.add_rows(x + (i / parts * t.rows + first) * t.channels, last - first, t.channels, t.channels,
                          sums + i * stride);
    }
  });
  for (std::size_t n = 0; n < t.batch; ++n) {
    for (std::size_t c = 0; c < t.channels; ++c) {
      std::uint64_t sum = 0;
      for (std::size_t p = 0; p < parts; ++p) sum += sums[(n * parts + p) * stride + c];
      mean[n * t.channels + c] = static_cast<float>(static_cast<double>(sum) / rows);
    }
  }
}

void channel_mean(const VectorCode& code, const float* x, const ChannelTensor& t, float* mean, Invocation& call) {
  if (t.batch * t.channels == 0) return;
  t.last&& t.rows > 0 ? mean_last(code, x, t, mean, call) : mean_second(code, x, t, mean, call);
}

}  // namespace modelflow::cpu
