#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace modelflow {

/// A zip archive in memory, as numpy writes it: stored or deflated members, also beyond 4 GiB. Whatever is wrong with
/// it is Error(invalid_input).
class ZipArchive {
 public:
  struct Member {
    std::string name;
    std::uint64_t offset, packed_bytes, bytes;
    std::uint32_t checksum;
    unsigned method;
  };

  explicit ZipArchive(const std::filesystem::path& file);
  const std::vector<Member>& members() const { return members_; }
  std::string read(const Member& member) const;

 private:
  std::uint64_t number(std::uint64_t at, unsigned width) const;
  void expect(std::uint64_t at, std::uint32_t signature) const;
  std::uint64_t end_record() const;
  Member member_at(std::uint64_t at) const;
  void widen(Member& member, std::uint64_t extra, std::uint64_t end) const;
  std::string inflated(const Member& member, std::uint64_t data) const;

  std::string bytes_;
  std::vector<Member> members_;
};

}  // namespace modelflow
