// LSTM and GRU with int8 weights in plain C++: exact, not fast. For machines whose 8-bit products would saturate.
#include "backends/cpu/frame/int8_rounding.h"
#include "backends/cpu/recurrent/walk.h"

namespace modelflow::cpu {
namespace {

constexpr int kZero = 128;  // what stands for 0 in unsigned steps

std::size_t packed_bytes(const RecurrentMatrix& m) { return unit_blocks(m.hidden) * m.depth * m.gates * kUnits; }

void pack(const RecurrentMatrix& m, const void* weights, std::byte* packed) {
  const auto* from = static_cast<const std::int8_t*>(weights) + m.first * m.hidden * m.depth;
  auto* to = reinterpret_cast<std::int8_t*>(packed);
  for (std::size_t block = 0; block < unit_blocks(m.hidden); ++block) {
    for (std::size_t k = 0; k < m.depth; ++k) {
      for (std::size_t lane = 0; lane < m.gates * kUnits; ++lane) {
        const std::size_t unit = block * kUnits + lane % kUnits;
        *to++ = unit < m.hidden ? from[(lane / kUnits * m.hidden + unit) * m.depth + k] : std::int8_t{0};
      }
    }
  }
}

float quantize(const float* in, std::size_t depth, std::uint8_t* steps) {
  float range = 1e-30f;
  for (std::size_t i = 0; i < depth; ++i) range = larger_size(range, in[i]);
  const float inverse = 127 / range;
  for (std::size_t i = 0; i < depth; ++i) steps[i] = static_cast<std::uint8_t>(whole_step(in[i] * inverse) + kZero);
  return step_size(range);
}

struct StepProduct {
  static constexpr bool kManyRows = false;

  template <int Rows, int Gates>
  static void multiply(const RecurrentPart& part, const RecurrentRow* rows, std::size_t block,
                       Floats (&sum)[Rows][Gates][kPieces]) {
    constexpr std::size_t kSums = Gates * kUnits;
    const auto* b = reinterpret_cast<const std::int8_t*>(part.packed) + block * part.depth * kSums;
    std::int32_t total[kSums] = {};
    for (std::size_t k = 0; k < part.depth; ++k, b += kSums) {
      const int x = rows[0].steps[k] - kZero;
      for (std::size_t lane = 0; lane < kSums; ++lane) total[lane] += x * b[lane];
    }
    const float* scale = part.scale + block * kSums;
    for (std::size_t lane = 0; lane < kSums; ++lane)
      sum[0][lane / kUnits][lane % kUnits / kLanes][lane % kLanes] =
          static_cast<float>(total[lane]) * (scale[lane] * rows[0].unit);
  }
};

}  // namespace

const RecurrentCode recurrent_code_steps = {.layout = "steps",
                                            .packed_bytes = packed_bytes,
                                            .pack = pack,
                                            .step_bytes = [](std::size_t depth) { return depth; },
                                            .quantize = quantize,
                                            .project_lstm = walk<StepProduct, Projection<4>>,
                                            .project_gru = walk<StepProduct, Projection<3>>,
                                            .lstm = walk<StepProduct, LstmStep>,
                                            .gru = walk<StepProduct, GruStep>,
                                            .gru_gates = walk<StepProduct, GruGatesStep>,
                                            .gru_candidate = walk<StepProduct, GruCandidateStep>};

}  // namespace modelflow::cpu
