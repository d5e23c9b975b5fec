// Features of sound as a model: frames and spectrum are products, mel filters another one, then a logarithm.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <initializer_list>
#include <numeric>

#include "modelflow/error.h"
#include "modelflow/front_end.h"
#include "src/front_end/folded.h"
#include "src/front_end/resampled.h"
#include "src/front_end/spectrum.h"
#include "src/front_end/stacked.h"

namespace modelflow {
namespace {

/// What decibels are above, where it is a number.
double reference(const AudioFeatures& f) {
  double value = 0;
  const char* end = f.reference.data() + f.reference.size();
  const auto read = std::from_chars(f.reference.data(), end, value);
  if (read.ec == std::errc() && read.ptr == end && value > 0) return value;
  throw Error(ErrorKind::usage, "audio features: reference must be max or a positive number");
}

void check(const AudioFeatures& f) {
  const auto refuse = [](bool wrong, const char* what) {
    if (wrong) throw Error(ErrorKind::usage, fmt::format("audio features: {}", what));
  };
  constexpr int kMost = 1 << 16;
  const auto one_of = [](const std::string& name, std::initializer_list<const char*> names) {
    for (const char* each : names)
      if (name == each) return true;
    return false;
  };
  refuse(f.n_fft < 2 || f.n_fft > kMost, "n_fft must lie between 2 and 65536");
  refuse(f.win_length < 0 || f.win_length > f.n_fft, "win_length must not be longer than n_fft");
  refuse(f.hop_length < 1 || f.hop_length > kMost, "hop_length must lie between 1 and 65536");
  refuse(f.n_mels < 0 || f.n_mels > 4096, "n_mels must lie between 0 and 4096");
  refuse(!(f.sample_rate > 0 && f.sample_rate <= 1 << 20), "sample_rate must lie between 0 and 1048576");
  refuse(!(f.fmin >= 0) || (f.fmax > 0 && !(f.fmax > f.fmin)) || !(f.fmin < f.sample_rate / 2),
         "fmin must lie below fmax, and below half of the sample rate");
  refuse(!one_of(f.window, {"hann", "hamming", "povey", "rectangular"}),
         "window must be hann, hamming, povey or rectangular");
  refuse(!one_of(f.pad_mode, {"constant", "reflect"}), "pad_mode must be constant or reflect");
  refuse(!one_of(f.mel, {"slaney", "htk", "kaldi", "bark"}), "mel must be slaney, htk, kaldi or bark");
  refuse(!one_of(f.log, {"none", "ln", "log10", "db"}), "log must be none, ln, log10 or db");
  refuse(f.power != 1 && f.power != 2, "power must be 1 or 2");
  const auto floor = static_cast<float>(f.floor);
  refuse(f.log != "none" && !(floor > 0 && std::isfinite(floor)), "floor must be a positive number in float32");
  if (!f.reference.empty() && f.reference != "max") (void)reference(f);
  refuse(f.stack < 1 || f.stack > 1024 || f.stack_hop < 0, "stack must lie between 1 and 1024");
  refuse(f.input_rate > 0 && f.sample_rate != std::floor(f.sample_rate), "input_rate needs a whole sample_rate");
  const std::int64_t given = f.input_rate, wanted = static_cast<std::int64_t>(f.sample_rate);
  const std::int64_t common = std::max<std::int64_t>(std::gcd(given, wanted), 1);
  refuse(f.input_rate > 0 && (given / common) * (wanted / common) > 1 << 22,
         "input_rate and sample_rate have hardly a common divisor: that takes too many filters");
  refuse(f.streaming && (f.input_rate > 0 || f.stack > 1), "streaming goes neither with input_rate nor with stack");
  refuse(f.streaming && f.center,
         "streaming needs center=false: frames that reach beyond what has arrived wait for it");
  const bool of_whole_sounds = f.drop_last || f.top > 0 || f.normalize || (f.log == "db" && f.reference == "max");
  refuse(f.streaming && of_whole_sounds,
         "streaming sees no whole sound, as drop_last, top, normalize and reference=max do");
  refuse(f.streaming && f.hop_length > frame_length(f), "streaming needs frames that are no shorter than the hop");
}

Tensor table(const std::vector<std::vector<double>>& rows) {
  std::vector<float> all;
  for (const auto& row : rows)
    for (const double x : row) all.push_back(static_cast<float>(x));
  const auto count = static_cast<std::int64_t>(rows.size());
  return Tensor::of<float>({count, 1, static_cast<std::int64_t>(rows.front().size())}, std::span<const float>(all));
}

class Builder {
 public:
  explicit Builder(const AudioFeatures& features) : f_(features), graph_(model_.graph()), draft_(graph_) {
    model_.ir_version = 8;
    model_.opsets[""] = 17;
    graph_.name = "audio_front_end";
  }

  Model build() {
    const std::optional<Fold> fold = fold_of(f_);
    Value* x = samples();
    if (f_.input_rate > 0 && f_.input_rate != f_.sample_rate)
      x = resampled(draft_, x, f_.input_rate, static_cast<int>(f_.sample_rate));
    x = padded(x, fold ? f_.hop_length : 0);
    x = fold ? folded_power(draft_, f_, *fold, x) : power(x);
    if (f_.power == 1) x = op("Sqrt", {x});
    // In front of what looks at a whole sound: as the libraries do, the largest value is one of the frames that stay.
    if (f_.drop_last) x = op("Slice", {x, &draft_.ints({0}), &draft_.ints({-1}), &draft_.ints({1})});
    if (f_.n_mels > 0) x = filtered(x);
    if (f_.log != "none") x = logarithm(x);
    if (f_.top > 0) x = op("Max", {x, op("Sub", {largest(x), &draft_.number(f_.top)})});
    if (f_.shift != 0) x = op("Add", {x, &draft_.number(f_.shift)});
    if (f_.scale != 1) x = op("Mul", {x, &draft_.number(f_.scale)});
    if (f_.normalize) x = normalized(x);
    if (f_.stack > 1) x = stacked(draft_, x, f_.stack, f_.stack_hop > 0 ? f_.stack_hop : f_.stack, f_.stack_edges);
    if (!f_.frames_first) x = op("Transpose", {x}, {{"perm", Attr(Ints{0, 2, 1})}});
    finish(*x);
    return std::move(model_);
  }

