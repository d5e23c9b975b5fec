// What fused ops and kernels are: an op's meaning and traits, one use of it, one way to run it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "modelflow/attr.h"
#include "modelflow/error.h"
#include "modelflow/shape.h"
#include "modelflow/target.h"
#include "modelflow/tensor.h"

namespace modelflow {

/// Yes, or no with the reason and the guilty value: `no("last axis is unknown", "x")`.
struct [[nodiscard]] Verdict {
  bool ok = true;
  std::string reason;
  explicit operator bool() const { return ok; }
};
inline Verdict yes() { return {}; }
Verdict no(std::string_view reason, std::string_view value = "");

/// What a kernel may know about one operand before it runs. `constant` is set for weights.
struct Operand {
  std::string name;
  DType dtype = DType::undefined;
  Shape shape;
  const Tensor* constant = nullptr;
};

/// One use of a fused op, free of graphs and runtimes: the optimizer builds it from a Node, the plugin from
/// OrtKernelInfo, tests and benchmarks by hand. `op` is the kind ("Conv"), never a pool name ("Conv_3").
struct Call {
  std::string op;
  Attrs attrs;
  std::vector<Operand> inputs, outputs;
  const Operand& in(std::size_t i) const;  ///< throws Error(internal) when absent
  bool has(std::size_t i) const { return i < inputs.size(); }
};

struct View {
  DType dtype = DType::undefined;
  std::span<const std::int64_t> dims;
  const void* data = nullptr;
};

/// One execution: operands, output allocation, the runtime's own threads or stream, scratch memory. Valid during run()
/// only.
class Invocation {
 public:
  virtual ~Invocation() = default;
  /// Where the memory of inputs, outputs and scratch lies.
  virtual Device device() const { return Device::cpu; }
  /// The queue that the work goes into (a cudaStream_t); null on a CPU, whose work is done when run() returns.
  virtual void* stream() const { return nullptr; }
  virtual std::size_t inputs() const = 0;
  virtual View input(std::size_t i) const = 0;
  /// Allocates output `i`; call once per output. May be the memory of an input that may_inplace named.
  virtual void* output(std::size_t i, std::span<const std::int64_t> dims) = 0;
  /// Runs body(0) .. body(tasks - 1) on the runtime's pool, the caller included; nested calls run serially.
  /// `body` must not throw.
  virtual void parallel(std::size_t tasks, const std::function<void(std::size_t)>& body) = 0;
  virtual std::size_t threads() const = 0;
  /// 64-byte aligned memory that lives until run() returns; each call gives another block.
  virtual std::byte* scratch(std::size_t bytes) = 0;
};

/// A kernel made ready for one node: weights packed, variant chosen. run() is const and called from many threads.
class Implementation {
 public:
  virtual ~Implementation() = default;
  /// Checks every shape; throws Error(invalid_input) with one line on a mismatch.
  virtual void run(Invocation& call) const = 0;
};

/// What kind of work an op does, in whatever precision and with whatever around it.
enum class Family : std::uint8_t {
  other,
  convolution,
  transposed_convolution,
  product,
  layer_norm,
  squeeze_excite,
  upsampling,
  attention,
  recurrence
};

/// The precision of an op: what its factors are (f32, bf16, i8, i4) and, where that differs from its base op, its
/// results. bf16 and i4 give float32; `bf16_result` is bfloat16 throughout, `i8_to_f32` reads 8 bits alone.
/// `weight_only`: weights in 8 or 4 bits, which become floats of the type of everything else before they are
/// multiplied.
enum class Form : std::uint8_t { f32, bf16, bf16_result, i8, i8_to_f32, i4, weight_only };
/// What its factors are: "float32", "bfloat16", "int8", "int4", "weight-only".
std::string_view name(Form form);

/// A fused op: its kind, its meaning as an ONNX function body and calls that tests and benchmarks walk over.
struct FusedOp {
  std::string_view kind;  ///< "Conv"
  std::string_view doc;   ///< one sentence
  int names;              ///< size of the name pool: Conv_0, Conv_1, ... Conv_{names-1}; 0: it shares that of `base`
  int min_inputs, max_inputs;
  int max_outputs = 1;
  /// Element types by position, the last for all inputs that follow. A runtime tells ops apart by their names alone, so
  /// the quantized form of an op is an op of its own. Where float32 stands here (and as output_type) a GPU takes
  /// float16 and bfloat16 as well, all such operands of a call alike: see float_type.
  std::vector<DType> input_types;
  /// Inputs of float32 that stay it whatever type of float the others have: what has a scale for each row of weights
  /// in 8 bits has these here, and then floats of 16 bits around it on a GPU.
  std::vector<std::size_t> single = {};
  /// The function body for this call at this opset of the default domain, in ONNX text between the braces:
  /// "{ t = Conv <strides: ints = @strides> (x, w, b)  y = Relu (t) }". Formal inputs: `inputs`; outputs: y, y1, ...
  std::function<std::string(const Call&, int opset)> body;
  /// Names of the formal inputs for this call, as many as the call has inputs.
  std::function<std::vector<std::string>(const Call&)> inputs;
  /// Names of the attributes that the body refers to with @.
  std::function<std::vector<std::string>(const Call&, int opset)> attributes;
  /// Fills the dtype and shape of the outputs from attributes and inputs; a no when they contradict each other.
  std::function<Verdict(Call&)> infer;
  std::function<std::vector<Call>()> samples;
  /// Every attribute of the op with its default value; a runtime asks a node for these names and types.
  Attrs defaults = {};
  DType output_type = DType::f32;
  /// Every element of input 0 is read for the last time where its result is written: y may take its place.
  bool in_place = false;

