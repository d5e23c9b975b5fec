// Tables of a spectrum: windows as scipy and Kaldi have them, the discrete Fourier transform, mel scales of Slaney's
// Auditory Toolbox (librosa's default), of HTK and of Kaldi, the Bark scale.
#include "src/front_end/spectrum.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "modelflow/error.h"

namespace modelflow {
namespace {

constexpr double kPi = std::numbers::pi;

double window_at(const AudioFeatures& f, int i, int length) {
  if (length == 1) return 1;  // as scipy and torch have it
  const double turns = 2 * kPi * i / (f.periodic ? length : length - 1);
  if (f.window == "hann") return 0.5 - 0.5 * std::cos(turns);
  if (f.window == "hamming") return 0.54 - 0.46 * std::cos(turns);
  if (f.window == "povey") return std::pow(0.5 - 0.5 * std::cos(turns), 0.85);
  return 1;
}

/// Row times (1 - preemphasis * shift), where the first sample stands for the one before it.
void fold_preemphasis(std::vector<double>& row, double by) {
  std::vector<double> folded = row;
  for (std::size_t i = 0; i + 1 < row.size(); ++i) folded[i] -= by * row[i + 1];
  folded[0] -= by * row[0];
  row = std::move(folded);
}

/// Row times (1 - mean).
void fold_mean(std::vector<double>& row) {
  double sum = 0;
  for (const double x : row) sum += x;
  for (double& x : row) x -= sum / static_cast<double>(row.size());
}

double slaney_mel(double hz) { return hz < 1000 ? hz * 3 / 200 : 15 + 27 * std::log(hz / 1000) / std::log(6.4); }
double slaney_hz(double mel) { return mel < 15 ? mel * 200 / 3 : 1000 * std::exp((mel - 15) * std::log(6.4) / 27); }
double htk_mel(double hz) { return 1127 * std::log(1 + hz / 700); }
double htk_hz(double mel) { return 700 * (std::exp(mel / 1127) - 1); }

/// Traunmueller's, with his corrections at both ends.
double bark(double hz) {
  const double z = 26.81 * hz / (1960 + hz) - 0.53;
  if (z < 2) return z + 0.15 * (2 - z);
  return z > 20.1 ? z + 0.22 * (z - 20.1) : z;
}
double bark_hz(double z) {
  if (z < 2) z = (z - 0.3) / 0.85;
  if (z > 20.1) z = (z + 4.422) / 1.22;
  return 1960 * (z + 0.53) / (26.28 - z);
}

/// A scale, there and back.
struct Scale {
  double (*of)(double hz);
  double (*hz)(double value);
};

Scale scale(const std::string& name) {
  if (name == "slaney") return {slaney_mel, slaney_hz};
  if (name == "bark") return {bark, bark_hz};
  return {htk_mel, htk_hz};
}

/// A triangle over `low`, `middle`, `high`.
double triangle(double x, double low, double middle, double high) {
  return std::max(0.0, std::min((x - low) / (middle - low), (high - x) / (high - middle)));
}

}  // namespace

int bins(const AudioFeatures& f) { return f.n_fft / 2 + 1; }
int window_length(const AudioFeatures& f) { return f.win_length > 0 ? f.win_length : f.n_fft; }
int frame_length(const AudioFeatures& f) { return f.window_first ? window_length(f) : f.n_fft; }

std::vector<double> frame_window(const AudioFeatures& f) {
  const int length = window_length(f), frame = frame_length(f);
  std::vector<double> window(static_cast<std::size_t>(frame), 0.0);
  const int first = (frame - length) / 2;
  for (int i = 0; i < length; ++i)
    window[static_cast<std::size_t>(first) + static_cast<std::size_t>(i)] = window_at(f, i, length);
  return window;
}

std::vector<std::vector<double>> frame_basis(const AudioFeatures& f) {
  const std::vector<double> window = frame_window(f);
  std::vector<std::vector<double>> rows;
  for (const bool imaginary : {false, true})
    for (int bin = 0; bin < bins(f); ++bin) {
      std::vector<double> row(window.size());
      for (std::size_t i = 0; i < row.size(); ++i) {
        const auto turn = static_cast<double>(static_cast<std::int64_t>(bin) * static_cast<std::int64_t>(i) % f.n_fft);
        const double angle = 2 * kPi * turn / f.n_fft;
        row[i] = f.input_scale * window[i] * (imaginary ? -std::sin(angle) : std::cos(angle));
      }
      if (f.preemphasis != 0) fold_preemphasis(row, f.preemphasis);
      if (f.remove_dc) fold_mean(row);
      rows.push_back(std::move(row));
    }
  return rows;
}

std::vector<std::vector<double>> mel_filters(const AudioFeatures& f) {
  const bool over_mels = f.mel == "kaldi";
  const auto [mel, hz] = scale(f.mel);
  const double low = mel(f.fmin), high = mel(f.fmax > 0 ? f.fmax : f.sample_rate / 2);
  const auto edge = [&](int i) { return low + (high - low) * i / (f.n_mels + 1); };
  std::vector<std::vector<double>> filters;
  for (int m = 0; m < f.n_mels; ++m) {
    std::vector<double> filter(static_cast<std::size_t>(bins(f)), 0.0);
    const double width = hz(edge(m + 2)) - hz(edge(m));
    for (int bin = 0; bin < bins(f) - (over_mels ? 1 : 0); ++bin) {
      const double x = f.sample_rate * bin / f.n_fft;
      double& weight = filter[static_cast<std::size_t>(bin)];
      if (over_mels)
        weight = triangle(mel(x), edge(m), edge(m + 1), edge(m + 2));
      else
        weight = triangle(x, hz(edge(m)), hz(edge(m + 1)), hz(edge(m + 2))) * (f.norm ? 2 / width : 1);
    }
    filters.push_back(std::move(filter));
  }
  return filters;
}

}  // namespace modelflow
