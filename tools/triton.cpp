// `optimize --triton DIR`: a model repository that Triton serves.
#include "triton.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "merging.h"
#include "modelflow/kernel.h"
#include "modelflow/serve.h"
#include "src/core/new_file.h"

namespace modelflow::tools {
namespace {

namespace fs = std::filesystem;
constexpr const char* kPlugin = "libmodelflow_ort.so";

/// A front end may be all that there is.
std::string name_of(const Arguments& arguments) {
  if (arguments.input.empty()) return kFront;
  return arguments.merge ? part_name(arguments.input) : arguments.input.stem().string();
}

void write(const fs::path& file, const std::string& text) {
  NewFile out(end_of_links(file));
  out.write(text.data(), text.size(), 0);
  out.replace();
}

std::string bytes_of(const fs::path& file) {
  std::ostringstream bytes;
  std::ifstream in(file, std::ios::binary);
  bytes << in.rdbuf();
  if (!in) throw Error(ErrorKind::output, fmt::format("cannot read the plugin '{}'", file.string()));
  return bytes.str();
}

bool uses_plugin(const Model& model) {
  for (const Function& function : model.functions)
    if (function.domain == kDomain) return true;
  return false;
}

ServingPlan plan_for(const Arguments& arguments, const fs::path& plugin) {
  Options options = arguments.options;
  options.measure =
      options.measure && options.target.str() == Target::host().str();  // of another machine nothing is known
  std::string why;
  if (const auto runtime = Runtime::find(&why, arguments.options.custom_ops))
    return plan_serving(*runtime, {arguments.output, plugin}, options);
  ServingPlan plan;
  plan.why_no_batch = "there is no ONNX Runtime here to see whether rows are independent";
  return plan;
}

}  // namespace

fs::path place_in_repository(const Arguments& arguments) {
  if (arguments.options.target.device != Device::cpu)
    throw Error(ErrorKind::unsupported,
                fmt::format("--triton writes repositories that serve on CPUs, not for {}: write the model with -o, and "
                            "a config.pbtxt of your own beside it (docs/deploy.md)",
                            arguments.options.target.str()));
  const fs::path folder = arguments.triton / name_of(arguments) / "1";
  refuse_unwritable_folder(folder);
  return folder / "model.onnx";
}

void complete_repository(const Arguments& arguments, Step& at) {
  at.set("measure loads");
  const fs::path folder = arguments.triton / name_of(arguments);
  const Model model = Model::load(arguments.output, arguments.options.limits);
  const fs::path plugin = uses_plugin(model) ? plugin_path() : fs::path();
  const ServingPlan plan = plan_for(arguments, plugin);
  at.set(kWritten);
  std::string served;
  if (!plugin.empty()) {
    write(folder / kPlugin, bytes_of(plugin));
    const fs::path root = arguments.triton_root.empty() ? fs::absolute(arguments.triton) : arguments.triton_root;
    served = (root.lexically_normal() / name_of(arguments) / kPlugin).string();
  }
  write(folder / "config.pbtxt", triton_config(name_of(arguments), model, plan, served));
}

}  // namespace modelflow::tools
