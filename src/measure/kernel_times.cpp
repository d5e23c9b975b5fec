// Sessions of one fused node, one for each kernel, timed in turns beside the body of the op.
#include "src/measure/kernel_times.h"

#include <algorithm>
#include <random>
#include <set>

#include "modelflow/modelflow.h"
#include "src/core/bf16.h"
#include "src/emit/emit.h"
#include "src/input_shape.h"
#include "src/measure/extract.h"
#include "src/measure/timing.h"
#include "src/verify/difference.h"
#include "src/verify/exact_products.h"
#include "src/verify/reference.h"

namespace modelflow {
namespace {

constexpr std::int64_t kOpset = 17;
constexpr double kBlock = 0.005;  // seconds

/// Of this type: normal floats, any bytes, and for longer integers 0, which is a row of every table.
Tensor made_up(const Operand& operand, unsigned seed) {
  std::mt19937 random(seed);
  const Dims dims = operand.shape.values();
  const DType type = operand.dtype;
  const auto elements = static_cast<std::size_t>(element_count(dims));
  if (type == DType::f32 || type == DType::bf16) {
    std::normal_distribution<float> normal;
    Tensor floats = Tensor::make(DType::f32, dims, [&](std::byte* bytes) {
      std::generate_n(reinterpret_cast<float*>(bytes), elements, [&] { return normal(random); });
    });
    return type == DType::bf16 ? to_bf16(floats) : floats;
  }
  const bool bytes_wide = type == DType::u8 || type == DType::i8;
  return Tensor::make(type, dims, [&](std::byte* bytes) {
    std::generate_n(bytes, byte_count(type, dims), [&] {
      return static_cast<std::byte>(bytes_wide ? random() : type == DType::boolean ? 1U : 0U);
    });
  });
}

/// The call as a model of one fused node. Something is fed even where the call has constants alone: a runtime would
/// compute it once and for all.
Model model_of(const Call& call) {
  Model model;
  model.opsets[""] = kOpset;
  model.ir_version = 8;
  Graph& graph = model.graph();
  graph.name = "call";
  std::vector<Value*> inputs;
  const bool all = std::ranges::all_of(call.inputs, [](const Operand& in) { return in.constant != nullptr; });
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Operand& in = call.inputs[i];
    const std::string name = "in" + std::to_string(i);
    inputs.push_back(in.constant && !(all && i == 0) ? &graph.add_constant(*in.constant, name)
                                                     : &graph.add_input(name, Type::tensor(in.dtype, in.shape)));
  }
  Node& node = graph.add("modelflow." + call.op, inputs, {.outputs = call.outputs.size(), .attrs = call.attrs});
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    node.output(i)->type = Type::tensor(call.outputs[i].dtype, call.outputs[i].shape);
    graph.add_output(*node.output(i));
  }
  name_fused_nodes(model);
  return model;
}

bool differ(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!difference("", a[i], b[i], kTolerance).ok) return true;
  return false;
}

/// The call in standard ops. Where ONNX Runtime cuts sums of products of bytes on this machine, and results show it, it
/// multiplies exactly, as the kernels do.
std::unique_ptr<Session> open_body(Runtime& runtime, const Model& plain, const Feeds& feeds, SessionOptions options) {
  std::unique_ptr<Session> usual = open_session(runtime, plain, options);
  if (multiplies_bytes_exactly()) return usual;
  options.config["session.x64quantprecision"] = "1";
  try {
    std::unique_ptr<Session> exact = open_session(runtime, plain, options);
    if (differ(exact->run(feeds), usual->run(feeds))) return exact;
  } catch (const Error&) {  // ONNX Runtime loses the axis of some DequantizeLinear by that option
  }
  return usual;
}

/// Empty for what is no word, no integer and no list of these.
std::string value_text(const Attr& value) {
  if (const auto* words = std::get_if<std::string>(&value)) return *words;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* list = std::get_if<Ints>(&value)) return Shape::of(*list).str();
  return "";
}

Feeds feeds_of(const Model& model) {
  Feeds feeds;
  for (const Value* input : model.graph().inputs())
    feeds[input->name()] = made_up({"", input->dtype(), input->shape(), nullptr}, static_cast<unsigned>(feeds.size()));
  return feeds;
}

}  // namespace

std::vector<const Kernel*> kernels_for(const Call& call) {
  const Target host = Target::host();
  std::vector<const Kernel*> list;
  for (const Kernel* kernel : kernels())
    if (kernel->create && kernel->takes(call, host)) list.push_back(kernel);
  return list;
}

std::vector<KernelTime> time_kernels(Runtime& runtime, const Call& call, const std::vector<const Kernel*>& kernels,
                                     int threads, double seconds) {
  Model fused = model_of(call), plain = fused;
  const Feeds feeds = feeds_of(fused);
  revert(plain, {plain.graph().nodes().front()->name});
  emit_functions(fused);
  Options options;
  options.threads = threads;
  std::vector<std::unique_ptr<Session>> sessions;
  sessions.push_back(open_body(runtime, plain, feeds, timing_session(options)));
  for (const Kernel* kernel : kernels) {
    SessionOptions session = timing_session(options);
    session.plugin = plugin_path();
    session.config["modelflow.kernels"] = kernel->name;
    sessions.push_back(open_session(runtime, fused, session));
  }
  std::vector<Runner> runners;
  for (const auto& session : sessions) runners.push_back([&feeds, s = session.get()] { return s->timed_run(feeds); });
  const std::vector<Timing> timings = time_interleaved(runners, {.budget = seconds, .block = kBlock});
  std::vector<KernelTime> times;
  for (std::size_t i = 0; i < timings.size(); ++i) {
    const Timing& timing = timings[i];
    times.push_back(
        {i == 0 ? "" : std::string(kernels[i - 1]->name), timing.seconds, timing.speedup, timing.low, timing.high});
  }
  return times;
}

ModelCalls fused_calls(const Model& model, const std::map<std::string, Dims>& inputs) {
  ModelCalls found{for_input_shapes(model, inputs), {}};
  std::set<std::string> seen;
  for (const Node* node : fused_nodes(found.model.graph())) {
    Call call = call_of(*node);
    call.op = kind_of(node->op(), node->attrs);
    if (!call.op.empty() && seen.insert(call_text(call)).second) found.calls.push_back(std::move(call));
  }
  return found;
}

std::string call_text(const Call& call) {
  const FusedOp* op = find_fused_op(call.op);
  std::string text = call.op;
  for (const Operand& in : call.inputs) text += " " + in.shape.str() + (in.constant ? "*" : "");
  for (const auto& [name, value] : call.attrs) {
    const Attr* usual = op ? op->defaults.find(name) : nullptr;
    const std::string shown = value_text(value);
    if (name != kPrecision && !shown.empty() && (!usual || shown != value_text(*usual)))
      text.append(" ").append(name).append("=").append(shown);
  }
  return text;
}

double bytes_of(const Call& call) {
  double bytes = 0;
  for (const auto* operands : {&call.inputs, &call.outputs})
    for (const Operand& operand : *operands)
      if (operand.dtype != DType::undefined && operand.dtype != DType::string)
        bytes += operand.shape.known_elements() * bits(operand.dtype) / 8;
  return bytes;
}

}  // namespace modelflow
