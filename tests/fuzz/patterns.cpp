// Reads the cases of tests/passes and the blocks of tests/fuzz, and fills the holes of a block.
#include "tests/fuzz/patterns.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "modelflow/error.h"
#include "tests/pass_cases.h"

namespace modelflow::fuzz {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> texts(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".onnxtxt") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string number_behind(const std::string& line, const std::string& key, const std::string& otherwise) {
  const auto at = line.find(key);
  return at == std::string::npos ? otherwise : std::to_string(std::stoi(line.substr(at + key.size())));
}

bool has_fused_ops(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->domain() == kDomain) return true;
    for (const Graph* inner : node->subgraphs())
      if (has_fused_ops(*inner)) return true;
  }
  return false;
}

std::string with_header(const std::string& body, const std::string& opset) {
  const auto first = body.find_first_not_of(" \n\t");
  if (first != std::string::npos && body[first] == '<') return body;
  return "<ir_version: 8, opset_import: [\"\" : " + opset + "]>\ntest " + body;
}

/// Numbers of the right type in place of nothing: "float[3,4] w" becomes "float[3,4] w = {...}".
std::string constant_values(const std::string& dtype, std::int64_t count, Dice& dice) {
  std::string values;
  char text[40];
  const double spread = dice.any({1.0, 1.0, 0.3, 3.0});
  for (std::int64_t i = 0; i < count; ++i) {
    if (dtype == "float" || dtype == "double")
      std::snprintf(text, sizeof(text), "%.4f", dice.uniform(-spread, spread));
    else if (dtype == "bool")
      std::snprintf(text, sizeof(text), "%d", static_cast<int>(dice.below(2)));
    else
      std::snprintf(text, sizeof(text), "%d", static_cast<int>(dice.between(dtype[0] == 'u' ? 0 : -9, 9)));
    values += (i ? "," : "") + std::string(text);
  }
  return values;
}

/// The holes of a block: names and what they stand for.
class Holes {
 public:
  explicit Holes(Dice& dice) : dice_(dice) {}

  std::string fill(const std::string& text) {
    std::string result;
    for (std::size_t i = 0; i < text.size();) {
      if (text.compare(i, 2, "${") != 0) {
        result += text[i++];
        continue;
      }
      const std::size_t end = closing(text, i + 2);
      result += value(text.substr(i + 2, end - i - 2));
      i = end + 1;
    }
    return result;
  }

 private:
  static std::size_t closing(const std::string& text, std::size_t at) {
    int depth = 1;
    for (; at < text.size(); ++at) {
      depth += (text[at] == '{') - (text[at] == '}');
      if (depth == 0) return at;
    }
    throw Error(ErrorKind::internal, "a hole of a block has no end: " + text);
  }

  std::string value(const std::string& hole) {
    const auto equals = hole.find('=');
    if (equals != std::string::npos && std::all_of(hole.begin(), hole.begin() + static_cast<std::ptrdiff_t>(equals),
                                                   [](unsigned char c) { return std::isalnum(c); }))
      return names_[hole.substr(0, equals)] = choice(hole.substr(equals + 1));
    if (hole.find('|') != std::string::npos || hole.find("..") != std::string::npos) return choice(hole);
    if (const auto found = names_.find(hole); found != names_.end()) return found->second;
    return std::to_string(arithmetic(hole));
  }

  std::string choice(const std::string& hole) {
    std::vector<std::string> parts(1);
    int depth = 0;
    for (const char c : hole) {
      depth += (c == '{') - (c == '}');
      if (c == '|' && depth == 0)
        parts.emplace_back();
      else
        parts.back() += c;
    }
    const std::string part = fill(dice_.pick(parts));
    const auto dots = part.find("..");
    if (dots == std::string::npos || parts.size() == 0 || !std::isdigit(static_cast<unsigned char>(part[0])))
      return part;
    return std::to_string(dice_.between(std::stoll(part), std::stoll(part.substr(dots + 2))));
  }

  /// Sums and differences of products and exact quotients, no brackets.
  std::int64_t arithmetic(const std::string& text) {
    std::int64_t sum = 0, product = 1;
    char sign = '+', op = '*';
    for (std::size_t i = 0; i < text.size();) {
      std::size_t end = i;
      while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end]))) ++end;
      const std::string word = text.substr(i, end - i);
      const auto found = names_.find(word);
      if (word.empty()) throw Error(ErrorKind::internal, "no number in the hole ${" + text + "}");
      const std::int64_t number = std::stoll(found == names_.end() ? word : found->second);
      product = op == '*' ? product * number : product / number;
      const char next = end < text.size() ? text[end] : '+';
      if (next == '*' || next == '/') {
        op = next;
      } else {
        sum += sign == '+' ? product : -product;
        product = 1, op = '*', sign = next;
      }
      i = end + 1;
    }
    return sum;
  }

  Dice& dice_;
  std::map<std::string, std::string> names_;
};

/// Random values for what stands between "<" and ">" behind the outputs, after "~": `~float[3,4] w`.
std::string with_constants(const std::string& text, Dice& dice) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '~') {
      result += text[i++];
      continue;
    }
    const auto open = text.find_first_of("[ ", i);
    const std::string dtype = text.substr(i + 1, open - i - 1);
    std::int64_t count = 1;
    std::size_t end = open;
    if (text[open] == '[') {
      end = text.find(']', open);
      std::istringstream dims(text.substr(open + 1, end - open - 1));
      for (std::string dim; std::getline(dims, dim, ',');) count *= std::stoll(dim);
      ++end;
    }
    const auto stop = text.find_first_of(",>", end);
    result += text.substr(i + 1, stop - i - 1) + " = {" + constant_values(dtype, count, dice) + "}";
    i = stop;
  }
  return result;
}

}  // namespace

std::vector<Pattern> pass_cases() {
  std::vector<Pattern> found;
  for (const Case& c : all_cases()) {
    // ONNX Runtime joins parts of unlike extents where one is empty, and leaves the rest as memory had it.
    if (c.title.find("no short extents") != std::string::npos) continue;
    try {
      Pattern pattern{c.file.filename().string() + ": " + c.title, parse(c, c.before)};
      if (!has_fused_ops(pattern.model.graph())) found.push_back(std::move(pattern));
    } catch (const Error&) {  // a case about something that is no model
    }
  }
  return found;
}

std::vector<Block> blocks(const fs::path& folder) {
  std::vector<Block> found;
  for (const fs::path& file : texts(folder)) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("-- "))
        found.push_back({line.substr(3), ""});
      else if (!found.empty() && !line.starts_with("#"))
        found.back().text += line + "\n";
    }
  }
  return found;
}

Pattern filled(const Block& block, Dice& dice) {
  const std::string opset = number_behind(block.name, "(opset ", "17");
  const std::string text = with_header(with_constants(Holes(dice).fill(block.text), dice), opset);
  try {
    return {"block: " + block.name, Model::from_text(text)};
  } catch (const Error& error) {
    throw Error(ErrorKind::internal, std::string(error.what()) + "\n" + text).within("block '" + block.name + "'");
  }
}

}  // namespace modelflow::fuzz
