// The forms of Winograd's method: how numbers along one axis become frequencies, and products of these results. For
// files named so, see vector.h.
#pragma once

#include "backends/cpu/conv/winograd.h"
#include "backends/cpu/vector/vector.h"

namespace modelflow::cpu {
namespace {

/// a * number + b
MODELFLOW_INLINE Floats fma(Floats a, float number, Floats b) { return a * number + b; }

/// One dimension that windows do not look along.
struct One {
  static constexpr int kResults = 1, kInputs = 1;
  static constexpr bool kCancels = false;
  MODELFLOW_INLINE static void input(const Floats* d, std::ptrdiff_t, Floats* v) { v[0] = d[0]; }
  MODELFLOW_INLINE static void output(const Floats* p, std::ptrdiff_t, Floats* y) { y[0] = p[0]; }
};

/// F(2, 3) of stride 2 in one dimension, 5 inputs to 5 frequencies: F(2, 2) of the even ones, then the odd ones. No
/// number cancels in a result that does not see it.
struct Strided {
  static constexpr int kResults = 2, kInputs = 5;
  static constexpr int kStep = 4;  ///< inputs from a tile to the next one
  static constexpr bool kCancels = false;
  MODELFLOW_INLINE static void input(const Floats* d, std::ptrdiff_t step, Floats* v) {
    const Floats middle = d[2 * step];
    v[0] = d[0] - middle;
    v[1] = middle;
    v[2] = middle - d[4 * step];
    v[3] = d[step];
    v[4] = d[3 * step];
  }
  MODELFLOW_INLINE static void output(const Floats* p, std::ptrdiff_t step, Floats* y) {
    const Floats both = p[step];
    y[0] = p[0] + both + p[3 * step];
    y[1] = both - p[2 * step] + p[4 * step];
  }
};

/// F(2, 3) in one dimension: 4 inputs to 4 frequencies, 4 products to 2 results.
struct Two {
  static constexpr int kResults = 2, kInputs = 4, kStep = 2;
  static constexpr bool kCancels = false;
  MODELFLOW_INLINE static void input(const Floats* d, std::ptrdiff_t step, Floats* v) {
    const Floats a = d[0], b = d[step], c = d[2 * step], e = d[3 * step];
    v[0] = a - c;
    v[1] = b + c;
    v[2] = c - b;
    v[3] = b - e;
  }
  MODELFLOW_INLINE static void output(const Floats* p, std::ptrdiff_t step, Floats* y) {
    const Floats b = p[step], c = p[2 * step];
    y[0] = p[0] + (b + c);
    y[1] = b - c - p[3 * step];
  }
};

/// F(4, 3), with the points 0, 1, -1, 2, -2 and infinity.
struct Four {
  static constexpr int kResults = 4, kInputs = 6, kStep = 4;
  static constexpr bool kCancels = true;
  MODELFLOW_INLINE static void input(const Floats* d, std::ptrdiff_t step, Floats* v) {
    const Floats d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step];
    const Floats even = fma(d2, -4, d4), odd = fma(d1, -4, d3), outer = d4 - d2, inner = d3 - d1;
    v[0] = fma(d[0], 4, fma(d2, -5, d4));
    v[1] = even + odd;
    v[2] = even - odd;
    v[3] = fma(inner, 2, outer);
    v[4] = fma(inner, -2, outer);
    v[5] = fma(d1, 4, fma(d3, -5, d[5 * step]));
  }
  MODELFLOW_INLINE static void output(const Floats* p, std::ptrdiff_t step, Floats* y) {
    const Floats p1 = p[step], p2 = p[2 * step], p3 = p[3 * step], p4 = p[4 * step];
    const Floats sum = p1 + p2, difference = p1 - p2, sum2 = p3 + p4, difference2 = p3 - p4;
    y[0] = p[0] + (sum + sum2);
    y[1] = fma(difference2, 2, difference);
    y[2] = fma(sum2, 4, sum);
    y[3] = fma(difference2, 8, difference) + p[5 * step];
  }
};

/// What transforms the columns of a tile and what transforms its rows.
template <class DownColumns, class AlongRows>
struct Form {
  using Down = DownColumns;
  using Along = AlongRows;
  /// Whether numbers that a result does not see cancel in it but for their last digit.
  static constexpr bool kCancels = Down::kCancels || Along::kCancels;
};

template <class Use>
void with_form(WinogradForm form, Use use) {
  switch (form) {
    case WinogradForm::two:
      return use(Form<Two, Two>{});
    case WinogradForm::four:
      return use(Form<Four, Four>{});
    case WinogradForm::strided:
      return use(Form<Strided, Strided>{});
    case WinogradForm::strided_line:
      return use(Form<One, Strided>{});
  }
}

}  // namespace
}  // namespace modelflow::cpu
