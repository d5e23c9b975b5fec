// Models that compute what clients compute in front of a model: features of sound.
#pragma once

#include <string>
#include <string_view>

#include "modelflow/model.h"

namespace modelflow {

/// What features of sound are made of, in the words of the libraries that compute them. Frequencies in Hz, lengths in
/// samples.
struct AudioFeatures {
  double sample_rate = 16000;
  int n_fft = 512, win_length = 0, hop_length = 160;  ///< win_length 0: n_fft
  std::string window = "hann";                        ///< hann, hamming, povey, rectangular
  bool periodic = true;                               ///< windows as of one sample more, without the last
  bool center = true;                                 ///< frames around multiples of the hop; false: whole frames only
  std::string pad_mode = "constant";                  ///< with `center`: constant (zeros) or reflect
  bool window_first = false;    ///< a window shorter than n_fft stands at the beginning (Kaldi), not in the middle
  double input_scale = 1;       ///< 32768 for Kaldi's features of samples in -1..1
  bool remove_dc = false;       ///< each frame without its mean
  double preemphasis = 0;       ///< x[i] - preemphasis x[i-1], by frame
  double power = 2;             ///< 2, or 1 for magnitudes
  int n_mels = 80;              ///< 0: the spectrum itself
  double fmin = 0, fmax = 0;    ///< fmax 0: half of the sample rate
  std::string mel = "slaney";   ///< slaney, htk, kaldi (triangles over mels, without the highest bin)
  bool norm = true;             ///< slaney's, by width
  std::string log = "none";     ///< none, ln, log10, db (10 log10)
  double floor = 1e-10;         ///< what the log takes at least
  std::string reference = "";   ///< with db: "max", or a number; empty: 1
  double top = 0;               ///< what is so far below the largest of a sample is lifted to that; 0: nothing is
  double shift = 0, scale = 1;  ///< (features + shift) * scale
  bool normalize = false;       ///< each feature of a sample without its mean, over its deviation (CMVN)
  bool drop_last = false;       ///< the last frame is left out
  bool frames_first = false;    ///< [N, frames, features] and not [N, features, frames]
  bool streaming = false;       ///< needs center = false: input and output `past` carry the samples between two runs
};

/// "whisper", "kaldi" or "librosa" (the defaults of Whisper's feature extractor, torchaudio.compliance.kaldi.fbank and
/// librosa.feature.melspectrogram), with changes: "kaldi:n_mels=80,input_scale=32768"; or a JSON file of these names,
/// with "preset". Throws Error(usage).
AudioFeatures parse_audio_features(std::string_view text);

/// A model of standard ops (opset 17): `samples` float32 [N, T] -> `features`. What is linear about a frame (offset,
/// pre-emphasis, window, Fourier transform) is one convolution. Throws Error(usage) for numbers that make no sense.
Model audio_front_end(const AudioFeatures& features);

}  // namespace modelflow
