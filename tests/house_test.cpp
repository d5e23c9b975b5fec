// The house rules that would rot if nobody checked them: sizes, include arrows, manners.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
const fs::path kRoot = MODELFLOW_SOURCE_DIR;

struct File {
  std::string path;  // relative to the root
  std::vector<std::string> lines;
};

std::vector<File> sources(const std::vector<std::string>& folders) {
  std::vector<File> files;
  for (const std::string& folder : folders)
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      const std::string extension = entry.path().extension();
      if (entry.path().string().find("/setup.d/") != std::string::npos) continue;  // builds before the project does
      if (!entry.is_regular_file() || (extension != ".cpp" && extension != ".h" && extension != ".cu")) continue;
      File file{fs::relative(entry.path(), kRoot), {}};
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) file.lines.push_back(line);
      files.push_back(std::move(file));
    }
  EXPECT_FALSE(files.empty());
  return files;
}

const std::vector<std::string> kOurs = {"include", "src", "passes", "backends", "tools"};

bool starts_with_any(const std::string& text, const std::vector<std::string>& prefixes) {
  for (const std::string& prefix : prefixes)
    if (text.rfind(prefix, 0) == 0) return true;
  return false;
}

TEST(House, FilesStaySmall) {
  for (const File& file : sources(kOurs)) EXPECT_LE(file.lines.size(), 400U) << file.path;
  std::ifstream cmake(kRoot / "CMakeLists.txt");
  const auto lines = std::count(std::istreambuf_iterator<char>(cmake), {}, '\n');
  EXPECT_LE(lines, 150);
}

// With our formatting a function starts with an unindented line that ends in "{" and ends with an unindented "}".
TEST(House, FunctionsStaySmall) {
  const std::regex not_a_function(
      "^(namespace|class|struct|enum|union|extern|using|template <|#|/|\\}|const Rule|const Kernel|const FusedOp).*");
  for (const File& file : sources(kOurs)) {
    std::size_t start = 0;
    bool inside = false;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      if (!inside && line.size() > 2 && line[0] != ' ' && line.find('(') != std::string::npos && line.back() == '{' &&
          !std::regex_match(line, not_a_function)) {
        inside = true;
        start = i;
      } else if (inside && !line.empty() && line[0] == '}') {
        EXPECT_LE(i - start, 60U) << file.path << ":" << start + 1;
        inside = false;
      }
    }
  }
}

struct Arrow {
  std::string include;               // what is included
  std::vector<std::string> allowed;  // by whom
};

TEST(House, IncludesGoTheDrawnWay) {
  const std::vector<Arrow> arrows = {
      {"google/protobuf|onnx/onnx|onnx_pb\\.h|onnx/defs|onnx/checker|onnx/shape|<onnx/|\"onnx/",
       {"src/onnx/", "src/text/", "src/emit/"}},
      {"onnxruntime_c_api\\.h|onnxruntime_cxx", {"backends/ort/", "src/runtime/"}},
      {"<minizip/|zlib\\.h", {"src/data/"}},
      {"<Eigen/", {"src/precision/eigen.h"}},
      {"oneapi/dnnl|\"dnnl|<dnnl", {"backends/cpu/onednn/"}},
      {"\"src/(?!core/)", {"src/", "tests/", "tools/bench", "tools/kernel"}},
      {"\"passes/", {"passes/", "src/"}},
      {"\"backends/", {"backends/"}},
      {"<cuda|<nv", {"backends/cuda/device/"}},
  };
  for (const File& file : sources(kOurs))
    for (const std::string& line : file.lines) {
      if (line.rfind("#include", 0) != 0) continue;
      for (const Arrow& arrow : arrows) {
        const bool concerns = std::regex_search(line, std::regex(arrow.include));
        EXPECT_TRUE(!concerns || starts_with_any(file.path, arrow.allowed)) << file.path << ": " << line;
      }
    }
}

// Rooms of backends/cpu, from the ground up, and what each may include besides itself (docs/architecture.md).
TEST(House, RoomsOfTheEngineStandOnEachOther) {
  const std::string ground = "frame vector loops ";
  const std::map<std::string, std::string> rooms = {
      {"frame", ""},
      {"vector", "frame "},
      {"loops", "frame vector "},
      {"gemm", ground},
      {"conv", ground + "gemm "},
      {"qconv", ground + "gemm conv "},
      {"attention", ground + "gemm "},
      {"recurrent", ground + "gemm "},
      {"elementwise", ground},
      {"rows", ground + "elementwise "},
      {"pixels", ground},
      {"onednn", ground + "gemm conv "},
      {"peak", ground + "gemm "},
  };
  const std::regex include("#include \"backends/cpu/(.*)\"");
  const auto room_of = [](const std::string& path) { return path.substr(0, path.find('/')); };
  for (const File& file : sources({"backends/cpu"})) {
    const std::string room = room_of(file.path.substr(std::string("backends/cpu/").size()));
    EXPECT_TRUE(rooms.contains(room)) << file.path << " stands in no room";
    if (!rooms.contains(room)) continue;
    for (const std::string& line : file.lines) {
      std::smatch found;
      if (!std::regex_match(line, found, include) || found[1] == "onednn/kernels.h") continue;  // lists place them
      const std::string other = room_of(found[1]);
      EXPECT_TRUE(other == room || rooms.at(room).find(other + " ") != std::string::npos) << file.path << ": " << line;
    }
  }
}

