// The cases of tests/passes read, and the passes that one names run.
#include "tests/pass_cases.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "passes/equalize/equalize.h"
#include "src/flow/held.h"
#include "src/graph/verify.h"

namespace modelflow {
namespace {

namespace fs = std::filesystem;

/// The words after "key:" up to the next two blanks.
std::string field(const std::string& line, const std::string& key, const std::string& otherwise) {
  const auto at = line.find(key + ":");
  if (at == std::string::npos) return otherwise;
  const std::string rest = line.substr(at + key.size() + 1);
  return trimmed(rest.substr(0, rest.find("  ", rest.find_first_not_of(' '))));
}

std::vector<Case> cases_of(const fs::path& file) {
  std::vector<Case> cases;
  Case common;
  std::istringstream lines(read_file(file));
  std::string line;
  std::string* part = nullptr;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.starts_with("pass:")) {
      common = {file, 0, "", field(line, "pass", ""), field(line, "target", "cpu"), "", "", "", 17, Precision::f32};
      common.precision = parse_precision(field(line, "precision", "float32"));
      common.opset = std::stoi(field(line, "opset", "17"));
    } else if (line.starts_with("-- ")) {
      cases.push_back(common);
      cases.back().line = number;
      cases.back().title = line.substr(3);
      if (const auto at = line.find("(opset "); at != std::string::npos)
        cases.back().opset = std::stoi(line.substr(at + 7));
      part = &cases.back().before;
    } else if (line.starts_with("miss: ") && part) {
      cases.back().miss = line.substr(6);
    } else if (line.starts_with("=>") && part) {
      part = &cases.back().expected;
      *part += line.substr(2) + "\n";
    } else if (part && !line.starts_with("#")) {
      *part += line + "\n";
    }
  }
  return cases;
}

/// What calibration might have seen: everything within 16, channels of unlike sizes; corrections that correct nothing.
void make_up(QuantizationPlan& plan, const Graph& graph) {
  for (const passes::ChannelsOf& seen : passes::channels_to_observe(graph)) {
    const Shape& shape = graph.find(seen.value)->shape();
    const Dim channels =
        shape.has_rank() && shape.rank() >= seen.from_end ? shape[shape.rank() - seen.from_end] : Dim();
    std::vector<ChannelSize>& sizes = plan.channels[seen.value];
    sizes.clear();
    for (std::int64_t i = 0; channels.known() && i < channels.value(); ++i)
      sizes.push_back({static_cast<float>(1 + i % 3 * 4), static_cast<float>(1 + i % 3)});
  }
  for (const Value* input : graph.inputs()) plan.ranges[input->name()] = {-16, 16};
  for (const auto& node : graph.nodes()) {
    for (const Value* value : node->outputs())
      if (value) plan.ranges[value->name()] = {-16, 16};
    const Tensor* bias = node->input(3) ? node->input(3)->constant() : nullptr;
    if (bias) plan.bias_shifts[node->name].assign(static_cast<std::size_t>(bias->elements()), 0);
    if (node->is("modelflow.QMatMul") || node->is("modelflow.QMatMul4") || node->is("modelflow.MatMulNBits"))
      plan.roundings[node->name] = {.steps = *node->input(1)->constant()};
  }
}

}  // namespace

double tolerance_of(Precision precision, int products) {
  if (precision == Precision::f32) return 1e-5;
  if (precision == Precision::f16) return products / 1024.0;
  if (precision == Precision::bf16 || precision == Precision::bf16_weights) return products / 256.0;
  return products * (precision == Precision::i4_weights ? 0.5 / 7 + 0.5 / 127 : 1.0 / 127);
}

std::string read_file(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\n"), last = text.find_last_not_of(" \t\n");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(MODELFLOW_SOURCE_DIR) / "tests/passes"))
    if (entry.path().extension() == ".onnxtxt") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files)
    for (Case& c : cases_of(file)) cases.push_back(std::move(c));
  return cases;
}

Model parse(const Case& c, const std::string& text) {
  const std::string body = trimmed(text);
  if (body.starts_with("<")) return Model::from_text(body);
  const std::string ours = body.find("modelflow.") == std::string::npos ? "" : ", \"modelflow\" : 1";
  return Model::from_text("<ir_version: 8, opset_import: [\"\" : " + std::to_string(c.opset) + ours + "]>\ntest " +
                          body);
}

Options options_of(const Case& c) {
  Options options;
  options.target = Target::parse(c.target);
  options.measure = false;
  options.precision = c.precision;
  return options;
}

std::vector<Pass> passes_of(const std::string& names, const Options& options) {
  std::vector<Pass> passes;
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    bool found = false;
    for (const Stage& stage : stages(options))
      for (const Pass& pass : stage.passes)
        if (!found && pass.name == trimmed(name)) passes.push_back(pass), found = true;
    if (!found) throw Error(ErrorKind::usage, "there is no pass '" + name + "'");
  }
  return passes;
}

Transformed transform(const std::vector<Pass>& passes, const Options& options, Model model,
                      const std::shared_ptr<Runtime>& runtime, int most_rounds) {
  Transformed result{std::move(model), {}, {}, 0};
  Context context{result.model, options, options.target, runtime, &result.report, &result.notes};
  QuantizationPlan plan;
  if (options.precision != Precision::f32) context.plan = &plan;
  infer_types(result.model);
  for (int round = 0, more = 1; more && round < most_rounds; ++round) {
    more = 0;
    for (const Pass& pass : passes) {
      if (context.plan) make_up(plan, result.model.graph());
      const int changes = run_held(pass, result.model.graph(), context);
      verify(result.model, pass.name);
      if (changes) result.changed.push_back(pass.name);
      more += changes;
    }
    result.changes += more;
  }
  return result;
}

bool contradict(const Type& a, const Type& b) {
  if (!a.is_tensor() || !b.is_tensor()) return false;
  if (a.dtype != b.dtype && a.dtype != DType::undefined && b.dtype != DType::undefined) return true;
  if (!a.shape.has_rank() || !b.shape.has_rank()) return false;
  if (a.shape.rank() != b.shape.rank()) return true;
  for (std::size_t i = 0; i < a.shape.rank(); ++i)
    if (a.shape[i].known() && b.shape[i].known() && a.shape[i] != b.shape[i]) return true;
  return false;
}

}  // namespace modelflow
