// What is done to pictures as users write it: a preset and changes, or a JSON file.
#include <fmt/format.h>

#include "modelflow/error.h"
#include "modelflow/front_end.h"
#include "src/core/nearest.h"
#include "src/front_end/published.h"
#include "src/front_end/settings.h"

namespace modelflow {
namespace {

constexpr const char* kWhat = "image features";

/// Evaluation of torchvision's classifiers, and of most that are trained on ImageNet.
ImageFeatures imagenet() {
  ImageFeatures f;
  f.mean = {0.485, 0.456, 0.406};
  f.std = {0.229, 0.224, 0.225};
  return f;
}

/// CLIPImageProcessor of transformers.
ImageFeatures clip() {
  ImageFeatures f;
  f.size = {224};
  f.interpolation = "bicubic";
  f.crop_rounding = "down";
  f.mean = {0.48145466, 0.4578275, 0.40821073};
  f.std = {0.26862954, 0.26130258, 0.27577711};
  return f;
}

/// LetterBox of Ultralytics, for pixels of cv2.imread (BGR).
ImageFeatures yolo() {
  ImageFeatures f;
  f.resize = "letterbox";
  f.size = {640};
  f.library = "opencv";
  f.crop = {};
  f.swap = true;
  return f;
}

/// Text detection of PaddleOCR (DetResizeForTest) with the numbers that rapidocr has.
ImageFeatures paddleocr() {
  ImageFeatures f;
  f.resize = "sides";
  f.size = {736};
  f.library = "opencv";
  f.crop = {};
  f.mean = {0.5, 0.5, 0.5};
  f.std = {0.5, 0.5, 0.5};
  return f;
}

ImageFeatures preset(const std::string& name) {
  if (name == "imagenet") return imagenet();
  if (name == "clip") return clip();
  if (name == "yolo") return yolo();
  if (name == "paddleocr") return paddleocr();
  const std::vector<std::string> names = {"imagenet", "clip", "yolo", "paddleocr"};
  throw Error(ErrorKind::usage,
              fmt::format("{}: there is no '{}': expected imagenet, clip, yolo, paddleocr or a .json file{}", kWhat,
                          name, did_you_mean(name, names)));
}

Settings settings(ImageFeatures& f) {
  return {{"resize", &f.resize},       {"size", &f.size},
          {"limit", &f.limit},         {"multiple", &f.multiple},
          {"library", &f.library},     {"interpolation", &f.interpolation},
          {"pad_value", &f.pad_value}, {"corner", &f.corner},
          {"crop", &f.crop},           {"crop_rounding", &f.crop_rounding},
          {"swap", &f.swap},           {"scale", &f.scale},
          {"mean", &f.mean},           {"std", &f.std},
          {"layout", &f.layout},       {"dtype", &f.dtype}};
}

}  // namespace

ImageFeatures parse_image_features(std::string_view text) {
  const Wish wish = read_wish(text, published_image, kWhat);
  ImageFeatures f = wish.preset ? preset(*wish.preset) : ImageFeatures{};
  apply(settings(f), wish, kWhat);
  return f;
}

}  // namespace modelflow