 private:
  Value* op(const char* name, std::vector<Value*> inputs, Attrs attrs = {}) {
    return draft_.op(name, std::move(inputs), std::move(attrs));
  }
  /// [N, T], with what the last run left in front.
  Value* samples() {
    const Dim n = Dim::symbol("N");
    Value& x = graph_.add_input("samples", Type::tensor(DType::f32, Shape({n, Dim::symbol("T")})));
    if (!f_.streaming) return &x;
    const std::int64_t kept = frame_length(f_) - f_.hop_length;
    const Type type = Type::tensor(DType::f32, Shape({n, Dim(kept)}));
    Value* all = op("Concat", {&graph_.add_input("past", type), &x}, {{"axis", Attr(std::int64_t{1})}});
    constexpr std::int64_t kEnd = INT64_MAX;
    Value* next = kept > 0 ? op("Slice", {all, &draft_.ints({-kept}), &draft_.ints({kEnd}), &draft_.ints({1})})
                           : op("Slice", {all, &draft_.ints({0}), &draft_.ints({0}), &draft_.ints({1})});
    graph_.rename(*next, "next");
    next->type = type;
    next_ = next;
    return all;
  }

  /// [N, T], with half a frame on both sides where they are centered, and `more` zeros at the end.
  Value* padded(Value* x, std::int64_t more) {
    const std::int64_t side = f_.center ? f_.n_fft / 2 : 0;
    const auto pad = [&](std::int64_t before, std::int64_t behind, const std::string& mode) {
      if (before > 0 || behind > 0) x = op("Pad", {x, &draft_.ints({0, before, 0, behind})}, {{"mode", Attr(mode)}});
    };
    const bool zeros = f_.pad_mode == "constant";
    pad(side, side + (zeros ? more : 0), f_.pad_mode);
    if (!zeros) pad(0, more, "constant");
    return x;
  }

  /// [N, T] -> the power spectra [N, frames, bins]: all that is linear about a frame is a convolution.
  Value* power(Value* x) {
    Value& basis = graph_.add_constant(table(frame_basis(f_)), "basis");
    x = op("Conv", {op("Unsqueeze", {x, &draft_.ints({1})}), &basis},
           {{"strides", Attr(Ints{f_.hop_length})}, {"kernel_shape", Attr(Ints{frame_length(f_)})}});
    x = op("Mul", {x, x});
    Node& parts = graph_.add("Split", {x}, {.outputs = 2, .attrs = {{"axis", Attr(std::int64_t{1})}}});
    return op("Transpose", {op("Add", {parts.output(0), parts.output(1)})}, {{"perm", Attr(Ints{0, 2, 1})}});
  }

  /// [N, frames, bins] -> [N, frames, n_mels].
  Value* filtered(Value* x) {
    const std::vector<std::vector<double>> filters = mel_filters(f_);
    std::vector<float> weights;
    for (std::size_t bin = 0; bin < filters.front().size(); ++bin)
      for (const auto& filter : filters) weights.push_back(static_cast<float>(filter[bin]));
    Tensor table = Tensor::of<float>({bins(f_), f_.n_mels}, std::span<const float>(weights));
    return op("MatMul", {x, &graph_.add_constant(std::move(table), "filters")});
  }

  Value* largest(Value* x) { return op("ReduceMax", {x}, {{"axes", Attr(Ints{1, 2})}}); }

  Value* logarithm(Value* x) {
    Value* at_least = op("Max", {x, &draft_.number(f_.floor)});
    Value* log = op("Log", {at_least});
    const double per_e = f_.log == "ln" ? 1 : (f_.log == "db" ? 10 : 1) / std::log(10.0);
    if (per_e != 1) log = op("Mul", {log, &draft_.number(per_e)});
    if (f_.log != "db" || f_.reference.empty()) return log;
    if (f_.reference == "max") return op("Sub", {log, largest(log)});
    return op("Sub", {log, &draft_.number(10 * std::log10(std::max(f_.floor, reference(f_))))});
  }

  Value* normalized(Value* x) {
    const Attrs over_frames = {{"axes", Attr(Ints{1})}};
    Value* centered = op("Sub", {x, op("ReduceMean", {x}, over_frames)});
    Value* variance = op("ReduceMean", {op("Mul", {centered, centered})}, over_frames);
    return op("Div", {centered, op("Sqrt", {op("Add", {variance, &draft_.number(1e-10)})})});
  }

  void finish(Value& features) {
    graph_.rename(features, "features");
    const Dim rows(std::int64_t{f_.stack} * (f_.n_mels > 0 ? f_.n_mels : bins(f_))), n = Dim::symbol("N"),
                                                                                     frames = Dim::symbol("frames");
    features.type = Type::tensor(DType::f32, f_.frames_first ? Shape({n, frames, rows}) : Shape({n, rows, frames}));
    graph_.add_output(features);
    if (next_) graph_.add_output(*next_);
  }

  const AudioFeatures& f_;
  Model model_;
  Graph& graph_;
  Draft draft_;
  Value* next_ = nullptr;
};

}  // namespace

Model audio_front_end(const AudioFeatures& features) {
  check(features);
  return Builder(features).build();
}

}  // namespace modelflow