// What several stages share is in passes/graph; the list of a stage may take whole passes from another one's header.
TEST(House, StagesLeaveTheInternalsOfOthersAlone) {
  const std::regex include("#include \"passes/(([a-z]+)/)?(.*)\\.h\"");
  for (const File& file : sources({"src", "passes"})) {
    const fs::path path = file.path;
    const bool inside = file.path.starts_with("passes/");
    const std::string stage = inside ? path.parent_path().filename() : "", stem = path.stem();
    for (const std::string& line : file.lines) {
      std::smatch match;
      if (!std::regex_match(line, match, include)) continue;
      const std::string room = match[2], name = match[3];
      const bool door = room.empty() || room == name;  // passes.h, clean/clean.h
      const bool shared = room == "graph", own = inside && room == stage, list = !inside || stage == stem;
      EXPECT_TRUE(shared || own || (door && list)) << file.path << ": " << line;
    }
  }
}

TEST(House, TheLibraryNeitherPrintsNorExits) {
  const std::regex bad(
      "(std::cout|std::cerr|std::clog|[^a-z_nf]printf\\(|fprintf\\(|fmt::print|\\bputs\\(|[^_a-z.:]abort\\(|std::abort|"
      "[^_a-z]exit\\(|std::terminate)");
  for (const File& file : sources({"include", "src", "passes", "backends"}))
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      std::string code = file.lines[i].substr(0, file.lines[i].find("//"));
      if (code.rfind(" *", 0) == 0) code.clear();  // inside of a block comment
      EXPECT_FALSE(std::regex_search(code, bad)) << file.path << ":" << i + 1 << ": " << code;
    }
}

// Rules are patterns over ops and name them; whoever else wants to know something of a fused op asks the op (FusedOp).
TEST(House, OpsAreAskedAndNotListed) {
  const std::regex bad("\\bis\\([^;)]*\"modelflow\\.");
  for (const File& file : sources({"src", "passes", "tools"})) {
    if (starts_with_any(file.path, {"passes/fuse/", "passes/graph/epilogue.cpp", "passes/normalize/"})) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i)
      EXPECT_FALSE(std::regex_search(file.lines[i], bad)) << file.path << ":" << i + 1 << ": " << file.lines[i];
  }
}

// What an attribute is where nothing is said stands in FusedOp::defaults alone: readers ask CallAttrs, which looks
// there and takes no other default. Samples of ops write attributes and do not read them.
TEST(House, AttributesHaveTheirDefaultsInOnePlace) {
  const std::regex bad("\\.attrs\\.(integer|number|text|ints|floats|find)\\(|const Attrs&");
  for (const File& file : sources({"backends"})) {
    if (file.path.find("sample") != std::string::npos) continue;
    if (starts_with_any(file.path, {"backends/call_attrs", "backends/ops.cpp"})) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i)
      EXPECT_FALSE(std::regex_search(file.lines[i], bad)) << file.path << ":" << i + 1 << ": " << file.lines[i];
  }
}

// Which code a machine gets is decided by the target that the table of kernels is asked with; peak measures the
// machine itself.
TEST(House, KernelsDoNotAskForTheMachine) {
  for (const File& file : sources({"backends/cpu"})) {
    if (file.path == "backends/cpu/peak/peak.cpp") continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string code = file.lines[i].substr(0, file.lines[i].find("//"));
      EXPECT_EQ(code.find("host_isas("), std::string::npos) << file.path << ":" << i + 1 << ": " << code;
      EXPECT_EQ(code.find("Target::host("), std::string::npos) << file.path << ":" << i + 1 << ": " << code;
    }
  }
}

TEST(House, FilesSayWhatIsInThem) {
  std::vector<std::string> rooms = kOurs;
  rooms.insert(rooms.end(), {"tests", "examples"});
  for (const File& file : sources(rooms))
    EXPECT_TRUE(starts_with_any(file.lines.at(0), {"// ", "/* "})) << file.path;  // C has the latter
}

TEST(House, NoRoomForEverything) {
  const std::regex bad("(util|helper|misc|manager|common)s?\\.(h|cpp)$");
  for (const File& file : sources(kOurs)) EXPECT_FALSE(std::regex_search(file.path, bad)) << file.path;
}

}  // namespace
