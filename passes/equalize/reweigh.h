// One way to give the channels between ops other sizes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "modelflow/kernel.h"
#include "modelflow/pass.h"
#include "passes/equalize/balance.h"

namespace modelflow::passes {

/// The tensor with every element multiplied by the factor of its index along `axis`; `groups` as many times that index
/// starts again along axis 0 (weights of a convolution in groups), where axis is 1.
Tensor scaled_along(const Tensor& tensor, std::size_t axis, std::span<const float> factors, std::size_t groups = 1);

/// The ops of one kind whose channels can be given other sizes, and of the ops that read them.
struct Reweighing {
  const char* rule;
  bool (*begins)(const Node& node);  ///< whether the question makes sense; no miss otherwise
  Verdict (*check)(const Node& node, const Context& context);
  Reader (*reader_of)(const Node& reader, std::size_t channels);
  void (*enlarge)(Node& node, std::span<const float> factors);
  void (*take_back)(Node& reader, std::span<const float> factors);
};

/// Balances the channels of every node that passes the check.
int reweigh(Graph& graph, Context& context, const Reweighing& how);

/// The channels that Context::plan knows of this value; null for none.
const std::vector<ChannelSize>* channels_of(const Value& value, const Context& context);
/// Whether f(k x) = k f(x) for k > 0, f being the activation.
bool homogeneous(const Attrs& attrs);

}  // namespace modelflow::passes
