#pragma once

#include <filesystem>
#include <string>

namespace modelflow::tools {

/// A text that becomes a file whole or not at all: it is written beside the file first, so that a full disk shows
/// before anything is replaced. What is no regular file (a pipe, /dev/stdout) gets the text from replace(). Every
/// failure is Error(output).
class ReportFile {
 public:
  ReportFile(std::filesystem::path file, std::string text);
  void replace();

 private:
  /// A file that goes with its owner.
  struct Temporary {
    std::filesystem::path path;
    ~Temporary();
  };
  void write(const std::filesystem::path& path) const;
  [[noreturn]] void fail(const std::string& why) const;

  std::filesystem::path file_;
  std::string text_;
  Temporary temporary_;  ///< no path: `file_` is no regular file
};

}  // namespace modelflow::tools
