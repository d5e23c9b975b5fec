// The files beside a model that hold its weights.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

namespace modelflow {

/// Those that the model at `file` names and that are there, found without reading weights; none where it is no model.
std::vector<std::filesystem::path> data_files_of(const std::filesystem::path& file);

/// As long as what this gives lives, these files are mapped, and saving leaves them where they are: those of an
/// original stay when its result takes its place, though nothing of its weights may be in use any more.
std::vector<std::shared_ptr<const void>> held_data_files(const std::vector<std::filesystem::path>& models);

/// Throws Error(usage) where writing to `output`, which the user knows as `what`, would replace the weights of a model.
void refuse_data_files(const std::filesystem::path& output, std::string_view what,
                       const std::vector<std::filesystem::path>& models);

}  // namespace modelflow
