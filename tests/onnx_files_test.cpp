// Files: external data that leads elsewhere is refused; saving is all or nothing.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "modelflow/error.h"
#include "modelflow/model.h"
#include "tests/wire.h"

namespace modelflow {
namespace {

namespace fs = std::filesystem;
using namespace wire;  // NOLINT

class OnnxFiles : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("modelflow_files_" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_ / "model");
    write("secret.bin", "secret!!");
    write("model/data.bin", "12345678");
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path write(const std::string& name, const std::string& content) {
    std::ofstream(root_ / name, std::ios::binary) << content;
    return root_ / name;
  }
  std::string read(const std::string& name) {
    std::ifstream in(root_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  Model load(const std::string& location, const std::string& offset = "0", const std::string& length = "4") {
    return Model::load(write("model/m.onnx", around(field(5, tensor("w", {1}, external(location, offset, length))))));
  }
  std::string refusal(const std::string& location, const std::string& offset = "0", const std::string& length = "4") {
    try {
      load(location, offset, length);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_input) << error.what();
      return error.what();
    }
    ADD_FAILURE() << location << " was read";
    return "";
  }
  std::vector<std::string> files() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(root_ / "model")) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  fs::path root_;
};

using Names = std::vector<std::string>;

Model weighty(float first, std::int64_t count = 4096) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), first);
  Model model = Model::from_text("(float[N] x) => (float[N] y) { y = Relu(x) }");
  Value& w = model.graph().add_constant(Tensor::of<float>({count}, std::span<const float>(values)), "w");
  Node& add = model.graph().add("Add", {model.graph().inputs()[0], &w}, {.name = "unused"});
  model.graph().add_output(*add.output());
  return model;
}

constexpr WriteOptions kOutside{WriteOptions::ExternalData::always};
constexpr WriteOptions kInside{WriteOptions::ExternalData::never};

TEST_F(OnnxFiles, ReadsDataBesideTheModel) {
  EXPECT_EQ(load("data.bin").graph().find("w")->constant()->bytes(), 4u);
  EXPECT_TRUE(load("data.bin", "4").had_external_data);
  EXPECT_TRUE(load("./data.bin", "1").had_external_data);  // not aligned: copied
}

TEST_F(OnnxFiles, RefusesDataElsewhere) {
  refusal("../secret.bin");
  refusal("sub/../../secret.bin");
  refusal("..\\secret.bin");
  refusal((root_ / "secret.bin").string());
  refusal("");
  refusal("nothing.bin");
  refusal("*/_ORT_MEM_ADDR_/*");
  refusal(".");
  fs::create_symlink("../secret.bin", root_ / "model/link.bin");
  refusal("link.bin");
  fs::create_directory_symlink("..", root_ / "model/up");
  refusal("up/secret.bin");
  fs::create_hard_link(root_ / "secret.bin", root_ / "model/hard.bin");
  refusal("hard.bin");
  ASSERT_EQ(::mkfifo((root_ / "model/pipe").c_str(), 0600), 0);
  refusal("pipe");
}

TEST_F(OnnxFiles, RefusesDataOutOfBounds) {
  refusal("data.bin", "8");
  refusal("data.bin", "18446744073709551615");
  refusal("data.bin", "18446744073709551613", "4");
  refusal("data.bin", "-1");
  refusal("data.bin", "0", "8");  // more than dims ask for
  refusal("data.bin", "0x0");
}

// snapshots/m.onnx -> blobs/1, snapshots/data -> blobs/2, as Hugging Face caches have it.
TEST_F(OnnxFiles, ReadsCachesOfLinks) {
  fs::create_directories(root_ / "snapshots");
  fs::create_directories(root_ / "blobs");
  write("blobs/1", around(field(5, tensor("w", {1}, external("data", "0", "4")))));
  write("blobs/2", "1234");
  fs::create_symlink("../blobs/1", root_ / "snapshots/m.onnx");
  fs::create_symlink("../blobs/2", root_ / "snapshots/data");
  EXPECT_TRUE(Model::load(root_ / "snapshots/m.onnx").had_external_data);
  fs::remove(root_ / "snapshots/data");
  fs::create_symlink("../secret.bin", root_ / "snapshots/data");
  EXPECT_THROW(Model::load(root_ / "snapshots/m.onnx"), Error);
}

TEST_F(OnnxFiles, RefusesWhatIsNoFile) {
  EXPECT_THROW(Model::load(root_ / "none.onnx"), Error);
  EXPECT_THROW(Model::load(root_), Error);
  EXPECT_THROW(Model::load("/dev/null"), Error);
}

TEST_F(OnnxFiles, DataIsAlignedAndShared) {
  Model model = weighty(0);
  model.graph().add_output(
      *model.graph()
           .add("Identity", {&model.graph().add_constant(*model.graph().find("w")->constant(), "twin")})
           .output());
  model.save(root_ / "model/m.onnx", kOutside);
  EXPECT_EQ(files(), (Names{"data.bin", "m.onnx", "m.onnx.data"}));
  EXPECT_EQ(fs::file_size(root_ / "model/m.onnx.data"), 4096u * 4);  // one copy for both
  const Model back = Model::load(root_ / "model/m.onnx");
  EXPECT_TRUE(back.had_external_data);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(back.graph().find("w")->constant()->data()) % 4096, 0u);
  EXPECT_TRUE(back.graph().find("w")->constant()->same_content(*model.graph().find("w")->constant()));
}

