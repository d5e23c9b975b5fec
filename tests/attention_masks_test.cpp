// Attention under every mask that two steps can spell: what scores become by numbers added, numbers in their place, a
// triangle, in any order, each number that exporters hide keys by. The original, run by ONNX Runtime without
// optimisation, against the fused model with the plugin, on the baseline and by fallback. Rows that see nothing,
// batches of unlike extents, one query and many, NaN where keys are hidden, and scores beside which no number is low.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <regex>

#include "modelflow/kernel.h"
#include "modelflow/modelflow.h"
#include "src/verify/compare.h"

namespace modelflow {
namespace {

/// What a step does to scores `x`; `f` are flags, `m` numbers, `past` a triangle; `low` hides.
struct Spelling {
  const char* name;
  const char* text;
  bool flags = false, numbers = false;
};
constexpr Spelling kSpellings[] = {
    {"numbers", "Add(x, m)", false, true},
    {"allowed", "Where(f, x, low)", true},
    {"masked", "Where(f, low, x)", true},
    {"flags_added", "Where(f, zero, low)  y = Add(x, n)", true},
    {"causal", "Where(past, x, low)"},
    {"causal_added", "Where(past, zero, low)  y = Add(x, n)"},
    {"causal_and_allowed", "And(past, f)  y = Where(n, x, low)", true},
    {"scaled", "Mul(x, half)"},
};

/// Extents of one run: batches of queries, of keys and values, of masks; queries and keys.
struct Extents {
  std::int64_t q_batch, kv_batch, mask_batch, queries, keys;
};
constexpr Extents kExtents[] = {
    {2, 2, 2, 5, 7}, {1, 3, 3, 9, 9}, {3, 1, 1, 1, 6}, {2, 2, 1, 70, 70}, {1, 1, 4, 12, 12}};

enum class Data { plain, nan, huge };

std::string replaced(const std::string& text, const std::string& word, const std::string& by) {
  return std::regex_replace(text, std::regex("\\b" + word + "\\b"), by);
}

class AttentionMasks : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string why;
    runtime_ = Runtime::find(&why);
    if (!runtime_) GTEST_SKIP() << why;
  }

  float low() const { return std::stof(GetParam()); }

