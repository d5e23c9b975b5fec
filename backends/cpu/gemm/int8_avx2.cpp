// Products of 8-bit numbers on AVX2 and on AVX-VNNI.
#include "backends/cpu/gemm/int8_words_loops.h"

namespace modelflow::cpu {

const WordsCode<PairRows> pair_words_avx2 = kWordsCode<PairWords, PairRows>;
const WordsCode<QuadRows> quad_words_avx2 = kWordsCode<QuadWords, QuadRows>;
const WordsCode<QuadRows> bounded_words_avx2 = kWordsCode<BoundedWords, QuadRows>;

}  // namespace modelflow::cpu