TEST_F(OnnxFiles, OldPairsStayTogether) {
  const fs::path file = root_ / "model/m.onnx";
  weighty(0).save(file, kOutside);
  weighty(0).save(file, kOutside);  // the same again: nothing is left behind
  EXPECT_EQ(files(), (Names{"data.bin", "m.onnx", "m.onnx.data"}));
  weighty(1).save(file, kOutside);  // other data: a fresh name, the old file goes after the switch
  EXPECT_EQ(files(), (Names{"data.bin", "m.onnx", "m.onnx.data.1"}));
  EXPECT_EQ(Model::load(file).graph().find("w")->constant()->as<float>()[0], 1);
  weighty(2).save(file, kInside);
  EXPECT_EQ(files(), (Names{"data.bin", "m.onnx"}));
}

TEST_F(OnnxFiles, DataThatIsInUseStays) {
  const fs::path file = root_ / "model/m.onnx";
  weighty(0).save(file, kOutside);
  Model mapped = Model::load(file);
  weighty(1).save(file, kOutside);
  EXPECT_EQ(files(), (Names{"data.bin", "m.onnx", "m.onnx.data", "m.onnx.data.1"}));
  EXPECT_EQ(mapped.graph().find("w")->constant()->as<float>()[0], 0);
}

TEST_F(OnnxFiles, DataOfOthersStays) {
  const fs::path file = root_ / "model/m.onnx";
  write("model/m.onnx.data", "somebody else's");
  weighty(0).save(file, kOutside);
  EXPECT_EQ(files(), (Names{"data.bin", "m.onnx", "m.onnx.data", "m.onnx.data.1"}));
  weighty(0).save(file, kInside);  // the name of the one begins with the name of the other
  EXPECT_EQ(read("model/m.onnx.data"), "somebody else's");
  EXPECT_EQ(files(), (Names{"data.bin", "m.onnx", "m.onnx.data"}));
}

// Whatever the other model is called, and if it is a link.
TEST_F(OnnxFiles, DataThatAnotherModelNamesStays) {
  const fs::path file = root_ / "model/m.onnx";
  for (const std::string other : {"model/m.onnx.bak", "model/link"}) {
    weighty(0).save(file, kOutside);
    fs::copy_file(file, root_ / "copy");
    if (other == "model/link")
      fs::create_symlink("../copy", root_ / other);
    else
      fs::rename(root_ / "copy", root_ / other);
    weighty(1).save(file, kInside);
    EXPECT_TRUE(fs::exists(root_ / "model/m.onnx.data")) << other;
    fs::remove(root_ / other);
    fs::remove(root_ / "model/m.onnx.data");
  }
}

// What one run is about to remove, another one may have chosen.
TEST_F(OnnxFiles, RunsThatSaveAtOnceLeaveAWholeModel) {
  const fs::path file = root_ / "model/m.onnx";
  for (int round = 0; round < 100; ++round) {
    std::vector<std::thread> runs;
    for (const float first : {0.0F, 1.0F}) runs.emplace_back([&, first] { weighty(first).save(file, kOutside); });
    for (std::thread& run : runs) run.join();
    ASSERT_NO_THROW(Model::load(file)) << "round " << round;
  }
}

TEST_F(OnnxFiles, LeftoversOfKilledWritersGo) {
  const fs::path old = write("model/.m.onnx.abcdefghijkl.tmp", "half"),
                 fresh = write("model/.m.onnx.bcdefghijklm.tmp", "");
  const fs::path other = write("model/.n.onnx.abcdefghijkl.tmp", "half");
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(1));
  fs::last_write_time(other, fs::file_time_type::clock::now() - std::chrono::hours(1));
  weighty(0).save(root_ / "model/m.onnx", kInside);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(fresh));
  EXPECT_TRUE(fs::exists(other));
}

TEST_F(OnnxFiles, FailuresLeaveEverythingAsItWas) {
  write("model/m.onnx", "old");
  const auto before = files();
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  rlimit small = old;
  small.rlim_cur = 8192;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  for (const WriteOptions& options : {kOutside, kInside}) {
    try {
      weighty(0).save(root_ / "model/m.onnx", options);
      ADD_FAILURE() << "it was written";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::output) << error.what();
    }
  }
  ::setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_EQ(files(), before);
  EXPECT_EQ(read("model/m.onnx"), "old");
  EXPECT_THROW(weighty(0).save(root_ / "nowhere/m.onnx"), Error);
  EXPECT_THROW(weighty(0).save(root_ / "model"), Error);
  EXPECT_THROW(weighty(0).save("/dev/null"), Error);
}

}  // namespace
}  // namespace modelflow
