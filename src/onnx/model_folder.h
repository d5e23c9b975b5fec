// A temporary folder of models whose weights lie once in a file that all of them refer to.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

#include "modelflow/model.h"

namespace modelflow {

/// For sessions on models that share most of their weights: ONNX Runtime maps the file. From bytes it would copy every
/// weight three times for each of them (into the bytes, out of them, into its own memory), which takes 0.7 to 1.2 s for
/// BERT-base in place of 0.2. The folder goes with this object; sessions that are open stay as they are.
/// Weights that none of the newest models has are not held in memory for it, and written again should one come with
/// them.
class ModelFolder {
 public:
  ModelFolder() = default;  ///< the folder is made when it is needed
  ~ModelFolder();
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;

  /// A file with this model. Weights that no earlier one had are added to those in the folder. Error(output) where
  /// there is no room. Several threads may call it.
  std::filesystem::path save(const Model& model);

 private:
  void make();
  std::size_t place_of(const Tensor& weight);
  void forget_old();
  void append(const Tensor& weight);
  [[noreturn]] void fail(const std::string& what) const;

  struct Placed {
    Tensor weight;  ///< held, so that no other takes its address
    std::size_t offset;
    std::size_t last;  ///< the newest model that has it
  };
  std::mutex saving_;
  std::filesystem::path path_;
  std::map<std::pair<const std::byte*, std::size_t>, Placed> placed_;
  std::size_t end_ = 0, models_ = 0;
  int weights_ = -1;
};

}  // namespace modelflow
