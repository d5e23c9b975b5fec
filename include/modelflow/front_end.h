// Models that compute what clients compute in front of a model: features of sound, pictures as networks take them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "modelflow/model.h"

namespace modelflow {

/// What features of sound are made of, in the words of the libraries that compute them. Frequencies in Hz, lengths in
/// samples.
struct AudioFeatures {
  double sample_rate = 16000;
  int input_rate = 0;  ///< of the samples as they come, resampled as torchaudio does; 0: sample_rate
  int n_fft = 512, win_length = 0, hop_length = 160;  ///< win_length 0: n_fft
  std::string window = "hann";                        ///< hann, hamming, povey, rectangular
  bool periodic = true;                               ///< windows as of one sample more, without the last
  bool center = true;                                 ///< frames around multiples of the hop; false: whole frames only
  std::string pad_mode = "constant";                  ///< with `center`: constant (zeros) or reflect
  bool window_first = false;  ///< a window shorter than n_fft stands at the beginning (Kaldi), not in the middle
  double input_scale = 1;     ///< 32768 for Kaldi's features of samples in -1..1
  bool remove_dc = false;     ///< each frame without its mean
  double preemphasis = 0;     ///< x[i] - preemphasis x[i-1], by frame
  double power = 2;           ///< 2, or 1 for magnitudes
  int n_mels = 80;            ///< 0: the spectrum itself
  double fmin = 0, fmax = 0;  ///< fmax 0: half of the sample rate
  std::string mel =
      "slaney";  ///< slaney, htk, kaldi (triangles over mels, without the highest bin), bark (torchaudio's traunmuller)
  bool norm = true;              ///< slaney's, by width
  std::string log = "none";      ///< none, ln, log10, db (10 log10)
  double floor = 1e-10;          ///< what the log takes at least
  std::string reference = "";    ///< with db: "max", or a number; empty: 1
  double top = 0;                ///< what is so far below the largest of a sample is lifted to that; 0: nothing is
  double shift = 0, scale = 1;   ///< (features + shift) * scale
  bool normalize = false;        ///< each feature of a sample without its mean, over its deviation (CMVN)
  bool drop_last = false;        ///< the last frame is left out
  int stack = 1, stack_hop = 0;  ///< frames side by side, and how far the next ones are (0: as many)
  bool stack_edges = false;      ///< the first and the last frame are repeated, so that none is left over
  bool frames_first = false;     ///< [N, frames, features] and not [N, features, frames]
  bool streaming = false;        ///< needs center = false: input and output `past` carry the samples between two runs
};

/// "whisper", "kaldi" or "librosa" (the defaults of Whisper's feature extractor, torchaudio.compliance.kaldi.fbank and
/// librosa.feature.melspectrogram), with changes: "kaldi:n_mels=80,input_scale=32768"; or a JSON file of these names,
/// with "preset", or the preprocessor_config.json of a Whisper model. Throws Error(usage).
AudioFeatures parse_audio_features(std::string_view text);

/// A model of standard ops (opset 17): `samples` float32 [N, T] -> `features`. What is linear about a frame (offset,
/// pre-emphasis, window, Fourier transform) is one convolution, or two products of folded frames. Throws Error(usage)
/// for numbers that make no sense.
Model audio_front_end(const AudioFeatures& features);

/// What is done to pictures before a network. Lists of lengths: one number for both, or height and width.
struct ImageFeatures {
  /// none; exact (`size`); shortest (the shorter side becomes `size`, the other one in proportion, cut to whole
  /// pixels); letterbox (in proportion inside of `size`, the rest is `pad_value`); sides (see `limit`).
  std::string resize = "shortest";
  std::vector<int> size = {256};
  std::string limit = "min";               ///< sides: min (not shorter than `size`) or max (not longer), in proportion
  int multiple = 32;                       ///< sides: then to the nearest multiple of this
  std::string library = "pillow";          ///< pillow (antialiased) or opencv (not)
  std::string interpolation = "bilinear";  ///< nearest, bilinear; bicubic with pillow
  int pad_value = 114;
  bool corner = false;                 ///< letterbox: the picture at the upper left and not in the middle
  std::vector<int> crop = {224};       ///< from the middle; empty: nothing is cut
  std::string crop_rounding = "even";  ///< half a pixel to the even one (torchvision) or down (transformers)
  bool swap = false;                   ///< the channels in reverse: pixels are BGR for a network of RGB, or vice versa
  double scale = 1.0 / 255;            ///< (pixels * scale - mean) / std
  std::vector<double> mean, std;       ///< of each channel as the network takes them, or one for all; empty: 0 and 1
  std::string layout = "nchw";         ///< or nhwc
  std::string dtype = "float32";       ///< or float16
};

/// "imagenet" (torchvision's evaluation), "clip", "yolo" (Ultralytics) or "paddleocr" (text detection), with changes:
/// "imagenet:size=232,interpolation=bicubic,mean=0.5/0.5/0.5"; or a JSON file of these names, with "preset", or what
/// models are published with: preprocessor_config.json of transformers, config.json of timm. Throws Error(usage).
ImageFeatures parse_image_features(std::string_view text);

/// A model of standard ops (opset 18): `pixels` uint8 [N, height, width, 3] -> `image`. Bilinear pixels of opencv are
/// those of cv2.resize; those of pillow are one off in few places (docs/compose.md). Throws Error(usage).
Model image_front_end(const ImageFeatures& features);

}  // namespace modelflow
