// What transformers and timm write beside a model, read into the words of front ends.
#include "src/front_end/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "modelflow/error.h"

namespace modelflow {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorKind::usage, why); }

const Json& said(const Json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) refuse(fmt::format("the configuration does not say '{}'", key));
  return *found;
}

bool asks(const Json& config, const char* key, bool otherwise) {
  return config.contains(key) && !config[key].is_null() ? config[key].get<bool>() : otherwise;
}

std::string list(const Json& values) {
  if (!values.is_array()) return values.dump();
  std::string all;
  for (const Json& value : values) all += (all.empty() ? "" : "/") + value.dump();
  return all;
}

void normalization(Wish& wish, const Json& mean, const Json& std) {
  wish.changes.emplace_back("mean", list(mean));
  wish.changes.emplace_back("std", list(std));
}

/// Processors whose arithmetic is the plain one, what a size that is one number means for them, both sides or the
/// shorter one (`default_to_square` of each in transformers), whether they normalize where nothing is said of it, and
/// whether they may cut and flip: versions of one processor differ in what silence means for those, so it must be said.
struct Processor {
  std::string_view stem;
  bool square = false, normalizes = true, cuts = false, flips = false;
};
constexpr Processor kProcessors[] = {
    {.stem = "CLIP", .cuts = true},
    {.stem = "ChineseCLIP", .cuts = true},
    {.stem = "AltCLIP", .cuts = true},
    {.stem = "ViT", .square = true},
    {.stem = "DeiT", .square = true, .cuts = true},
    {.stem = "Beit", .square = true, .cuts = true},
    {.stem = "Siglip", .square = true},
    {.stem = "Blip", .square = true},
    {.stem = "Bit", .cuts = true},
    {.stem = "MobileNetV1", .cuts = true},
    {.stem = "MobileNetV2", .cuts = true},
    {.stem = "MobileViT", .normalizes = false, .cuts = true, .flips = true},
    {.stem = "ConvNext"},
    {.stem = "Segformer", .square = true},
};

const Processor& processor(const std::string& type) {
  std::string stem = type;
  for (const std::string suffix : {"Fast", "Pil", "ImageProcessor", "FeatureExtractor"})
    if (stem.ends_with(suffix)) stem.resize(stem.size() - suffix.size());
  const auto* const found = std::ranges::find(kProcessors, stem, &Processor::stem);
  if (found == std::end(kProcessors))
    refuse(fmt::format("what '{}' computes is not known here: say it with --image-front-end imagenet:size=...", type));
  return *found;
}

/// {"height": h, "width": w}, {"shortest_edge": s}, or a number.
void sizes(Wish& wish, const Json& size, bool square) {
  if (size.is_number() || size.contains("shortest_edge")) {
    if (size.contains("longest_edge")) refuse("a size with both 'shortest_edge' and 'longest_edge'");
    wish.changes.emplace_back("resize", size.is_number() && square ? "exact" : "shortest");
    wish.changes.emplace_back("size", (size.is_number() ? size : size["shortest_edge"]).dump());
  } else {
    wish.changes.emplace_back("resize", "exact");
    wish.changes.emplace_back("size", said(size, "height").dump() + "/" + said(size, "width").dump());
  }
}

std::string both(const Json& size) {
  return size.is_number() ? size.dump() : said(size, "height").dump() + "/" + said(size, "width").dump();
}

/// Below 384 a border is cut off that `crop_pct` tells; from there on the picture is squeezed.
void convnext_sizes(Wish& wish, const Json& config) {
  const Json& size = said(config, "size");
  const int edge = (size.is_number() ? size : said(size, "shortest_edge")).get<int>();
  const double part =
      config.contains("crop_pct") && !config["crop_pct"].is_null() ? config["crop_pct"].get<double>() : 224.0 / 256;
  if (!(part > 0)) refuse("'crop_pct' must be positive");
  wish.changes.emplace_back("resize", edge < 384 ? "shortest" : "exact");
  wish.changes.emplace_back("size", fmt::format("{}", edge < 384 ? static_cast<int>(edge / part) : edge));
  wish.changes.emplace_back("crop", fmt::format("{}", edge));
}

const char* interpolation(int resample) {  // as Pillow counts its filters
  if (resample == 0) return "nearest";
  if (resample == 2) return "bilinear";
  if (resample == 3) return "bicubic";
  refuse(fmt::format("filter {} of Pillow: 0 (nearest), 2 (bilinear) and 3 (bicubic) are known here", resample));
}

