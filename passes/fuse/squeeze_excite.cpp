// Mean over the image -> 1x1 convolution -> activation -> 1x1 convolution -> gate -> product with the image (and a sum
// with it, in PP-OCR) -> modelflow.SqueezeExcite: two passes over the image and no node in between.
#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/fuse/epilogue.h"
#include "passes/fuse/fuse.h"

namespace modelflow::passes {
namespace {

/// The mean over all spatial axes, which stay as 1.
bool is_mean(const Node& node, std::size_t rank) {
  if (node.is("GlobalAveragePool")) return true;
  if (!node.is("ReduceMean") || node.attrs.integer("keepdims", 1) == 0) return false;
  Ints axes = node.attrs.ints("axes");
  if (node.input(1)) {
    if (!node.input(1)->constant()) return false;
    axes = node.input(1)->constant()->to_ints();
  }
  for (std::int64_t& axis : axes) axis += axis < 0 ? static_cast<std::int64_t>(rank) : 0;
  std::sort(axes.begin(), axes.end());
  Ints spatial;
  for (std::size_t i = 2; i < rank; ++i) spatial.push_back(static_cast<std::int64_t>(i));
  return axes == spatial;
}

/// A 1x1 convolution that is the only reader of `x`; null when it is anything else.
Node* pointwise(const Value& x) {
  Node* node = only_reader(x);
  if (!node || !node->is("modelflow.Conv") || node->input(0) != &x) return nullptr;
  const auto all = [&](const char* name, std::int64_t wanted) {
    const Ints values = node->attrs.ints(name);
    return std::all_of(values.begin(), values.end(), [&](std::int64_t value) { return value == wanted; });
  };
  const bool plain = all("kernel_shape", 1) && all("strides", 1) && all("pads", 0) && node->attrs.integer("group") == 1;
  return plain && node->attrs.text("residual") == "none" ? node : nullptr;
}

struct Block {
  Value* x;
  Node* mean;
  Node* squeeze;
  Node* excite;
  Node* product;
  Node* sum = nullptr;
  Node& last() const { return sum ? *sum : *product; }
};

/// The other operand of a two-operand node.
Value* other(const Node& node, const Value& value) { return node.input(node.input(0) == &value ? 1 : 0); }

std::optional<Block> read(Node& mean, Context& context) {
  Node* squeeze = pointwise(*mean.output());
  if (!squeeze || !is_mean(mean, squeeze->input(1)->constant()->rank())) return {};
  Node* excite = pointwise(*squeeze->output());
  if (!excite) return {};
  const std::string gate = excite->attrs.text("activation");
  const bool affine = excite->attrs.number("post_scale", 1) != 1 || excite->attrs.number("post_shift") != 0;
  if ((gate != "Sigmoid" && gate != "HardSigmoid") || affine) {
    context.miss("squeeze-excite", excite, "the gate is neither Sigmoid nor HardSigmoid", 3);
    return {};
  }
  Node* product = only_reader(*excite->output());
  if (!product || !product->is("Mul") || other(*product, *excite->output()) != mean.input(0)) {
    context.miss("squeeze-excite", excite, "the gate is not multiplied with what it was computed from", 3);
    return {};
  }
  Block block{mean.input(0), &mean, squeeze, excite, product};
  Node* sum = only_reader(*product->output());
  if (sum && sum->is("Add") && other(*sum, *product->output()) == block.x) block.sum = sum;
  return block;
}

/// The bias of a convolution, zeros when it has none.
Value* bias_of(const Node& conv) {
  if (conv.attrs.integer("has_bias")) return conv.input(2);
  const std::int64_t channels = conv.input(1)->constant()->dims()[0];
  return &conv.graph().add_constant(Tensor::make(DType::f32, {channels}, [](std::byte*) {}), "zeros");
}

bool fuse_block(const Block& block, Context& context) {
  Graph& graph = block.mean->graph();
  const Attrs &first = block.squeeze->attrs, &second = block.excite->attrs;
  Attrs attrs;
  for (const char* name : {"activation", "alpha", "beta", "post_scale", "post_shift"})
    attrs.set(name, *first.find(name));
  attrs.set("gate", second.text("activation")).set("gate_alpha", Attr(second.number("alpha")));
  attrs.set("gate_beta", Attr(second.number("beta"))).set("skip", block.sum ? 1 : 0).set("layout", "NCHW");
  std::vector<Value*> inputs = {block.x, block.squeeze->input(1), bias_of(*block.squeeze), block.excite->input(1),
                                bias_of(*block.excite)};
  Node* fused = make_fused(graph, context, "squeeze-excite", "modelflow.SqueezeExcite", std::move(inputs),
                           std::move(attrs), block.last());
  if (!fused) return false;
  fused->name = block.excite->name;
  graph.replace(*block.last().output(), *fused->output());
  for (Node* node : {block.sum, block.product, block.excite, block.squeeze, block.mean}) {
    if (node) graph.erase(*node);
  }
  context.hit("squeeze-excite");
  return true;
}

int run(Graph& graph, Context& context) {
  std::vector<Node*> means;
  for (const auto& node : graph.nodes()) {
    if (node->is("GlobalAveragePool") || node->is("ReduceMean")) means.push_back(node.get());
  }
  int changes = 0;
  for (Node* mean : means) {
    if (const std::optional<Block> block = read(*mean, context)) changes += fuse_block(*block, context);
  }
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass fuse_squeeze_excite() {
  return {.name = "fuse-squeeze-excite",
          .doc =
              "Mean, two 1x1 convolutions, gate and product (MobileNetV3, EfficientNet, PP-OCR) -> "
              "modelflow.SqueezeExcite",
          .run = run};
}

}  // namespace modelflow::passes
