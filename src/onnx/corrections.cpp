// Where libonnx infers other shapes than ONNX Runtime computes.
#include "src/onnx/corrections.h"

#include <map>
#include <string>

#include "modelflow/symbols.h"

namespace modelflow {
namespace {

/// No axes at all, given as an empty list: libonnx keeps every axis, ONNX Runtime drops all of extent 1.
void squeeze(const Node& node, ShapeValues& values, Type& squeezed) {
  const Tensor* axes = values.constant(node.input(1));
  const bool none = (axes && axes->elements() == 0) || (node.attrs.has("axes") && node.attrs.ints("axes").empty());
  if (!squeezed.is_tensor() || !none) return;
  const Shape& x = node.input(0)->shape();
  squeezed.shape = {};
  if (!x.has_rank()) return;
  std::vector<Dim> left;
  for (const Dim& dim : x.dims()) {
    if (!dim.known()) return;
    if (dim.value() != 1) left.push_back(dim);
  }
  squeezed.shape = Shape(left);
}

/// Present keys and scores are as long as past and new keys together, and the result has the width of the values:
/// libonnx counts a length it does not know as 0.
void attention(const Node& node, std::vector<Type>& types) {
  const Value* v = node.input(2);
  const bool heads = v && v->shape().has_rank() && v->shape().rank() == 4, sized = types[0].is_tensor();
  if (v && sized && types[0].shape.has_rank() && !v->shape().known() && types[0].shape.rank() > 0) {
    const bool known = v->shape().has_rank() && v->shape().rank() > 0 && v->shape().back().known();
    std::vector<Dim> dims = types[0].shape.dims();
    if (!known) dims.back() = heads ? v->shape().back() : Dim();
    types[0].shape = Shape(dims);
  }
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    const Value* input = node.input(i);
    if (!input || input->shape().known()) continue;
    for (std::size_t k = 1; k < types.size(); ++k)
      if (types[k].is_tensor()) types[k].shape = {};
    return;
  }
}

/// Extents that are said: libonnx gives up in the middle of its list where one is smaller than what is spread.
void conv_transpose(const Node& node, Type& result) {
  const Ints extents = node.attrs.ints("output_shape");
  if (!result.is_tensor() || !result.shape.has_rank() || extents.empty()) return;
  const Value *x = node.input(0), *w = node.input(1);
  result.shape = {};
  if (!x || !w || !x->shape().has_rank() || !w->shape().has_rank() || w->shape().rank() < 3) return;
  if (x->shape().rank() != extents.size() + 2 || w->shape().rank() != extents.size() + 2) return;
  const Dim& width = w->shape()[1];
  std::vector<Dim> dims = {x->shape()[0], width * Dim(node.attrs.integer("group", 1))};
  dims.insert(dims.end(), extents.begin(), extents.end());
  result.shape = Shape(dims);
}

/// One extent for a label of several operands: ones are repeated, and which symbol is one is not known.
Dim joined(const Dim& a, const Dim& b) {
  if (a == b || b == Dim(1)) return a;
  if (a == Dim(1)) return b;
  return a.known() ? a : b.known() ? b : Dim();
}

/// libonnx takes the extent of the first operand that has a label; ONNX Runtime repeats operands of extent 1.
void einsum(const Node& node, Type& result) {
  std::string equation = node.attrs.text("equation");
  std::erase(equation, ' ');
  const auto arrow = equation.find("->");
  if (!result.is_tensor() || !result.shape.has_rank() || arrow == std::string::npos) return;
  if (equation.find('.') != std::string::npos) return;
  std::map<char, Dim> extents;
  std::size_t input = 0, axis = 0;
  for (const char label : equation.substr(0, arrow)) {
    if (label == ',') {
      ++input, axis = 0;
      continue;
    }
    const Value* value = node.input(input);
    const bool known = value && value->shape().has_rank() && axis < value->shape().rank();
    const Dim dim = known ? value->shape()[axis] : Dim();
    const auto [found, fresh] = extents.emplace(label, dim);
    if (!fresh) found->second = joined(found->second, dim);
    ++axis;
  }
  std::vector<Dim> dims;
  for (const char label : equation.substr(arrow + 2)) dims.push_back(extents[label]);
  result.shape = Shape(dims);
}

}  // namespace

void correct(const Node& node, ShapeValues& values, std::vector<Type>& types) {
  if (types.empty() || !node.domain().empty()) return;
  if (node.op() == "Einsum") einsum(node, types[0]);
  if (node.op() == "Attention") attention(node, types);
  if (node.op() == "ConvTranspose") conv_transpose(node, types[0]);
  if (node.op() == "Squeeze") squeeze(node, values, types[0]);
  if (node.op() == "SequenceAt" || node.op() == "OptionalGetElement") forget_symbols(types[0]);
}

}  // namespace modelflow
