// A Pad in front of a convolution or pooling becomes its pads.
#include <algorithm>
#include <cmath>
#include <limits>

#include "passes/clean/clean.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {

using namespace pattern;

namespace {

struct Padding {
  Ints before, after;  // per spatial axis
  double value = 0;
};

// What a constant Pad adds to the spatial axes; nullopt when it is dynamic, not constant or touches other axes.
std::optional<Padding> padding_of(const Node& pad) {
  if (pad.attrs.text("mode", "constant") != "constant") return std::nullopt;
  const std::optional<std::size_t> rank = rank_of(pad.output(0));
  const std::optional<Ints> pads = setting(pad, "pads", 1);
  if (!pads || !rank || *rank < 3) return std::nullopt;
  Padding padding{Ints(*rank, 0), Ints(*rank, 0)};
  if (pad.attrs.has("value")) padding.value = pad.attrs.number("value");
  if (pad.input(2)) {
    const std::optional<double> value = const_number(pad.input(2));
    if (!value) return std::nullopt;
    padding.value = *value;
  }
  Ints axes(*rank);
  for (std::size_t i = 0; i < *rank; ++i) axes[i] = static_cast<std::int64_t>(i);
  if (pad.input(3)) {
    const std::optional<Ints> given = const_ints(pad.input(3));
    const std::optional<Ints> known = given ? positive(*given, static_cast<std::int64_t>(*rank)) : std::nullopt;
    if (!known) return std::nullopt;
    axes = *known;
  }
  if (pads->size() != 2 * axes.size()) return std::nullopt;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    padding.before[static_cast<std::size_t>(axes[i])] = (*pads)[i];
    padding.after[static_cast<std::size_t>(axes[i])] = (*pads)[axes.size() + i];
  }
  const auto odd = [](std::int64_t p) { return p < 0 || p > std::numeric_limits<std::int32_t>::max(); };
  for (Ints* side : {&padding.before, &padding.after}) {
    if ((*side)[0] != 0 || (*side)[1] != 0 || std::any_of(side->begin(), side->end(), odd)) return std::nullopt;
    side->erase(side->begin(), side->begin() + 2);
  }
  return padding;
}

// The pads of the op once those of the Pad are added; nullopt when auto_pad decides them.
std::optional<Ints> merged_pads(const Node& op, const Padding& padding) {
  const std::size_t n = padding.before.size();
  Ints pads(2 * n, 0);
  const std::string auto_pad = op.attrs.text("auto_pad", "NOTSET");
  if (auto_pad != "NOTSET" && auto_pad != "VALID") return std::nullopt;
  if (auto_pad == "NOTSET") pads = op.attrs.ints("pads", pads);
  if (pads.size() != 2 * n) return std::nullopt;
  for (std::size_t i = 0; i < n; ++i) {
    pads[i] += padding.before[i];
    pads[n + i] += padding.after[i];
  }
  return pads;
}

Verdict static_pad(const Match& m) {
  const std::optional<Padding> padding = padding_of(m.node("pad"));
  if (!padding) return no("the Pad is not a constant border of spatial axes");
  if (!merged_pads(m.node("op"), *padding)) return no("auto_pad depends on the input size");
  return yes();
}

Verdict pads_with_zero(const Match& m) {
  return padding_of(m.node("pad"))->value == 0 ? yes() : no("the border is not 0");
}

Verdict pads_with_lowest(const Match& m) {
  if (m.node("op").output(1)) return no("the indices of the maxima count the border");
  // ONNX Runtime begins a maximum with the lowest number: beside any pixel that, too, is a border that does nothing.
  const double value = padding_of(m.node("pad"))->value;
  const bool lowest = m.value("x").dtype() == DType::f32 && value == std::numeric_limits<float>::lowest();
  if (!lowest && value != -std::numeric_limits<double>::infinity()) return no("the border is not the lowest number");
  return all_are(m.node("op").attrs.ints("dilations"), 1) ? yes() : no("a window may see nothing but the border");
}

// Windows must not lie in the border alone, and a window that ceil_mode adds is counted in its own way.
Verdict pool_takes_pads(const Match& m) {
  const Node& pool = m.node("op");
  if (pool.attrs.integer("ceil_mode") != 0) return no("ceil_mode counts the border in its own way");
  const Ints kernel = pool.attrs.ints("kernel_shape");
  const Ints pads = *merged_pads(pool, *padding_of(m.node("pad")));
  for (std::size_t i = 0; i < pads.size(); ++i)
    if (pads[i] >= kernel[i % kernel.size()]) return no("the border is as wide as the window");
  return yes();
}

Verdict counts_border(const Match& m) {
  const Node& pool = m.node("op");
  const Ints pads = pool.attrs.ints("pads");
  const bool padded = std::any_of(pads.begin(), pads.end(), [](std::int64_t p) { return p != 0; });
  return !padded || pool.attrs.integer("count_include_pad") != 0 ? yes() : no("its own border is not counted");
}

std::vector<Value*> absorb(const Match& m, Build& build) {
  const Node& op = m.node("op");
  Attrs attrs = op.attrs;
  attrs.erase("auto_pad");
  attrs.set("pads", *merged_pads(op, *padding_of(m.node("pad"))));
  if (op.op() == "AveragePool") attrs.set("count_include_pad", 1);
  std::vector<Value*> inputs = op.inputs();
  inputs[0] = m["x"];
  return {&build.op(op.op(), std::move(inputs), std::move(attrs))};
}

}  // namespace

Pass fold_pad() {
  const Pattern padded = open(op("Pad", {any("x")}, "pad"));
  return rewrite("fold-pad", "Folds Pad into the pads of Conv, AveragePool and MaxPool.",
                 {
                     {.name = "pad-into-conv",
                      .doc = "Conv(Pad(x) with zeros) -> Conv with wider pads",
                      .from = open(op("Conv", {padded}, "op")),
                      .when = {static_pad, pads_with_zero},
                      .into = absorb},
                     {.name = "pad-into-average-pool",
                      .doc = "AveragePool(Pad(x) with zeros) -> AveragePool that counts a wider border",
                      .from = op("AveragePool", {padded}, "op"),
                      .when = {static_pad, pads_with_zero, pool_takes_pads, counts_border},
                      .into = absorb},
                     {.name = "pad-into-max-pool",
                      .doc = "MaxPool(Pad(x) with the lowest number) -> MaxPool with wider pads",
                      .from = op("MaxPool", {padded}, "op"),
                      .when = {static_pad, pads_with_lowest, pool_takes_pads},
                      .into = absorb},
                 });
}

}  // namespace modelflow::passes
