// numpy's archives: stored and deflated members, and nothing but one clean error for whatever is damaged.
#include "modelflow/data.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "src/data/npy.h"

namespace modelflow {
namespace {

// numpy.savez and savez_compressed of x = arange(6, float32).reshape(2, 3) and ids = int64 [7, -1].
constexpr std::string_view kStored =
    "504b03042d0000000000000021004fe9002affffffffffffffff05001400782e6e7079010010009800000000000000980000000000000093"
    "4e554d5059010076007b276465736372273a20273c6634272c2027666f727472616e5f6f72646572273a2046616c73652c20277368617065"
    "273a2028322c2033292c207d2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020"
    "20202020202020202020202020200a000000000000803f0000004000004040000080400000a040504b03042d000000000000002100e092ce"
    "bcffffffffffffffff070014006964732e6e70790100100090000000000000009000000000000000934e554d5059010076007b2764657363"
    "72273a20273c6938272c2027666f727472616e5f6f72646572273a2046616c73652c20277368617065273a2028322c292c207d2020202020"
    "202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020200a"
    "0700000000000000ffffffffffffffff504b01022d032d0000000000000021004fe9002a9800000098000000050000000000000000000000"
    "800100000000782e6e7079504b01022d032d000000000000002100e092cebc90000000900000000700000000000000000000008001cf0000"
    "006964732e6e7079504b0506000000000200020068000000980100000000";

constexpr std::string_view kDeflated =
    "504b03042d0000000800000021004fe9002affffffffffffffff05001400782e6e707901001000980000000000000055000000000000009b"
    "ec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91a"
    "463a0ac69a3a0ab50a64032e063068b007120e4004c40d40bcc00100504b03042d000000080000002100e092cebcffffffffffffffff0700"
    "14006964732e6e70790100100090000000000000004a000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9369a1aea3"
    "a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91a463a9a3a0ab50a14002e760608f80f0500504b01022d032d0000"
    "000800000021004fe9002a5500000098000000050000000000000000000000800100000000782e6e7079504b01022d032d00000008000000"
    "2100e092cebc4a0000009000000007000000000000000000000080018c0000006964732e6e7079504b05060000000002000200680000000f"
    "0100000000";

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

class Npz : public testing::Test {
 protected:
  Npz() { std::filesystem::create_directories(folder_); }
  ~Npz() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& bytes, const std::string& name = "a.npz") const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  void expect_original(const Feeds& feeds) const {
    ASSERT_EQ(feeds.size(), 2U);
    EXPECT_EQ(feeds.at("x").dims(), (Dims{2, 3}));
    EXPECT_EQ(feeds.at("x").to_doubles(), (std::vector<double>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(feeds.at("ids").to_ints(), (std::vector<std::int64_t>{7, -1}));
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("modelflow-npz-" + std::to_string(getpid()));
};

TEST_F(Npz, StoredAndDeflated) {
  for (const std::string_view archive : {kStored, kDeflated})
    expect_original(read_feeds(write(from_hex(archive))).at(0));
}

TEST_F(Npz, FoldersAreReadInNameOrderAndWhenAsked) {
  write(from_hex(kStored), "b.npz");
  write("damaged", "c.npz");
  write(from_hex(kDeflated), "a.npz");
  write("no archive", "readme.txt");
  const CalibrationData data = read_one_by_one(folder_);
  expect_original(data(0).value());
  expect_original(data(1).value());
  EXPECT_THROW(data(2), Error);
  EXPECT_FALSE(data(3));
  EXPECT_THROW(read_feeds(folder_), Error);
}

TEST_F(Npz, NothingThereIsSaid) {
  EXPECT_THROW(read_feeds(folder_ / "nowhere"), Error);
  EXPECT_THROW(read_one_by_one(folder_), Error);
}

TEST_F(Npz, WhatIsWrittenIsReadAndTheSameEveryTime) {
  const Feeds feeds = read_feeds(write(from_hex(kStored))).at(0);
  const auto bytes_of = [](const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  Feeds with_empty = feeds;
  with_empty["none"] = Tensor::of<float>({0, 3}, std::span<const float>());
  write_feeds(folder_ / "b.npz", with_empty);
  write_feeds(folder_ / "c.npz", with_empty);
  EXPECT_EQ(bytes_of(folder_ / "b.npz"), bytes_of(folder_ / "c.npz"));
  Feeds again = read_feeds(folder_ / "b.npz").at(0);
  EXPECT_EQ(again.at("none").dims(), (Dims{0, 3}));
  again.erase("none");
  expect_original(again);
}

TEST_F(Npz, WhatCannotBeWrittenLeavesWhatWasThere) {
  const std::filesystem::path file = write(from_hex(kStored));
  Feeds feeds = read_feeds(file).at(0);
  feeds["words"] = Tensor({1}, std::vector<std::string>{"no type of numpy's"});
  try {
    write_feeds(file, feeds);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  }
  expect_original(read_feeds(file).at(0));
}

std::string npy(const std::string& descr, const std::string& shape, const std::string& data) {
  const std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }\n";
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header + data;
}

std::string wide(std::u32string_view text) {
  return {reinterpret_cast<const char*>(text.data()), text.size() * sizeof(char32_t)};
}

TEST(Npy, TextsAreUtf8BehindTheirZeros) {
  using Texts = std::vector<std::string>;
  const Tensor unicode =
      parse_npy(npy("<U4", "2, 2", wide(std::u32string(U"a\0\0\0gr\u00fcn\u20ac\0\0\0\U0001f600b\0\0", 16))));
  EXPECT_EQ(unicode.dims(), (Dims{2, 2}));
  EXPECT_EQ(unicode.strings(), (Texts{"a", "gr\xc3\xbcn", "\xe2\x82\xac",
                                      "\xf0\x9f\x98\x80"
                                      "b"}));
  EXPECT_EQ(parse_npy(npy("|S3", "2,", std::string("ab\0\0\0\0", 6))).strings(), (Texts{"ab", ""}));
  EXPECT_EQ(parse_npy(npy("<U9", "0,", "")).dims(), Dims{0});
}

TEST(Npy, TextsThatAreNoneAreErrors) {
  for (const std::string& bytes :
       {npy(">U1", "1,", "\0\0\0a"), npy("<U2", "1,", wide(U"a")), npy("<U0", "4000000000000000000,", ""),
        npy("<U4611686018427387904", "1,", "abcd"), npy("|S1", "4000000000000000000,", "abcd"), npy("<U", "1,", "abcd"),
        npy("<U1x", "1,", "abcd"), npy("<U1", "1,", std::string("\x00\xd8\0\0", 4)),
        npy("<U1", "1,", "\xff\xff\xff\xff")})
    EXPECT_THROW((void)parse_npy(bytes), Error) << bytes.substr(10);
}

// Any one byte may be wrong and the file may end anywhere: never more than an Error, never other values unnoticed.
TEST_F(Npz, DamageIsAnError) {
  for (const std::string_view archive : {kStored, kDeflated}) {
    const std::string good = from_hex(archive);
    std::vector<std::string> damaged;
    for (std::size_t i = 0; i < good.size(); ++i) {
      damaged.push_back(good.substr(0, i));
      damaged.push_back(good);
      damaged.back()[i] = static_cast<char>(i % 2 ? ~good[i] : good[i] ^ 1);
    }
    for (const std::string& bytes : damaged) {
      try {
        const std::vector<Feeds> sets = read_feeds(write(bytes));
        for (const auto& [name, tensor] : sets.at(0)) {
          const std::vector<double> values = tensor.to_doubles();
          EXPECT_TRUE(name != "x" || values == (std::vector<double>{0, 1, 2, 3, 4, 5}));
          EXPECT_TRUE(name != "ids" || values == (std::vector<double>{7, -1}));
        }
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::invalid_input) << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace modelflow
