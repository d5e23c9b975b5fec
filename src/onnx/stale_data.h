// Data files that nothing needs once a model is replaced.
#pragma once

#include <filesystem>
#include <vector>

namespace modelflow {

/// The data files (FILE.data, FILE.data.N) that the model at FILE names before it is replaced.
class StaleData {
 public:
  explicit StaleData(const std::filesystem::path& file);
  /// Removes them but for `current`, those that this process has mapped (of the model that was optimized in place), and
  /// those that another model in the folder names as well; and links to them in the folder where FILE is named.
  void remove(const std::filesystem::path& current, const std::filesystem::path& named_in) const;

 private:
  std::filesystem::path file_;
  std::vector<std::filesystem::path> found_;
};

}  // namespace modelflow
