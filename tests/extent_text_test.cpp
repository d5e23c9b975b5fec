// Extents as exporters spell them: what is read as the same extent is the same number, whatever the symbols stand for.
#include "src/onnx/extent_text.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "src/onnx/derived.h"
#include "src/onnx/floor.h"

namespace modelflow {
namespace {

/// The extent behind a convolution without padding.
Dim convolved(const Dim& x, std::int64_t kernel, std::int64_t stride) { return floor_div(x - kernel, stride) + 1; }

TEST(ExtentText, ExportersAndInferenceSayTheSame) {
  const Dim s = Dim::symbol("s72");
  EXPECT_EQ(read_extent("(((s72 - 127)//384)) - 1"), convolved(convolved(convolved(s, 127, 64), 7, 3), 3, 2));
  EXPECT_EQ(read_extent("((s72//10)) - 1"), convolved(convolved(s, 10, 5), 3, 2));
  EXPECT_EQ(read_extent("((((((((s72//80)) - 3)//2)) - 1)//2)) + 1"),
            floor_div(floor_div(floor_div(s, 80) - 3, 2) - 1, 2) + 1);
  EXPECT_EQ(read_extent("Min(512, s72)"), smaller(512, s));
  EXPECT_EQ(read_extent("Max(s72, 3)"), larger(s, 3));
  EXPECT_EQ(read_extent("((s72**2)//s72)"), s);
  EXPECT_EQ(read_extent("-(s72 - 2*s59) + Mod(2*s72, 2)"), 2 * Dim::symbol("s59") - s);
}

TEST(ExtentText, KnownNumbersSayWhatSymbolsDoNot) {
  const auto settled = [](const Dim& dim, std::int64_t number) { return settled_extent(dim, {{"s79", number}}); };
  const Dim quotient = read_extent("(32//s79)"), less = read_extent("(32//s79) - 1");
  EXPECT_EQ(quotient, Dim::symbol("(32//s79)"));
  EXPECT_EQ(settled(quotient, 1), Dim(32));
  EXPECT_EQ(settled(read_extent("((s72*(4096//((64//s79))))//4)"), 2), 32 * Dim::symbol("s72"));
  EXPECT_EQ(settled(quotient, 0), quotient);
  EXPECT_EQ(settled(Dim::symbol((2 * less).str()), 1), Dim::symbol((2 * less).str()));
  EXPECT_EQ(settled(read_extent("((2//s79) - 5)"), 1), read_extent("((2//s79) - 5)"));
}

TEST(ExtentText, NestedPowersAreOneSymbol) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "2**(";
  EXPECT_EQ(read_extent(text), Dim::symbol(text));
}

TEST(ExtentText, ManyFloorsEnd) {
  Dim sum = 0;
  for (int i = 0; i < 20; ++i)
    sum = sum + Dim::symbol("modelflow_floor_" + std::string(1, static_cast<char>('a' + i)) + "_by1");
  EXPECT_TRUE(floor_div(sum - Dim::symbol("z"), 2).unknown());
}

TEST(ExtentText, AnythingElseIsOneSymbol) {
  for (const std::string& text : std::vector<std::string>{"batch (x)",
                                                          "floor(H/2) + 1",
                                                          "((8*a)//b)",
                                                          "(h + w//2)",
                                                          "(2*n + 2*n//2)",
                                                          "(n + 1//2)",
                                                          "(h - 32//w)",
                                                          "(a//0)",
                                                          "(a",
                                                          "a)",
                                                          "()",
                                                          "Min",
                                                          "Min()",
                                                          "Cos(a)",
                                                          "Mod(a)",
                                                          "Mod(a, 2, 3)",
                                                          "(a // -2)",
                                                          "(2*)",
                                                          "(1a)",
                                                          "2**(a)",
                                                          "b*(a)//b",
                                                          "-(1 - a)//2",
                                                          "(-n**1**2)",
                                                          "()**0 + (n)",
                                                          "(2*a%3)",
                                                          std::string(1500, '('),
                                                          "(" + std::string(1500, '-') + "a)",
                                                          "(" + std::string(3000, 'a') + ")"})
    EXPECT_EQ(read_extent(text), Dim::symbol(text)) << text.substr(0, 40);
  EXPECT_TRUE(read_extent("?").unknown());
  EXPECT_EQ(read_extent("2*n + 1"), 2 * Dim::symbol("n") + 1);
}

/// A random expression over n and m, with its value for each pair of extents.
struct Drawn {
  std::string text;
  std::vector<std::int64_t> values;
};

constexpr std::int64_t kMost = 12;

class Draw {
 public:
  explicit Draw(unsigned seed) : dice_(seed) {}

  Drawn expression(int depth) {
    if (depth == 0) return leaf();
    const Drawn a = expression(depth - 1);
    switch (below(6)) {
      case 0:
        return of(a, leaf(), "(" + a.text + " + $)", [](auto x, auto y) { return x + y; });
      case 1:
        return of(a, number(3), "(" + a.text + " - $)", [](auto x, auto y) { return x - y; });
      case 2:
        return of(a, leaf(), "Min(" + a.text + ", $)", [](auto x, auto y) { return std::min(x, y); });
      case 3:  // divides the last term only
        return of(a, leaf(), "(" + a.text + " + $//2)", [](auto x, auto y) { return x + y / 2; });
      default:
        return of(a, number(2 + below(2)), "(" + a.text + "//$)",
                  [](auto x, auto y) { return (x >= 0 ? x : x - y + 1) / y; });
    }
  }

 private:
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(dice_() % static_cast<unsigned>(n)); }

  template <class F>
  Drawn of(const Drawn& a, const Drawn& b, std::string text, F f) {
    Drawn drawn{text.replace(text.find('$'), 1, b.text), {}};
    for (std::size_t i = 0; i < a.values.size(); ++i) drawn.values.push_back(f(a.values[i], b.values[i]));
    return drawn;
  }

  template <class F>
  Drawn filled(std::string text, F f) {
    Drawn drawn{std::move(text), {}};
    for (std::int64_t n = 0; n <= kMost; ++n)
      for (std::int64_t m = 0; m <= kMost; ++m) drawn.values.push_back(f(n, m));
    return drawn;
  }

  Drawn number(std::int64_t value) {
    return filled(std::to_string(value), [&](auto, auto) { return value; });
  }

  Drawn leaf() {
    const std::int64_t which = below(4);
    if (which == 0) return filled("n", [](auto n, auto) { return n; });
    if (which == 1) return filled("m", [](auto, auto m) { return m; });
    return number(below(4));
  }

  std::mt19937 dice_;
};

TEST(ExtentText, EqualExtentsAreEqualNumbers) {
  std::map<std::string, std::vector<Drawn>> same;
  Draw draw(7);
  for (int i = 0; i < 20000; ++i) {
    Drawn drawn = draw.expression(1 + i % 4);
    const Dim dim = read_extent(drawn.text);
    if (dim == Dim::symbol(drawn.text)) continue;  // not understood
    same[dim.str()].push_back(std::move(drawn));
  }
  int spelled_otherwise = 0;
  for (const auto& [extent, all] : same)
    for (const Drawn& drawn : all) {
      EXPECT_EQ(drawn.values, all.front().values)
          << drawn.text << " and " << all.front().text << " are both " << extent;
      spelled_otherwise += is_derived(Dim::parse(extent)) && drawn.text != all.front().text;
    }
  EXPECT_GT(spelled_otherwise, 500);
}

}  // namespace
}  // namespace modelflow
