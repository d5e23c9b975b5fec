// The sizes of channels over samples.
#include "src/precision/channel_sizes.h"

#include <algorithm>
#include <cmath>

namespace modelflow {
namespace {

constexpr std::size_t kSamples = 8;

/// One value over all samples.
class Meter {
 public:
  explicit Meter(std::size_t from_end) : from_end_(from_end) {}

  void see(const Tensor& tensor) {
    if (tensor.dtype() != DType::f32 || tensor.rank() < from_end_) return;
    const std::size_t axis = tensor.rank() - from_end_;
    const auto channels = static_cast<std::size_t>(tensor.dims()[axis]);
    if (largest_.empty()) largest_.resize(channels), squares_.resize(channels);
    odd_ = odd_ || largest_.size() != channels;
    if (odd_ || channels == 0) return;
    std::size_t inner = 1;
    for (std::size_t i = axis + 1; i < tensor.rank(); ++i) inner *= static_cast<std::size_t>(tensor.dims()[i]);
    const std::span<const float> values = tensor.as<float>();
    for (std::size_t i = 0; i < values.size(); i += inner)
      see(values.subspan(i, inner), i / std::max<std::size_t>(inner, 1) % channels);
    count_ += static_cast<double>(values.size()) / static_cast<double>(channels);
  }

  std::vector<ChannelSize> sizes() const {
    std::vector<ChannelSize> sizes;
    for (std::size_t c = 0; !odd_ && c < largest_.size(); ++c)
      sizes.push_back({largest_[c], static_cast<float>(count_ > 0 ? squares_[c] / count_ : 0)});
    return sizes;
  }

 private:
  void see(std::span<const float> run, std::size_t channel) {
    float largest = largest_[channel];
    double squares = 0;
    for (const float x : run) {
      if (!std::isfinite(x)) continue;
      largest = std::max(largest, std::abs(x));
      squares += static_cast<double>(x) * x;
    }
    largest_[channel] = largest;
    squares_[channel] += squares;
  }

  std::size_t from_end_;
  std::vector<float> largest_;
  std::vector<double> squares_;
  double count_ = 0;
  bool odd_ = false;
};

}  // namespace

Channels channel_sizes(const Sessions& sessions, const Model& runnable, const std::vector<passes::ChannelsOf>& values,
                       const CalibrationData& samples, const SessionOptions& session) {
  std::map<std::string, Meter, std::less<>> meters;
  std::vector<std::string> names;
  for (const auto& [value, from_end] : values)
    if (meters.emplace(value, from_end).second) names.push_back(value);
  see_values(sessions, runnable, names, samples, kSamples, session,
             [&](const std::string& name, const Tensor& result) { meters.find(name)->second.see(result); });
  Channels channels;
  for (const auto& [name, meter] : meters)
    if (std::vector<ChannelSize> sizes = meter.sizes(); !sizes.empty()) channels.emplace(name, std::move(sizes));
  return channels;
}

}  // namespace modelflow
