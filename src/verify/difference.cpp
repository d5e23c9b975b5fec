// How far two tensors are apart, and how far they may be.
#include "src/verify/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

namespace modelflow {
namespace {

struct Extremes {
  double abs = 0, scale = 0;
  std::size_t differing = 0;
  bool incomparable = false;  ///< NaN or infinity against another value
};

template <class T>
Extremes extremes(const T* a, const T* b, std::size_t count) {
  Extremes e;
  for (std::size_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    if (std::isfinite(x)) e.scale = std::max(e.scale, std::abs(x));
    if (a[i] == b[i] || (std::isnan(x) && std::isnan(y))) continue;  // large integers are alike as doubles
    ++e.differing;
    if (std::isfinite(x) && std::isfinite(y))
      e.abs = std::max(e.abs, std::abs(x - y));
    else
      e.incomparable = true;
  }
  return e;
}

Extremes extremes(const Tensor& a, const Tensor& b) {
  const auto count = static_cast<std::size_t>(a.elements());
  if (a.dtype() == DType::f32) return extremes(a.as<float>().data(), b.as<float>().data(), count);
  if (a.dtype() == DType::string) {
    Extremes e;
    for (std::size_t i = 0; i < count; ++i) e.differing += a.strings()[i] != b.strings()[i];
    return e;
  }
  if (a.dtype() == DType::i64) return extremes(a.as<std::int64_t>().data(), b.as<std::int64_t>().data(), count);
  if (a.dtype() == DType::u64) return extremes(a.as<std::uint64_t>().data(), b.as<std::uint64_t>().data(), count);
  if (a.dtype() == DType::c64)
    return extremes(reinterpret_cast<const float*>(a.data()), reinterpret_cast<const float*>(b.data()), 2 * count);
  if (a.dtype() == DType::c128)
    return extremes(reinterpret_cast<const double*>(a.data()), reinterpret_cast<const double*>(b.data()), 2 * count);
  return extremes(a.to_doubles().data(), b.to_doubles().data(), count);
}

/// Four steps of the output's own type: a 16-bit model rounds to such steps at every node, and so does the reference.
double resolution(DType dtype) { return dtype == DType::f16 ? 0x1p-8 : dtype == DType::bf16 ? 0x1p-5 : 0; }

bool is_inexact(DType dtype) { return is_float(dtype) || dtype == DType::c64 || dtype == DType::c128; }

/// What was rounded to steps of 8 bits or fewer.
bool is_quantized(DType dtype) {
  return dtype == DType::u8 || dtype == DType::i8 || dtype == DType::u4 || dtype == DType::i4;
}

/// What is left of sums that cancel, where a sine of pi is no zero.
constexpr double kDust = 0x1p-50;

/// Of the largest value: a difference of more is none of rounding.
constexpr double kShareThatTells = 0.1;

double bound(DType dtype, double tolerance) { return std::max(tolerance, resolution(dtype)); }

bool is_close(const OutputDiff& diff, const Extremes& e, const Tensor& a, double tolerance) {
  if (is_inexact(a.dtype()))
    return diff.max_rel <= bound(a.dtype(), tolerance) || diff.max_abs <= (e.scale > 0 ? kDust : 1e-6);
  if (is_quantized(a.dtype())) return e.abs <= 1 && e.differing * 1000 <= static_cast<std::size_t>(a.elements());
  return e.differing == 0;
}

enum class Kind { finite, nan, infinity, minus_infinity };

Kind kind_of(double x) {
  if (std::isnan(x)) return Kind::nan;
  return !std::isinf(x) ? Kind::finite : x > 0 ? Kind::infinity : Kind::minus_infinity;
}

}  // namespace

OutputDiff difference(const std::string& output, const Tensor& a, const Tensor& b, double tolerance, double floor) {
  OutputDiff diff{.output = output};
  diff.equal_type = a.dtype() == b.dtype() && a.dims() == b.dims();
  diff.ok = diff.equal_type;
  if (!diff.ok || a.dtype() == DType::undefined) return diff;
  const Extremes e = extremes(a, b);
  diff.max_abs = e.incomparable ? INFINITY : e.abs;
  // Where all is next to nothing, what is left of it still says something.
  if (e.scale > 0) floor = std::min(floor, kShareThatTells * e.scale);
  const double scale = std::max(e.scale, floor > 0 ? floor / bound(a.dtype(), tolerance) : 0);
  diff.max_rel = diff.max_abs == 0 ? 0 : scale > 0 ? diff.max_abs / scale : INFINITY;
  diff.ok = is_close(diff, e, a, tolerance);
  return diff;
}

namespace {

/// The numbers of two tensors that lie in the same section of every axis.
struct Cell {
  std::vector<float> a = {}, b = {};
  double floor = 0;
};

std::vector<Cell> cells_in(const Tensor& a, const Tensor& b, const Sections& sections, double floor) {
  const Cells found = cells_of(a.dims(), sections, floor);
  std::vector<Cell> cells;
  for (const double least : found.floors) cells.push_back({.floor = least});
  const std::span<const float> x = a.as<float>(), y = b.as<float>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    cells[found.of[i]].a.push_back(x[i]);
    cells[found.of[i]].b.push_back(y[i]);
  }
  return cells;
}

OutputDiff difference(const std::string& output, const Cell& cell, double tolerance) {
  const Dims dims = {static_cast<std::int64_t>(cell.a.size())};
  return difference(output, Tensor::of<float>(dims, cell.a), Tensor::of<float>(dims, cell.b), tolerance, cell.floor);
}

}  // namespace

