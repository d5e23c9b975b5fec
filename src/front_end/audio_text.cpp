// Features of sound as users write them: a preset and changes, or a JSON file.
#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <variant>

#include "modelflow/error.h"
#include "modelflow/front_end.h"
#include "src/core/nearest.h"

namespace modelflow {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorKind::usage, "audio features: " + why); }

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
  refuse(fmt::format("there is no '{}': expected whisper, kaldi, librosa or a .json file{}", name,
                     did_you_mean(name, names)));
}

double number(const std::string& key, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) refuse(fmt::format("{}: '{}' is no number", key, text));
  return value;
}

int whole(const std::string& key, const std::string& text) {
  const double value = number(key, text);
  if (!(value >= 0 && value <= 1 << 20 && value == static_cast<int>(value)))
    refuse(fmt::format("{}: '{}' is no whole number", key, text));
  return static_cast<int>(value);
}

bool flag(const std::string& key, const std::string& text) {
  if (text == "1" || text == "true") return true;
  if (text == "0" || text == "false") return false;
  refuse(fmt::format("{}: '{}' is neither true nor false", key, text));
}

void assign(int& to, const std::string& key, const std::string& text) { to = whole(key, text); }
void assign(double& to, const std::string& key, const std::string& text) { to = number(key, text); }
void assign(bool& to, const std::string& key, const std::string& text) { to = flag(key, text); }
void assign(std::string& to, const std::string&, const std::string& text) { to = text; }

using Field = std::variant<int*, double*, bool*, std::string*>;

std::map<std::string, Field> fields(AudioFeatures& f) {
  return {{"sample_rate", &f.sample_rate},
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
          {"frames_first", &f.frames_first},
          {"streaming", &f.streaming}};
}

void set(AudioFeatures& f, const std::string& key, const std::string& text) {
  const std::map<std::string, Field> all = fields(f);
  const auto field = all.find(key);
  if (field == all.end()) refuse(fmt::format("there is nothing called '{}'", key));
  if (key == "reference" && text != "max") (void)number(key, text);
  std::visit([&](auto* to) { assign(*to, key, text); }, field->second);
}

AudioFeatures from_json(const std::string& file) {
  std::ifstream in(file);
  const auto json = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) refuse(fmt::format("'{}' is no JSON object", file));
  AudioFeatures f = json.contains("preset")
                        ? preset(json["preset"].is_string() ? json["preset"].get<std::string>() : "")
                        : AudioFeatures{};
  for (const auto& [key, value] : json.items())
    if (key != "preset") set(f, key, value.is_string() ? value.get<std::string>() : value.dump());
  return f;
}

}  // namespace

AudioFeatures parse_audio_features(std::string_view text) {
  if (text.ends_with(".json")) return from_json(std::string(text));
  const std::size_t colon = text.find(':');
  AudioFeatures f = preset(std::string(text.substr(0, colon)));
  std::string_view rest = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view one = rest.substr(0, comma);
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos) refuse(fmt::format("'{}' is no NAME=VALUE", one));
    set(f, std::string(one.substr(0, equals)), std::string(one.substr(equals + 1)));
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return f;
}

}  // namespace modelflow