  // What passes, cost models and calibration go by, so that none of them lists ops by name.
  Family family = Family::other;
  /// The kind of the op in float32 that this is in another precision, and which one; empty: it is one of its own.
  std::string_view base = {};
  Form form = Form::f32;
  /// Every element of y is computed from the elements at the same place of the inputs, which broadcast.
  bool elementwise = false;
  /// The attributes that say "NHWC" where the channels of x (and of a residual) and of y are last: two, one for both,
  /// or none where the op knows nothing of channels.
  std::vector<std::string_view> layouts = {};
  /// What each input is to the op, in words that mean the same for all ops: "bias", "residual", "mask", "w_scale" (that
  /// of "w"). Null: what the body calls them.
  std::vector<std::string> (*roles)(const Call&) = nullptr;
  /// The role of what it multiplies by, where those may be weights.
  std::string_view weights = {};
  /// The attribute that names the axis it works along, where any axis will do.
  std::string_view axis = {};
  /// Multiplications and additions of a call. Unknown dims count as 1; null: none that count beside its bytes.
  double (*flops)(const Call&) = nullptr;
  /// Bytes that plain ops read and write between its inputs and y; null: as many as an epilogue has.
  double (*plain_bytes)(const Call&) = nullptr;
};

/// One way to run a fused op. The table backends/kernels.cpp lists all, best first.
struct Kernel {
  std::string_view op;    ///< FusedOp::kind
  std::string_view name;  ///< "cpu.onednn_conv"
  Device device = Device::cpu;
  IsaSet needs = {};  ///< of a CPU
  int sm = 0;         ///< of a GPU: the least compute capability
  Verdict (*accepts)(const Call&, const Target&);
  double (*cost)(const Call&, const Target&);                             ///< seconds; unknown dims count as 1
  std::unique_ptr<Implementation> (*create)(const Call&, const Target&);  ///< null: this build can plan but not run it

  /// Yes when the target is of its device and has what it needs.
  Verdict fits(const Target& target) const;
  /// Yes when it is for this op, fits the target and accepts the call.
  Verdict takes(const Call& call, const Target& target) const;
};

/// Every fused op and every kernel of this build, in the order of preference.
std::span<const FusedOp* const> fused_ops();
std::span<const Kernel* const> kernels();
const FusedOp* find_fused_op(std::string_view kind);
/// Whether it takes floats of any type: not in lower precision, but for what says which of its inputs stay float32, nor
/// where it only makes floats of 8 bits (a runtime could not tell of which type).
bool takes_any_float(const FusedOp& op);
/// What input `i` is where an op computes in `floats`: the type that is declared, with `floats` for float32 unless it
/// is single.
DType input_type(const FusedOp& op, std::size_t i, DType floats);
/// The same op in this form; null where there is none.
const FusedOp* in_form(const FusedOp& op, Form form);
/// The first kernel for this call that fits this target and accepts it, or why none of them.
struct Choice {
  const Kernel* kernel = nullptr;
  std::string reason;
};
Choice choose_kernel(const Call& call, const Target& target);
/// The type that a call computes in, and its body: that of the operands which its op has as float32 and which are not
/// single, as far as their types are known. Undefined where two of them differ.
DType float_type(const Call& call);
/// The op under whose names this one goes into files: itself, or its base where both give one type (a runtime knows one
/// type for each name); then the attribute kPrecision says which of them is called.
const FusedOp& pool_of(const FusedOp& op);
inline constexpr const char* kPrecision = "precision";
/// "Conv_3" -> "Conv", with kPrecision "int8" the kind in 8 bits: what a node of a file calls; empty when it is not one
/// of ours.
std::string_view kind_of(std::string_view pool_name, const Attrs& attrs);
std::string pool_name(std::string_view kind, int index);

}  // namespace modelflow
