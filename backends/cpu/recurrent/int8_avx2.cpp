// LSTM and GRU with int8 weights on AVX2 and on AVX-VNNI: products in words of four bytes.
#include "backends/cpu/frame/int8_rounding.h"
#include "backends/cpu/recurrent/int8_words.h"
#include "backends/cpu/recurrent/walk.h"
#include "backends/cpu/vector/bytes.h"
#include "backends/cpu/vector/magnitudes.h"
#include "backends/cpu/vector/words.h"

namespace modelflow::cpu {
namespace {

template <class Word>
struct WordProduct {
  static constexpr bool kManyRows = false;
  using Step = typename Word::Step;

  template <int Rows, int Gates>
  MODELFLOW_INLINE static void multiply(const RecurrentPart& part, const RecurrentRow* rows, std::size_t block,
                                        Floats (&sum)[Rows][Gates][kPieces]);

  static std::size_t packed_bytes(const RecurrentMatrix& m) { return packed_word_bytes(m, Word::kSteps); }
  static void pack(const RecurrentMatrix& m, const void* weights, std::byte* packed) {
    pack_words(m, weights, Word::kSteps, packed);
  }
  static std::size_t step_bytes(std::size_t depth) { return (depth + 63) / 64 * 64 * sizeof(Step); }

  static float quantize(const float* in, std::size_t depth, std::uint8_t* steps) {
    const float size = largest_size(in, depth), range = size < 1e-30f ? 1e-30f : size;
    const Floats inverse = all(127 / range);
    auto* to = reinterpret_cast<Step*>(steps);
    vectors(depth, [&](std::size_t i, auto part) {
      const Ints x = (nearest(load(in + i, part) * inverse) + kStepZero) & 0xff;
      if constexpr (sizeof(Step) == 1) {
        store_bytes(to + i, x, part);
      } else {
        store_halves(to + i, x, part);
      }
    });
    for (std::size_t i = depth; i % Word::kSteps; ++i) to[i] = 0;
    return step_size(range);
  }
};

template <class Word>
template <int Rows, int Gates>
MODELFLOW_INLINE void WordProduct<Word>::multiply(const RecurrentPart& part, const RecurrentRow* rows,
                                                  std::size_t block, Floats (&sum)[Rows][Gates][kPieces]) {
  static_assert(Rows == 1);
  // An addition of products takes five cycles with AVX-VNNI, and two start in each.
  constexpr int kSums = Gates * kPieces, kApart = Word::kSteps == 2 || kSums >= 8 ? 1 : kSums >= 4 ? 2 : 4;
  constexpr std::size_t kBytes = kLanes * Word::kSteps;  // of one register of weights
  const std::byte* b = part.packed + block * word_block_bytes(part.depth, Gates, Word::kSteps);
  const auto* in = reinterpret_cast<const Step*>(rows[0].steps);
  const std::size_t words = (part.depth + Word::kSteps - 1) / Word::kSteps;
  Ints apart[kApart][kSums] = {};
  const auto step = [&](std::size_t k, int set) __attribute__((always_inline)) {
    const Ints x = all_words(in + k * Word::kSteps);
#pragma GCC unroll 8
    for (int i = 0; i < kSums; ++i)
      Word::add(apart[set][i], x, Word::weights(b + static_cast<std::size_t>(i) * kBytes));
    b += kSums * kBytes;
  };
  std::size_t k = 0;
  for (; k + kApart <= words; k += kApart) {
#pragma GCC unroll 4
    for (int i = 0; i < kApart; ++i) step(k + static_cast<std::size_t>(i), i);
  }
  for (; k < words; ++k) step(k, 0);
  const auto* zeros = reinterpret_cast<const std::int32_t*>(b);
  const float* scale = part.scale + block * Gates * kUnits;
#pragma GCC unroll 8
  for (int i = 0; i < kSums; ++i) {
#pragma GCC unroll 4
    for (int other = 1; other < kApart; ++other) apart[0][i] += apart[other][i];
    const std::size_t at = static_cast<std::size_t>(i) * kLanes;
    const Floats unit = load(scale + at) * all(rows[0].unit);
    sum[0][i / kPieces][i % kPieces] = as_floats(apart[0][i] - load_ints(zeros + at)) * unit;
  }
}

template <class Word>
constexpr RecurrentCode kCode = {.layout = Word::kSteps == 2 ? "pairs" : "quads",
                                 .packed_bytes = WordProduct<Word>::packed_bytes,
                                 .pack = WordProduct<Word>::pack,
                                 .step_bytes = WordProduct<Word>::step_bytes,
                                 .quantize = WordProduct<Word>::quantize,
                                 .project_lstm = walk<WordProduct<Word>, Projection<4>>,
                                 .project_gru = walk<WordProduct<Word>, Projection<3>>,
                                 .lstm = walk<WordProduct<Word>, LstmStep>,
                                 .gru = walk<WordProduct<Word>, GruStep>,
                                 .gru_gates = walk<WordProduct<Word>, GruGatesStep>,
                                 .gru_candidate = walk<WordProduct<Word>, GruCandidateStep>};

}  // namespace

const RecurrentCode recurrent_code_pairs_avx2 = kCode<PairWords>;
const RecurrentCode recurrent_code_quads_avx2 = kCode<QuadWords>;

}  // namespace modelflow::cpu
