// The configuration of a model for Triton's ONNX Runtime backend, in protobuf's text form.
#include <fmt/format.h>

#include "modelflow/serve.h"

namespace modelflow {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\{:03o}", byte);
    else
      out += c;
  }
  return out + '"';
}

std::string type_of(const Value& value) {
  switch (value.type.dtype) {
    case DType::boolean:
      return "TYPE_BOOL";
    case DType::u8:
      return "TYPE_UINT8";
    case DType::u16:
      return "TYPE_UINT16";
    case DType::u32:
      return "TYPE_UINT32";
    case DType::u64:
      return "TYPE_UINT64";
    case DType::i8:
      return "TYPE_INT8";
    case DType::i16:
      return "TYPE_INT16";
    case DType::i32:
      return "TYPE_INT32";
    case DType::i64:
      return "TYPE_INT64";
    case DType::f16:
      return "TYPE_FP16";
    case DType::f32:
      return "TYPE_FP32";
    case DType::f64:
      return "TYPE_FP64";
    case DType::string:
      return "TYPE_STRING";
    default:
      break;
  }
  throw Error(ErrorKind::unsupported, fmt::format("Triton's ONNX Runtime backend has no type for '{}' ({})",
                                                  value.name(), name(value.type.dtype)));
}

/// An input or output. Where requests are gathered, Triton adds the axis of rows itself. A tensor without axes has one
/// of extent 1 there.
std::string tensor_of(const char* what, const Value& value, bool rows) {
  const Type& type = value.type;
  if (!type.is_tensor() || !type.shape.has_rank())
    throw Error(ErrorKind::unsupported, fmt::format("Triton needs to know the rank of '{}'", value.name()));
  std::string dims, shape;
  for (std::size_t axis = rows ? 1 : 0; axis < type.shape.rank(); ++axis)
    dims += fmt::format("{}{}", dims.empty() ? "" : ", ", type.shape[axis].known() ? type.shape[axis].value() : -1);
  if (dims.empty()) {
    dims = "1";
    if (rows) shape = " reshape: { shape: [ ] }";
  }
  return fmt::format("{} [ {{ name: {} data_type: {} dims: [ {} ]{} }} ]\n", what, quoted(value.name()), type_of(value),
                     dims, shape);
}

/// What the numbers were chosen from, for who reads the file.
std::string measured(const ServingPlan& plan) {
  std::string text;
  for (const Load& load : plan.loads)
    text += fmt::format("#   {} x {} threads: {:.1f} runs/s, p50 {:.2f} ms, p99 {:.2f} ms\n", load.split.streams,
                        load.split.threads, load.runs_per_second, load.p50_ms, load.p99_ms);
  if (!text.empty()) text = "# Measured, every instance busy:\n" + text;
  for (const BatchLoad& load : plan.batches)
    text += fmt::format("#   {} rows at once: {:.1f} rows/s, p99 {:.2f} ms\n", load.rows, load.rows_per_second,
                        load.p99_ms);
  return text;
}

}  // namespace

std::string triton_config(const std::string& name, const Model& model, const ServingPlan& plan,
                          const std::string& plugin) {
  const bool rows = plan.max_batch > 0;
  std::string text =
      fmt::format("name: {}\nbackend: \"onnxruntime\"\ndefault_model_filename: \"model.onnx\"\n", quoted(name));
  if (!rows && !plan.why_no_batch.empty()) {
    std::string why = plan.why_no_batch.substr(0, plan.why_no_batch.find('\n'));
    text += fmt::format("# Requests are not gathered: {}.\n", why);
  }
  text += fmt::format("max_batch_size: {}\n", plan.max_batch);
  for (const Value* value : model.graph().inputs())
    if (!value->is_initializer()) text += tensor_of("input", *value, rows);  // others have a default
  for (const Value* value : model.graph().outputs()) text += tensor_of("output", *value, rows);
  if (plan.max_batch > 1) text += "dynamic_batching { }\n";
  text += measured(plan);
  text += fmt::format("instance_group [ {{ kind: KIND_CPU count: {} }} ]\n", plan.split.streams);
  text += fmt::format("parameters {{ key: \"intra_op_thread_count\" value: {{ string_value: \"{}\" }} }}\n",
                      plan.split.threads);
  if (!plugin.empty()) text += fmt::format("model_operations {{ op_library_filename: [ {} ] }}\n", quoted(plugin));
  return text;
}

}  // namespace modelflow
