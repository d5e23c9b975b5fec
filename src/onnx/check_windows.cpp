// Windows, orders of axes and parts whose numbers are out of bounds.
#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "modelflow/error.h"
#include "src/onnx/read_graph.h"

namespace modelflow::proto {
namespace {

/// Attributes of convolutions and pooling that everything divides and multiplies by.
constexpr std::array<std::string_view, 5> kPositive = {"strides", "dilations", "kernel_shape", "group", "num_groups"};

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

bool fits(std::int64_t value) { return value >= 1 && value <= kMost; }
bool fits_pad(std::int64_t value) { return value >= -kMost && value <= kMost; }

/// Every axis once: what passes that reorder extents go by.
bool is_order(const onnx::AttributeProto& attribute) {
  std::vector<std::int64_t> axes(attribute.ints().begin(), attribute.ints().end());
  std::ranges::sort(axes);
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

/// ONNX Runtime refuses more parts than outputs, and ends the process where there are fewer.
void check_parts(const NodeProto& node, const AttributeProto& attribute) {
  if (attribute.type() == AttributeProto::INT && attribute.i() != node.output_size())
    throw Error(ErrorKind::invalid_input, "num_outputs is " + std::to_string(attribute.i()) + ", and it has " +
                                              std::to_string(node.output_size()) + " outputs");
}

}  // namespace

void check_windows(const NodeProto& node) {
  const std::string domain = read_domain(node.domain());
  if (!domain.empty() && domain != kDomain) return;
  for (const auto& attribute : node.attribute()) {
    if (node.op_type() == "Transpose" && attribute.name() == "perm" && !is_order(attribute))
      throw Error(ErrorKind::invalid_input, "perm does not name every axis once");
    if (node.op_type() == "Split" && attribute.name() == "num_outputs" && attribute.ref_attr_name().empty())
      check_parts(node, attribute);
    if (attribute.name() == "pads" && !std::ranges::all_of(attribute.ints(), fits_pad))
      throw Error(ErrorKind::invalid_input, "pads holds a number beyond 2147483647");
    if (std::ranges::find(kPositive, attribute.name()) == kPositive.end() || !attribute.ref_attr_name().empty())
      continue;
    const bool one = attribute.type() == AttributeProto::INT || attribute.has_i();  // none is 0
    const bool fine = one ? fits(attribute.i()) : std::ranges::all_of(attribute.ints(), fits);
    if (!fine)
      throw Error(ErrorKind::invalid_input, attribute.name() + " holds a number that is not between 1 and 2147483647");
  }
}

}  // namespace modelflow::proto