void check_wishes(const Json& config) {
  constexpr std::string_view known[] = {"do_resize",      "do_center_crop",        "do_rescale",      "do_normalize",
                                        "do_convert_rgb", "do_flip_channel_order", "do_reduce_labels"};
  for (const auto& [key, value] : config.items())
    if (key.starts_with("do_") && value == true && std::ranges::find(known, key) == std::end(known))
      refuse(fmt::format("'{}' is not known here", key));
}

Wish of_transformers(const Json& config, const std::string& type) {
  const Processor& known = processor(type);
  check_wishes(config);
  Wish wish;
  if (known.cuts) (void)said(config, "do_center_crop");
  if (known.flips) (void)said(config, "do_flip_channel_order");
  const bool resizes = asks(config, "do_resize", true), cuts = asks(config, "do_center_crop", false);
  if (!resizes) wish.changes.emplace_back("resize", "none");
  wish.changes.emplace_back("crop", cuts ? both(said(config, "crop_size")) : "");
  if (resizes && known.stem == "ConvNext")
    convnext_sizes(wish, config);
  else if (resizes)
    sizes(wish, said(config, "size"), known.square);
  if (resizes) wish.changes.emplace_back("interpolation", interpolation(said(config, "resample").get<int>()));
  wish.changes.emplace_back("crop_rounding", "down");
  const bool rescales = asks(config, "do_rescale", true);
  if (!rescales) wish.changes.emplace_back("scale", "1");
  if (rescales && config.contains("rescale_factor"))
    wish.changes.emplace_back("scale", config["rescale_factor"].dump());
  if (asks(config, "do_normalize", known.normalizes))
    normalization(wish, said(config, "image_mean"), said(config, "image_std"));
  if (asks(config, "do_flip_channel_order", false)) wish.changes.emplace_back("swap", "true");
  return wish;
}

/// create_transform for evaluation: resized to the input over `crop_pct`, cut from the middle.
Wish of_timm(const Json& config) {
  const Json& input = said(config, "input_size");
  const int height = input.at(1).get<int>(), width = input.at(2).get<int>();
  const std::string mode = config.value("crop_mode", "center");
  const auto part = said(config, "crop_pct").get<double>();
  if (input.at(0) != 3) refuse("pictures of three channels are known here");
  if (!(part > 0)) refuse("'crop_pct' must be positive");
  if (mode != "squash" && !(mode == "center" && height == width))
    refuse(fmt::format("crop_mode '{}' at {} x {} is not known here", mode, height, width));
  const auto resized = [&](int length) { return static_cast<int>(std::floor(length / part)); };
  Wish wish;
  wish.changes.emplace_back("resize", mode == "squash" ? "exact" : "shortest");
  wish.changes.emplace_back("size", mode == "squash" ? fmt::format("{}/{}", resized(height), resized(width))
                                                     : fmt::format("{}", resized(height)));
  wish.changes.emplace_back("crop", fmt::format("{}/{}", height, width));
  wish.changes.emplace_back("interpolation", said(config, "interpolation").get<std::string>());
  normalization(wish, said(config, "mean"), said(config, "std"));
  return wish;
}

std::string type_of(const Json& config) {
  for (const char* key : {"image_processor_type", "feature_extractor_type"})
    if (config.contains(key) && config[key].is_string()) return config[key];
  return "";
}

template <class Read>
std::optional<Wish> reading(Read read) {
  try {
    return read();
  } catch (const Json::exception&) {
    refuse("the configuration is not written as it should be");
  }
}

}  // namespace

std::optional<Wish> published_audio(const Json& config) {
  const std::string type = type_of(config);
  if (type.empty()) return std::nullopt;
  if (type != "WhisperFeatureExtractor") refuse(fmt::format("what '{}' computes is not known here", type));
  return reading([&] {
    Wish wish{.preset = "whisper", .changes = {}};
    for (const auto& [theirs, ours] : {std::pair{"feature_size", "n_mels"},
                                       {"hop_length", "hop_length"},
                                       {"n_fft", "n_fft"},
                                       {"sampling_rate", "sample_rate"}})
      wish.changes.emplace_back(ours, said(config, theirs).dump());
    return wish;
  });
}

std::optional<Wish> published_image(const Json& config) {
  const std::string type = type_of(config);
  if (!type.empty()) return reading([&] { return of_transformers(config, type); });
  const Json& timm = config.contains("pretrained_cfg") ? config["pretrained_cfg"] : config;
  if (!timm.is_object() || !timm.contains("crop_pct")) return std::nullopt;
  return reading([&] { return of_timm(timm); });
}

}  // namespace modelflow
