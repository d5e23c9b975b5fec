// Second moments of values, multiplied by the runtime.
#include "src/precision/moments.h"

#include <algorithm>
#include <cmath>

namespace modelflow {
namespace {

constexpr std::size_t kSamples = 64;

/// The model with x^T x of each of these values behind it; the values of those, and what each belongs to.
std::map<std::string, std::string> add_moments(Model& model, const std::vector<std::string>& values,
                                               const std::map<std::string, std::int64_t>& depths) {
  std::map<std::string, std::string> belongs;
  Graph& graph = model.graph();
  for (const std::string& name : values) {
    const std::int64_t depth = depths.at(name);
    Node& rows =
        graph.add("Flatten", {graph.find(name)}, {.attrs = {{"axis", std::int64_t{-1}}}, .name = "rows_of_" + name});
    rows.output()->type = Type::tensor(DType::f32, Shape({Dim(), Dim(depth)}));
    Value* x = rows.output();
    Node& sums = graph.add("Gemm", {x, x}, {.attrs = {{"transA", std::int64_t{1}}}, .name = "moments_of_" + name});
    sums.output()->type = Type::tensor(DType::f32, Shape({Dim(depth), Dim(depth)}));
    belongs.emplace(sums.output()->name(), name);
  }
  return belongs;
}

std::vector<std::string> keys(const auto& map) {
  std::vector<std::string> names;
  for (const auto& entry : map) names.push_back(entry.first);
  return names;
}

void add(Moments& sum, const Tensor& tensor) {
  const std::span<const float> more = tensor.as<float>();
  if (!std::all_of(more.begin(), more.end(), [](float x) { return std::isfinite(x); })) return;
  if (sum.empty()) sum.resize(more.size());
  std::transform(sum.begin(), sum.end(), more.begin(), sum.begin(), std::plus<>());
}

}  // namespace

void see_moments(const Sessions& sessions, const Model& runnable, const std::map<std::string, std::int64_t>& depths,
                 const CalibrationData& samples, const SessionOptions& session,
                 const std::function<void(const std::string&, const Moments&)>& show) {
  const std::optional<Feeds> first = samples(0);
  if (!first || depths.empty()) return;
  Model all = runnable;
  const std::map<std::string, std::string> belongs = add_moments(all, keys(depths), depths);
  for (const std::vector<std::string>& group : groups_in_memory(sessions, all, keys(belongs), *first, session)) {
    std::vector<std::string> values;
    for (const std::string& name : group) values.push_back(belongs.at(name));
    Model some = runnable;
    const std::map<std::string, std::string> of = add_moments(some, values, depths);
    std::map<std::string, Moments> sums;
    for (const std::string& value : values) sums[value];
    see_values(sessions, some, keys(of), samples, kSamples, session,
               [&](const std::string& name, const Tensor& result) { add(sums[of.at(name)], result); });
    for (const std::string& value : values) show(value, sums[value]);
  }
}

}  // namespace modelflow