OutputDiff difference(const std::string& output, const Tensor& a, const Tensor& b, double tolerance, double floor,
                      const Sections& sections) {
  OutputDiff all = difference(output, a, b, tolerance, floor);
  if (!all.equal_type || sections.empty() || a.dtype() != DType::f32 || all.max_abs == 0) return all;
  for (const Cell& cell : cells_in(a, b, sections, floor)) {
    const OutputDiff part = difference(output, cell, tolerance);
    all.ok = all.ok && part.ok;
    all.max_rel = std::max(all.max_rel, part.max_rel);
  }
  return all;
}

OutputDiff difference_in_kind(const std::string& output, const Tensor& a, const Tensor& b, const Tensor* other) {
  OutputDiff diff{.output = output};
  diff.equal_type = a.dtype() == b.dtype() && a.dims() == b.dims();
  diff.ok = diff.equal_type;
  // A boolean is what a comparison said of the numbers; an integer may be a count or the place of the largest, where
  // rounding decides.
  const bool truth = a.dtype() == DType::boolean;
  if (!diff.ok || !(is_float(a.dtype()) || truth)) return diff;
  const std::vector<double> x = a.to_doubles(), y = b.to_doubles();
  const bool has_other = other && other->dtype() == a.dtype() && other->dims() == a.dims();
  const std::vector<double> z = has_other ? other->to_doubles() : x;
  const auto alike = [truth](double one, double two) { return truth ? one == two : kind_of(one) == kind_of(two); };
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!alike(y[i], x[i]) && !alike(y[i], z[i])) diff.ok = false;
  if (!diff.ok) diff.max_abs = diff.max_rel = truth ? 1 : INFINITY;
  return diff;
}

std::string describe(const OutputDiff& diff) {
  if (!diff.equal_type) return "has another type or shape";
  if (diff.max_abs == 0) return "differs";  // texts
  if (!std::isfinite(diff.max_abs)) return "has NaN or infinity where the original has none, or the other way round";
  if (!std::isfinite(diff.max_rel)) return fmt::format("is {:.1e} where the original is 0", diff.max_abs);
  return fmt::format("differs by {:.1e} of its largest value", diff.max_rel);
}

}  // namespace modelflow
