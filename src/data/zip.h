// A zip archive as numpy writes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace modelflow {

/// A zip archive as numpy writes it: stored or deflated members, also beyond 4 GiB, read by minizip. Its sizes are
/// believed only as far as the file can hold what they say. Whatever is wrong with it is Error(invalid_input).
class ZipArchive {
 public:
  struct Member {
    std::string name;
    std::uint64_t packed_bytes, bytes;
    std::uint64_t place, index;  ///< where the directory lists it
  };

  explicit ZipArchive(const std::filesystem::path& file);
  const std::vector<Member>& members() const { return members_; }
  std::string read(const Member& member) const;

 private:
  Member current() const;

  std::unique_ptr<void, int (*)(void*)> archive_;
  std::vector<Member> members_;
};

}  // namespace modelflow