  /// A model of these steps; `shape` lets heads, and what masks repeat, take turns.
  std::string text(const std::vector<const Spelling*>& steps, std::size_t shape, bool product) const {
    const std::string kv = shape % 2 ? "2" : "1", rows = shape % 3 ? "S" : "1";
    std::string inputs = "float[A,2,S,4] q, float[B," + kv + (one_key_ ? ",K,4] k0" : ",T,4] k0"), body;
    if (product) inputs += ", float[B," + kv + ",T,8] v";
    std::string x = "a0";
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::string number = std::to_string(i), y = "s" + number;
      if (steps[i]->flags) inputs += ", bool[M,1," + rows + ",T] f" + number;
      if (steps[i]->numbers)
        inputs += ", float[M," + std::string(shape % 4 ? "1" : "2") + "," + rows + ",T] m" + number;
      std::string step = steps[i]->text;
      step = (step.find("y =") == std::string::npos ? "y = " : "n = ") + step;
      for (const auto& [word, by] : std::initializer_list<std::pair<std::string, std::string>>{
               {"n", "n" + number}, {"f", "f" + number}, {"m", "m" + number}, {"x", x}, {"y", y}})
        step = replaced(step, word, by);
      body += "  " + step + "\n";
      x = y;
    }
    return "<ir_version: 8, opset_import: [\"\" : 17]>\ng (" + inputs + ") => (float[C,2,S," + (product ? "8" : "T") +
           "] z) <float low = {" + GetParam() +
           "}, float zero = {0}, float half = {0.5}, bool true = {1}> {\n"
           "  rows = Shape<start = 2, end = 3>(q)  columns = Shape<start = 2, end = 3>(k0)\n"
           "  both = Concat<axis = 0>(rows, columns)  ones = Expand(true, both)  past = Trilu<upper = 0>(ones)\n"
           "  k = Transpose<perm = [0, 1, 3, 2]>(k0)  a0 = MatMul(q, k)\n" +
           body +
           (product ? "  w = Softmax<axis = -1>(" + x + ")  z = MatMul(w, v)\n}"
                    : "  z = Softmax<axis = -1>(" + x + ")\n}");
  }

  /// Data for all inputs. The last key is hidden from all queries but the last; every third row of a mask hides all.
  Feeds feeds(const Model& model, const Extents& extents, Data data, bool hides_by_true) const {
    const std::map<std::string, std::int64_t> symbols = {
        {"A", extents.q_batch}, {"B", extents.kv_batch}, {"M", extents.mask_batch}, {"S", extents.queries}, {"K", 1},
        {"T", extents.keys}};
    Feeds made;
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (const Value* input : model.graph().inputs()) {
      Dims dims;
      for (const Dim& dim : input->shape().dims()) dims.push_back(dim.evaluate(symbols).value());
      const std::int64_t last = dims.back(), rows = dims[dims.size() - 2];
      const auto hidden = [&](std::int64_t i) {
        const std::int64_t row = i / last % rows;
        return i / last % 3 == 1 || random() % 3 == 0 || (i % last == last - 1 && (rows == 1 || row + 1 < rows));
      };
      const bool flags = input->dtype() == DType::boolean, mask = input->name().starts_with("m");
      made[input->name()] = Tensor::make(input->dtype(), dims, [&](std::byte* bytes) {
        for (std::int64_t i = 0; i < element_count(dims); ++i) {
          auto& number = reinterpret_cast<float*>(bytes)[flags ? 0 : i];
          if (flags) {
            bytes[i] = static_cast<std::byte>(hidden(i) == hides_by_true);
          } else if (mask) {
            number = hidden(i) ? low() : normal(random);
          } else {
            number = normal(random);
            if (data == Data::huge && input->name() != "v") number *= 1e15f;
            if (data == Data::nan && input->name() == "k0" && i / last % rows == rows - 1)
              number = i % 2 ? std::nanf("") : HUGE_VALF;
          }
        }
      });
    }
    return made;
  }

  /// Equal up to rounding, and NaN where that is. A sum with a number as low as -1e4 keeps no more than 2^-9 of a
  /// score.
  void expect_equal(const Tensor& want, const Tensor& got, const std::string& what) const {
    ASSERT_EQ(want.dims(), got.dims()) << what;
    const auto a = want.as<float>(), b = got.as<float>();
    const float tolerance = 2e-5f + (low() == -1e4f ? 0x1p-9f : 0);
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(std::isnan(a[i]), std::isnan(b[i])) << what << " at " << i << ": " << a[i] << " and " << b[i];
      if (std::isnan(a[i])) continue;
      ASSERT_NEAR(a[i], b[i], 4 * tolerance) << what << " at " << i;
    }
  }

  /// True where an attention, or a Softmax without a product behind it, came out.
  bool compare(const std::vector<const Spelling*>& steps, std::size_t shape, bool product = true) {
    const std::string source = text(steps, shape, product);
    SCOPED_TRACE(source);
    const Model original = Model::from_text(source);
    Options options;
    options.measure = options.verify = false;
    const Model fused = optimize(original, options).model;
    const std::unique_ptr<Session> reference = open_session(*runtime_, original, {.optimize = false});
    std::map<std::string, std::unique_ptr<Session>> forms;
    forms["fallback"] = open_session(*runtime_, fused, {});
    forms["plugin"] = open_session(*runtime_, fused, {.threads = 2, .plugin = plugin_path()});
    forms["baseline"] =
        open_session(*runtime_, fused, {.plugin = plugin_path(), .config = {{"modelflow.target", "cpu"}}});
    const bool hides_by_true = std::string_view(steps[0]->name) == "masked";
    for (const Extents& extents : kExtents)
      for (const Data data : {Data::plain, Data::nan, Data::huge}) {
        const Feeds inputs = feeds(original, extents, data, hides_by_true);
        const Tensor want = reference->run(inputs).at(0);
        for (const auto& [name, session] : forms)
          expect_equal(want, session->run(inputs).at(0),
                       name + ", data " + std::to_string(static_cast<int>(data)) + ", " +
                           std::to_string(extents.queries) + " queries");
        if (HasFatalFailure()) return true;
      }
    return std::ranges::any_of(fused.graph().nodes(), [&](const auto& node) {
      return node->domain() == "modelflow" && kind_of(node->op(), node->attrs) == (product ? "Attention" : "Softmax");
    });
  }

  std::shared_ptr<Runtime> runtime_;
  bool one_key_ = false;  ///< where masks have a column for each value: the scores are repeated
};

TEST_P(AttentionMasks, OneStep) {
  std::size_t shape = 0;
  for (const Spelling& step : kSpellings) {
    EXPECT_TRUE(compare({&step}, shape++)) << step.name << " is not fused";
    if (HasFatalFailure()) return;
  }
}

TEST_P(AttentionMasks, TwoSteps) {
  std::size_t shape = 0, fused = 0;
  for (const Spelling& first : kSpellings)
    for (const Spelling& second : kSpellings) {
      fused += compare({&first, &second}, shape++);
      if (HasFatalFailure()) return;
    }
  EXPECT_GE(fused, 45u) << "of 64";  // those left cannot be said in one op
}

TEST_P(AttentionMasks, OneKeyUnderManyColumns) {
  one_key_ = true;
  std::size_t shape = 0;
  for (const Spelling& step : kSpellings)
    if (step.flags != step.numbers && !std::string_view(step.name).starts_with("causal")) {
      EXPECT_TRUE(compare({&step}, shape++)) << step.name << " is not fused";
      if (HasFatalFailure()) return;
    }
}

TEST_P(AttentionMasks, OneStepWithoutAProduct) {
  std::size_t shape = 0, fused = 0;
  for (const Spelling& step : kSpellings) {
    fused += compare({&step}, shape++, false);
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(fused, 2u);  // where extents are known to be those of the scores
}

INSTANTIATE_TEST_SUITE_P(Low, AttentionMasks, testing::Values("-inf", "-3.4028235e+38", "-1e9", "-1e4"),
                         [](const auto& info) { return "low" + std::to_string(info.index); });

}  // namespace
}  // namespace modelflow
