// Moves the axes of filters, element by element: once for each session.
#include "backends/cuda/filters.h"

#include <array>
#include <cstring>
#include <span>

namespace modelflow::cuda {

Tensor turned(const Tensor& w, bool first_to_last) {
  const std::int64_t first = w.dims()[0], second = w.dims()[1], places = element_count(std::span(w.dims()).subspan(2));
  const auto size = static_cast<std::int64_t>(byte_count(w.dtype(), std::array<std::int64_t, 1>{1}));
  return Tensor::make(w.dtype(), w.dims(), [&](std::byte* to) {
    for (std::int64_t a = 0; a < first; ++a)
      for (std::int64_t b = 0; b < second; ++b)
        for (std::int64_t p = 0; p < places; ++p) {
          const std::int64_t at = first_to_last ? (p * second + b) * first + a : (a * places + p) * second + b;
          std::memcpy(to + at * size, w.data() + ((a * second + b) * places + p) * size,
                      static_cast<std::size_t>(size));
        }
  });
}

}  // namespace modelflow::cuda
