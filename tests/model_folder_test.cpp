// Models in a temporary folder: weights lie there once, and are what they were.
#include "src/onnx/model_folder.h"

#include <gtest/gtest.h>

#include "modelflow/model.h"

namespace modelflow {
namespace {

/// A sum with a weight of 4 KiB, all of whose elements are this.
Model adding(float number) {
  Model model = Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[1024] x, float[1024] w) => (float[1024] y) { y = Add (x, w) "
      "}");
  const std::vector<float> elements(1024, number);
  model.graph().set_initializer(*model.graph().find("w"), Tensor::of<float>({1024}, std::span<const float>(elements)));
  return model;
}

float weight_in(const std::filesystem::path& file) {
  const Model model = Model::load(file);
  return model.graph().initializers().at(0)->initializer()->as<float>()[1023];
}

TEST(ModelFolder, WeightsLieThereOnceAndComeAgain) {
  ModelFolder folder;
  const Model one = adding(1);
  const std::filesystem::path first = folder.save(one), weights = first.parent_path() / "weights";
  const auto size = std::filesystem::file_size(weights);
  EXPECT_EQ(weight_in(folder.save(one)), 1);
  EXPECT_EQ(std::filesystem::file_size(weights), size);
  for (int i = 2; i < 20; ++i) EXPECT_EQ(weight_in(folder.save(adding(static_cast<float>(i)))), i);
  EXPECT_EQ(weight_in(folder.save(one)), 1);  // forgotten meanwhile
  EXPECT_EQ(weight_in(first), 1);
}

}  // namespace
}  // namespace modelflow
