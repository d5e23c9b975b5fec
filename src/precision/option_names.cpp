// The names that command line, C interface and reports use for the options of low precision.
#include <array>

#include "modelflow/modelflow.h"

namespace modelflow {
namespace {

template <class T>
using Named = std::pair<std::string_view, T>;

constexpr std::array kPrecisions = {Named<Precision>{"float32", Precision::f32},
                                    Named<Precision>{"bf16", Precision::bf16},
                                    Named<Precision>{"bf16-weights", Precision::bf16_weights},
                                    Named<Precision>{"fp16", Precision::f16},
                                    Named<Precision>{"int8", Precision::i8},
                                    Named<Precision>{"int8-dynamic", Precision::i8_dynamic},
                                    Named<Precision>{"int8-weights", Precision::i8_weights},
                                    Named<Precision>{"int4-weights", Precision::i4_weights},
                                    Named<Precision>{"auto", Precision::automatic}};
constexpr std::array kObservers = {
    Named<Observer>{"auto", Observer::automatic},  Named<Observer>{"minmax", Observer::minmax},
    Named<Observer>{"average", Observer::average}, Named<Observer>{"percentile", Observer::percentile},
    Named<Observer>{"entropy", Observer::entropy}, Named<Observer>{"mse", Observer::mse}};
constexpr std::array kMetrics = {Named<Metric>{"cosine", Metric::cosine}, Named<Metric>{"l2", Metric::l2},
                                 Named<Metric>{"top1", Metric::top1}};

template <class T, std::size_t n>
std::string_view name_in(const std::array<Named<T>, n>& names, T value) {
  for (const auto& [name, known] : names)
    if (known == value) return name;
  return "?";
}

template <class T, std::size_t n>
T parse_in(const std::array<Named<T>, n>& names, std::string_view what, std::string_view text) {
  std::string list;
  for (const auto& [name, value] : names) {
    if (name == text) return value;
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  throw Error(ErrorKind::usage, std::string(what) + " '" + std::string(text) + "': expected one of " + list);
}

}  // namespace

DType half_type(const Options& options) {
  if (options.precision == Precision::f16) return DType::f16;
  if (options.target.device != Device::cuda) return DType::undefined;
  // What does not go into fewer bits than that.
  if (options.precision == Precision::i8 || options.precision == Precision::i8_weights ||
      options.precision == Precision::i4_weights)
    return DType::f16;
  return options.precision == Precision::bf16 ? DType::bf16 : DType::undefined;
}

std::string_view name(Precision precision) { return name_in(kPrecisions, precision); }
std::string_view name(Observer observer) { return name_in(kObservers, observer); }
std::string_view name(Metric metric) { return name_in(kMetrics, metric); }

Precision parse_precision(std::string_view text) {
  if (text == "fp32" || text == "f32") return Precision::f32;
  if (text == "float16" || text == "f16") return Precision::f16;
  if (text == "bfloat16") return Precision::bf16;
  if (text == "bfloat16-weights") return Precision::bf16_weights;
  return parse_in(kPrecisions, "precision", text);
}

Observer parse_observer(std::string_view text) { return parse_in(kObservers, "observer", text); }
Metric parse_metric(std::string_view text) { return parse_in(kMetrics, "metric", text); }

}  // namespace modelflow
