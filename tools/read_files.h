// What a run reads, which nothing that it writes may take the place of.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace modelflow::tools {

/// Models, and data beside them: files, or folders of .npz files. What is not there is passed over, so that every word
/// that may name a file can stand here.
struct ReadFiles {
  std::vector<std::filesystem::path> models, data;
};

/// Throws Error(usage) where writing to `output`, which the user gave as `option`, would replace data that are read, or
/// weights of a model.
void refuse_to_replace_data(const std::filesystem::path& output, std::string_view option, const ReadFiles& read);

/// The same for a report (empty: none), which must not replace a model either, nor `written`, other files that the run
/// writes, and which has no name of a model, of data or of a library: that was meant to be something else.
void refuse_to_replace(const std::filesystem::path& report, std::string_view option, const ReadFiles& read,
                       const std::vector<std::filesystem::path>& written);

}  // namespace modelflow::tools
