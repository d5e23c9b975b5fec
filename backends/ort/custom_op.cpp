// Custom ops: the functions that ONNX Runtime calls to create, run and destroy kernels.
#include "backends/ort/custom_op.h"

#include <algorithm>

#include "backends/cuda/invocation.h"
#include "backends/ort/deferred.h"
#include "backends/ort/describe.h"
#include "backends/ort/device_invocation.h"
#include "backends/ort/invocation.h"
#include "backends/ort/on_host.h"

namespace modelflow::ort {
namespace {

/// A kernel of one node in one session. Compute may run concurrently.
struct NodeKernel {
  const Registration* registration;
  std::string label;
  std::unique_ptr<Implementation> implementation;
  Known inputs;
  std::unique_ptr<OrtAllocator, void (*)(OrtAllocator*)> allocator;  ///< on a device: where scratch memory comes from
};

/// What the session keeps for as long as it lives. A device has it in memory of its own, which a run asks for.
Known known_inputs(const Call& call, const Target& target) {
  Known inputs;
  for (const Operand& operand : call.inputs) {
    const bool known = operand.constant && target.device == Device::cpu;
    inputs.push_back(known ? std::optional(*operand.constant) : std::nullopt);
  }
  return inputs;
}

/// Constants of a device, copied to the host for as long as a kernel is made of them.
void fetch(const cuda::DeviceLibrary& library, std::vector<Tensor>& constants) {
  for (Tensor& constant : constants)
    constant = cuda::downloaded(library, {constant.dtype(), constant.dims(), constant.data()}, nullptr);
}

OrtAllocator* allocator_of(const OrtApi& api, const OrtKernelInfo* info, const Target& target) {
  OrtAllocator* allocator = nullptr;
  if (target.device != Device::cpu) check(api, api.KernelInfoGetAllocator(info, OrtMemTypeDefault, &allocator));
  return allocator;
}

const CustomOp& self(const OrtCustomOp* op) { return *static_cast<const CustomOp*>(op); }

/// What a node runs on; null: a device that the library has no code for, which `why` says.
struct Place {
  const Target* target;
  const std::string* why;
};

/// `allocator`: that of the device which the session has, where it has one.
Place place_of(const Registration& shared, const OrtAllocator* allocator) {
  if (!allocator) return {&shared.target, nullptr};
  const OrtMemoryInfo* memory = nullptr;
  int device = 0;
  check(*shared.api, shared.api->AllocatorGetInfo(allocator, &memory));
  check(*shared.api, shared.api->MemoryInfoGetId(memory, &device));
  const cuda::DeviceTargets::Found& found = shared.devices->of(device);
  return {found.target ? &*found.target : nullptr, &found.why};
}

/// The best for this call, or the one that the session asks for, where that is one of the op.
Choice choice_of(const Call& call, const Kernel* only, const Place& place) {
  if (!place.target) return {nullptr, *place.why};
  if (!only || only->op != call.op) return choose_kernel(call, *place.target);
  const Verdict verdict = only->takes(call, *place.target);
  return verdict ? Choice{only, {}} : Choice{nullptr, verdict.reason};
}

std::unique_ptr<Implementation> make_implementation(const CustomOp& op, const Call& call, const Place& place) {
  const Registration& shared = *op.registration;
  if (!shared.library && op.floats != DType::f32)
    return std::make_unique<OnHost>(call, op.floats, shared.target, nullptr);
  const Choice choice = choice_of(call, shared.only, place);
  const bool asked_for = shared.only && shared.only->op == call.op;
  // The runtime knows types alone: it gives a device what the device may have no kernel for.
  if (!choice.kernel && shared.library && !asked_for)
    return std::make_unique<OnHost>(call, op.floats, *shared.host, shared.library);
  if (!choice.kernel) throw Error(ErrorKind::unsupported, "no kernel: " + choice.reason);
  std::unique_ptr<Implementation> made = choice.kernel->create(call, *place.target);
  if (!made) throw Error(ErrorKind::unsupported, "this build cannot run " + std::string(choice.kernel->name));
  return made;
}

/// The call with the ranks of its operands alone; nothing where these do not fit either.
std::optional<Call> inferred_from_ranks(Call call) {
  for (Operand& input : call.inputs)
    if (!input.constant && input.shape.has_rank()) input.shape = Shape(std::vector<Dim>(input.shape.rank()));
  try {
    infer_outputs(call);
  } catch (const Error&) {
    return std::nullopt;
  }
  return call;
}

/// Extents that exclude each other are no reason not to load: they may stand in a branch that is never taken, or be
/// hints that nobody kept true. The runtime's own operators look at them in a run, and so do kernels.
Call inferred_call(const Call& call) {
  Call inferred = call;
  try {
    infer_outputs(inferred);
  } catch (const Error&) {
    std::optional<Call> loose = inferred_from_ranks(call);
    if (!loose) throw;
    return std::move(*loose);
  }
  return inferred;
}

/// Ready now, or where the ranks of operands are not known, in the first run.
std::unique_ptr<Implementation> now_or_deferred(const CustomOp& op, const Call& call, const Place& place,
                                                std::vector<Tensor> constants) {
  const auto make = [&op, place](const Call& inferred, void* stream) {
    if (const cuda::DeviceLibrary* library = op.registration->library)
      cuda::refuse_capture(*library, stream, "what is made ready for operands of other ranks than in runs before");
    return make_implementation(op, inferred, place);
  };
  try {
    return make(inferred_call(call), nullptr);
  } catch (const Error& error) {
    if (!Deferred::may_help(call, error.what())) throw;
  }
  return std::make_unique<Deferred>(call, std::move(constants), make);
}

std::unique_ptr<NodeKernel> make_kernel(const CustomOp& op, const OrtApi& api, const OrtKernelInfo* info) {
  const std::string where = label(api, info, op.pool_name);
  try {
    std::vector<Tensor> constants;
    const Call call = describe(api, info, op.pool_name, constants);
    const Registration& shared = *op.registration;
    if (shared.library) fetch(*shared.library, constants);
    auto kernel =
        std::make_unique<NodeKernel>(NodeKernel{&shared,
                                                where,
                                                nullptr,
                                                known_inputs(call, shared.target),
                                                {allocator_of(api, info, shared.target), api.ReleaseAllocator}});
    const Place place = place_of(shared, kernel->allocator.get());
    kernel->implementation = now_or_deferred(op, call, place, std::move(constants));
    return kernel;
  } catch (const Error& error) {
    throw error.within(where);
  }
}

OrtStatus* create_kernel(const OrtCustomOp* op, const OrtApi* api, const OrtKernelInfo* info, void** kernel) {
  *kernel = nullptr;
  return guarded(*api, [&] { *kernel = make_kernel(self(op), *api, info).release(); });
}

OrtStatus* compute(void* opaque, OrtKernelContext* context) {
  const auto& kernel = *static_cast<const NodeKernel*>(opaque);
  const OrtApi& api = *kernel.registration->api;
  return guarded(api, [&] {
    const Registration& shared = *kernel.registration;
    try {
      if (kernel.allocator) {
        DeviceInvocation call(api, context, shared.scratch, kernel.inputs, kernel.allocator.get(), shared.threads);
        return kernel.implementation->run(call);
      }
      OrtInvocation call(api, context, shared.scratch, kernel.inputs, shared.threads);
      kernel.implementation->run(call);
    } catch (const Error& error) {
      throw error.within(kernel.label);
    }
  });
}

void destroy(void* kernel) { delete static_cast<NodeKernel*>(kernel); }

// The result may take the place of the operand.
std::size_t may_inplace(int** inputs, int** outputs) {
  *inputs = new int[1]{0};
  *outputs = new int[1]{0};
  return 1;
}

void release_inplace(int* inputs, int* outputs) {
  delete[] inputs;
  delete[] outputs;
}

/// Inputs that all ops that share the name have.
std::size_t required(const OrtCustomOp* op) {
  return static_cast<std::size_t>(std::ranges::min(self(op).pool, {}, &FusedOp::min_inputs)->min_inputs);
}

// The runtime makes one schema of all overloads of a name and refuses every session where they differ in how many
// inputs and outputs there may be: these are of all ops that share the name. What only some calls have is one variadic
// input: each input of a schema costs every session some 10 microseconds.
OrtCustomOpInputOutputCharacteristic input_kind(const OrtCustomOp* op, std::size_t i) {
  return i < required(op) ? INPUT_OUTPUT_REQUIRED : INPUT_OUTPUT_VARIADIC;
}

std::size_t most_inputs(const OrtCustomOp* op) {
  return static_cast<std::size_t>(std::ranges::max(self(op).pool, {}, &FusedOp::max_inputs)->max_inputs);
}

std::size_t input_count(const OrtCustomOp* op) { return std::min(most_inputs(op), required(op) + 1); }

std::size_t output_count(const OrtCustomOp* op) {
  const auto most = std::ranges::max(self(op).pool, {}, &FusedOp::max_outputs);
  return static_cast<std::size_t>(most->max_outputs);
}

OrtCustomOpInputOutputCharacteristic output_kind(const OrtCustomOp*, std::size_t i) {
  return i == 0 ? INPUT_OUTPUT_REQUIRED : INPUT_OUTPUT_OPTIONAL;
}

/// Undefined, which stands for any, where those that share the name differ. The numbers are those of ONNX in both.
template <class TypeOf>
ONNXTensorElementDataType common_type(const OrtCustomOp* op, TypeOf type_of) {
  const std::vector<const FusedOp*>& ops = self(op).taken;
  const DType type = type_of(*ops.front());
  const bool same = std::ranges::all_of(ops, [&](const FusedOp* other) { return type_of(*other) == type; });
  return static_cast<ONNXTensorElementDataType>(same ? type : DType::undefined);
}

ONNXTensorElementDataType input_type(const OrtCustomOp* op, std::size_t i) {
  const auto at = [op](std::size_t place) {
    return common_type(op, [&](const FusedOp& fused) { return modelflow::input_type(fused, place, self(op).floats); });
  };
  const ONNXTensorElementDataType type = at(i);
  for (std::size_t next = i + 1; i == required(op) && next < most_inputs(op); ++next)
    if (at(next) != type) return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  return type;
}

/// Undefined: that of the one input, which is undefined then; where none is, that which the model gives the value.
ONNXTensorElementDataType output_type(const OrtCustomOp* op, std::size_t) {
  if (!self(op).runs) return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  return common_type(
      op, [op](const FusedOp& fused) { return fused.output_type == DType::f32 ? self(op).floats : fused.output_type; });
}

int one(const OrtCustomOp*) { return 1; }

int zero(const OrtCustomOp*) { return 0; }

/// Null: the CPU provider. What does not run has one that no session has.
const char* provider(const OrtCustomOp* op) {
  if (!self(op).runs) return "ModelFlowTypes";
  return self(op).registration->target.device == Device::cuda ? "CUDAExecutionProvider" : nullptr;
}

}  // namespace

CustomOp::CustomOp(std::vector<const FusedOp*> ops, std::string name, const Registration& shared,
                   std::vector<const FusedOp*> there, DType type, bool run)
    : OrtCustomOp(),
      pool(std::move(ops)),
      taken(std::move(there)),
      pool_name(std::move(name)),
      floats(type),
      runs(run),
      registration(&shared) {
  version = static_cast<std::uint32_t>(shared.api_version);
  GetName = [](const OrtCustomOp* op) { return self(op).pool_name.c_str(); };
  GetExecutionProviderType = provider;
  GetInputType = input_type;
  GetInputTypeCount = input_count;
  GetOutputType = output_type;
  GetOutputTypeCount = output_count;
  GetInputCharacteristic = input_kind;
  GetOutputCharacteristic = output_kind;
  GetInputMemoryType = [](const OrtCustomOp*, std::size_t) { return OrtMemTypeDefault; };
  GetVariadicInputMinArity = GetVariadicInputHomogeneity = zero;
  GetVariadicOutputMinArity = GetVariadicOutputHomogeneity = one;
  CreateKernelV2 = create_kernel;
  KernelComputeV2 = compute;
  KernelDestroy = destroy;
  if (std::ranges::all_of(pool, &FusedOp::in_place)) {
    GetMayInplace = may_inplace;
    ReleaseMayInplace = release_inplace;
  }
}

}  // namespace modelflow::ort
