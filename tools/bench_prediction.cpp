// Predictions of models, as text or JSON.
#include "bench_prediction.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "src/core/printable.h"
#include "src/measure/prediction.h"

namespace modelflow::tools {
namespace {

DType half_of(const std::string& precision) {
  if (precision.empty()) return DType::undefined;
  if (precision == "fp16") return DType::f16;
  if (precision == "bf16") return DType::bf16;
  throw Error(ErrorKind::usage, fmt::format("--predict-in takes fp16 or bf16, not '{}'", precision));
}

}  // namespace

std::string bench_prediction(const PredictionSettings& settings) {
  const Target target = Target::parse(settings.target);
  const DType half = half_of(settings.precision);
  std::vector<Model> models;
  for (const std::string& path : settings.models) models.push_back(Model::load(path));
  std::string text = fmt::format("predicted for {} by costs, not measured\n{:>10} {:>10} {:>6}  model\n", target.str(),
                                 "ms", "floor ms", "nodes");
  nlohmann::json rows = nlohmann::json::array();
  for (std::size_t i = 0; i < models.size(); ++i) {
    std::vector<const Model*> others;
    for (const Model& other : models)
      if (&other != &models[i]) others.push_back(&other);
    const Prediction found = predict(models[i], others, target, half, settings.shapes);
    text += fmt::format("{:10.4f} {:10.4f} {:6}  {}{}\n", found.seconds * 1e3, found.floor_seconds * 1e3, found.nodes,
                        printable(settings.models[i]),
                        found.unknown ? fmt::format(" (extents of {} nodes unknown)", found.unknown) : "");
    rows.push_back({{"model", settings.models[i]},
                    {"predicted_seconds", found.seconds},
                    {"floor_seconds", found.floor_seconds},
                    {"nodes", found.nodes},
                    {"unknown", found.unknown}});
  }
  if (!settings.json) return text;
  const nlohmann::json all{{"target", target.str()}, {"models", rows}};
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace modelflow::tools
