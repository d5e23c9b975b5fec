// Features of sound as users write them: a preset and changes, or a JSON file.
#include <fmt/format.h>

#include "modelflow/error.h"
#include "modelflow/front_end.h"
#include "src/core/nearest.h"
#include "src/front_end/published.h"
#include "src/front_end/settings.h"

namespace modelflow {
namespace {

constexpr const char* kWhat = "audio features";

/// Whisper's log-mel spectrogram (openai/whisper, audio.py).
AudioFeatures whisper() {
  AudioFeatures f;
  f.n_fft = 400;
  f.pad_mode = "reflect";
  f.log = "log10";
  f.top = 8;
  f.shift = 4;
  f.scale = 0.25;
  f.drop_last = true;
  return f;
}

/// Kaldi's compute-fbank-feats without dither, as torchaudio.compliance.kaldi.fbank has it.
AudioFeatures kaldi() {
  AudioFeatures f;
  f.n_fft = 512;
  f.win_length = 400;
  f.window = "povey";
  f.periodic = false;
  f.center = false;
  f.window_first = true;
  f.remove_dc = true;
  f.preemphasis = 0.97;
  f.n_mels = 23;
  f.fmin = 20;
  f.mel = "kaldi";
  f.norm = false;
  f.log = "ln";
  f.floor = 1.1920928955078125e-07;
  f.frames_first = true;
  return f;
}

/// librosa.feature.melspectrogram.
AudioFeatures librosa() {
  AudioFeatures f;
  f.sample_rate = 22050;
  f.n_fft = 2048;
  f.hop_length = 512;
  f.n_mels = 128;
  return f;
}

AudioFeatures preset(const std::string& name) {
  if (name == "whisper") return whisper();
  if (name == "kaldi") return kaldi();
  if (name == "librosa") return librosa();
  const std::vector<std::string> names = {"whisper", "kaldi", "librosa"};
  throw Error(ErrorKind::usage, fmt::format("{}: there is no '{}': expected whisper, kaldi, librosa or a .json file{}",
                                            kWhat, name, did_you_mean(name, names)));
}

Settings settings(AudioFeatures& f) {
  return {{"sample_rate", &f.sample_rate},
          {"input_rate", &f.input_rate},
          {"n_fft", &f.n_fft},
          {"win_length", &f.win_length},
          {"hop_length", &f.hop_length},
          {"window", &f.window},
          {"periodic", &f.periodic},
          {"center", &f.center},
          {"pad_mode", &f.pad_mode},
          {"window_first", &f.window_first},
          {"input_scale", &f.input_scale},
          {"remove_dc", &f.remove_dc},
          {"preemphasis", &f.preemphasis},
          {"power", &f.power},
          {"n_mels", &f.n_mels},
          {"fmin", &f.fmin},
          {"fmax", &f.fmax},
          {"mel", &f.mel},
          {"norm", &f.norm},
          {"log", &f.log},
          {"floor", &f.floor},
          {"reference", &f.reference},
          {"top", &f.top},
          {"shift", &f.shift},
          {"scale", &f.scale},
          {"normalize", &f.normalize},
          {"drop_last", &f.drop_last},
          {"stack", &f.stack},
          {"stack_hop", &f.stack_hop},
          {"stack_edges", &f.stack_edges},
          {"frames_first", &f.frames_first},
          {"streaming", &f.streaming}};
}

}  // namespace

AudioFeatures parse_audio_features(std::string_view text) {
  const Wish wish = read_wish(text, published_audio, kWhat);
  AudioFeatures f = wish.preset ? preset(*wish.preset) : AudioFeatures{};
  apply(settings(f), wish, kWhat);
  return f;
}

}  // namespace modelflow
