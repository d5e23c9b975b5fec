// RegisterCustomOps, the one function that this library exports. Session config entries that steer it, to be set before
// the library is registered:
//   modelflow.kernels   "off": register nothing, the function bodies in the model run: what is done of itself where
//                       there is a GPU and no library of kernels for it, and "on" undoes; or the name of a kernel,
//                       which then runs its op or refuses to: to compare kernels
//   modelflow.threads   how many threads the session's pool has, when that is not the number of physical cores
//   modelflow.target    pretend to be another machine ("cpu:avx2"): picks the kernels of that machine, for tests
#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>

#include "backends/cuda/device_target.h"
#include "backends/ort/custom_op.h"

namespace modelflow::ort {
namespace {

constexpr const char* kRegistered = "modelflow.registered";
constexpr std::string_view kDeviceProvider = "CUDAExecutionProvider", kNewest = "cuda:sm_120";

std::string config(const OrtApi& api, const OrtSessionOptions* options, const char* key) {
  int has = 0;
  check(api, api.HasSessionConfigEntry(options, key, &has));
  if (!has) return {};
  std::size_t size = 0;
  check(api, api.GetSessionConfigEntry(options, key, nullptr, &size));
  std::string value(size, '\0');
  check(api, api.GetSessionConfigEntry(options, key, value.data(), &size));
  value.resize(size ? size - 1 : 0);
  return value;
}

/// The ops that share the names of `owner`.
std::vector<const FusedOp*> pool(const FusedOp& owner) {
  std::vector<const FusedOp*> ops;
  for (const FusedOp* op : fused_ops())
    if (&pool_of(*op) == &owner) ops.push_back(op);
  return ops;
}

bool runs_here(const FusedOp& op, const Target& target) {
  for (const Kernel* kernel : kernels()) {
    if (kernel->op == op.kind && kernel->create && kernel->fits(target)) return true;
  }
  return false;
}

bool all_run_here(const std::vector<const FusedOp*>& ops, const Target& target) {
  return std::ranges::all_of(ops, [&](const FusedOp* op) { return runs_here(*op, target); });
}

/// Of ops that share names, those that make an overload together. Where they differ in the type of their results, the
/// runtime takes that of the last input, and knows none where that is one of those which only some calls have.
std::vector<std::vector<const FusedOp*>> overloads(const std::vector<const FusedOp*>& ops) {
  if (ops.empty()) return {};
  if (std::ranges::all_of(ops, [](const FusedOp* op) { return op->max_inputs == 1; })) return {ops};
  std::map<DType, std::vector<const FusedOp*>> by_result;
  for (const FusedOp* op : ops) by_result[op->output_type].push_back(op);
  std::vector<std::vector<const FusedOp*>> all;
  for (auto& [type, alike] : by_result) all.push_back(std::move(alike));
  return all;
}

std::size_t thread_count(const std::string& text, const Target& target) {
  if (text.empty()) return static_cast<std::size_t>(target.cores);
  char* end = nullptr;
  const long count = std::strtol(text.c_str(), &end, 10);
  if (*end != '\0' || count < 1 || count > 4096) {
    throw Error(ErrorKind::usage, "modelflow.threads is '" + text + "', not a number from 1 to 4096");
  }
  return static_cast<std::size_t>(count);
}

Target target_of(const std::string& text) {
  const Target host = Target::host();
  if (text.empty()) return host;
  Target target = Target::parse(text);
  if (target.device != Device::cpu || !host.has(target.isas)) {
    throw Error(ErrorKind::usage, "modelflow.target is '" + text + "', which this machine cannot run");
  }
  return target;
}

/// What a session says about its kernels.
struct Settings {
  std::string target, threads, kernels;
  auto operator<=>(const Settings&) const = default;
};

/// Of that name; null where the session asks for none.
const Kernel* kernel_of(const std::string& name) {
  if (name.empty() || name == "on" || name == "cpu") return nullptr;
  const auto found = std::ranges::find(kernels(), name, [](const Kernel* kernel) { return kernel->name; });
  if (found == kernels().end())
    throw Error(ErrorKind::usage, "modelflow.kernels is '" + name + "', not on, off or a kernel");
  return *found;
}

/// Of ops that share a name, those that some GPU has kernels for: what a model for a GPU may have in this type of
/// float.
std::vector<const FusedOp*> on_devices(std::vector<const FusedOp*> ops, const Target& device, DType type) {
  std::erase_if(
      ops, [&](const FusedOp* op) { return !runs_here(*op, device) || (type != DType::f32 && !takes_any_float(*op)); });
  return ops;
}

/// The overloads of `shared` for every name that has kernels on `device`, in these types. Names that the CPU leaves to
/// their bodies stay so: a name for one provider alone keeps sessions of the other from loading.
void add_overloads(const Registration& shared, const Target& device, std::span<const DType> types,
                   OrtCustomOpDomain* domain) {
  for (const FusedOp* op : fused_ops()) {
    const std::vector<const FusedOp*> members = pool(*op);
    if (!all_run_here(members, *shared.host)) continue;
    for (const DType type : types)
      for (const std::vector<const FusedOp*>& alike : overloads(on_devices(members, device, type)))
        for (int i = 0; i < op->names; ++i) {
          auto* overload = new CustomOp(members, pool_name(op->kind, i), shared, alike, type);
          check(*shared.api, shared.api->CustomOpDomain_Add(domain, overload));
        }
  }
}

/// Models for a GPU run elsewhere too, in float32: their names would not load in this type of float otherwise.
void add_type_of_devices(const Registration& host, DType type, OrtCustomOpDomain* domain) {
  add_overloads(host, Target::parse(kNewest), std::array{type}, domain);
}

/// Of two operands in bfloat16, a product for a CPU makes float32 and one for a GPU bfloat16, under one name. The
/// runtime takes the type of the first overload that fits: this one, for these names, has it look into the model.
void leave_types_to_models(const Registration& host, OrtCustomOpDomain* domain) {
  for (const FusedOp* op : fused_ops()) {
    const std::vector<const FusedOp*> members = pool(*op);
    const bool two = std::ranges::any_of(members, [](const FusedOp* other) {
      return other->form == Form::bf16 && other->input_types.front() == DType::undefined;
    });
    if (!two || !all_run_here(members, host.target)) continue;
    for (int i = 0; i < op->names; ++i) {
      auto* types = new CustomOp(members, pool_name(op->kind, i), host, {op}, DType::bf16, false);
      check(*host.api, host.api->CustomOpDomain_Add(domain, types));
    }
  }
}

/// What kernels of devices share; null where there is no library of them. Which device a session has, its nodes tell
/// when they are made: the target stands for the newest, which has every kernel.
const Registration* device_registration(const Registration& host, const cuda::DeviceLibrary* library) {
  if (!library) return nullptr;
  auto* shared = new Registration;  // lives as long as the ops
  shared->api = host.api;
  shared->api_version = host.api_version;
  shared->target = Target::parse(kNewest);
  shared->threads = host.threads;
  shared->host = &host.target;
  shared->library = library;
  shared->devices.emplace(*library);
  if (host.only && host.only->device == shared->target.device) shared->only = host.only;
  return shared;
}

/// True for a runtime that has a provider for NVIDIA's GPUs, and a machine that has such a GPU.
bool may_run_on_device(const OrtApi& api) {
  char** names = nullptr;
  int count = 0;
  check(api, api.GetAvailableProviders(&names, &count));
  const bool has = std::any_of(names, names + count, [](const char* name) { return kDeviceProvider == name; });
  check(api, api.ReleaseAvailableProviders(names, count));
  return has && !cuda::driver().devices.empty();
}

/// Kernels for the devices that sessions of this runtime may use; null where there are none.
const cuda::DeviceLibrary* library_for(const OrtApi& api) {
  const cuda::DeviceLibrary* library = may_run_on_device(api) ? cuda::device_library() : nullptr;
  return library && cuda::serves(*library, cuda::driver()) ? library : nullptr;
}

OrtCustomOpDomain* make_domain(const OrtApi& api, int version, const Settings& settings) {
  auto registration = std::make_unique<Registration>();
  registration->api = &api;
  registration->api_version = version;
  registration->target = target_of(settings.target);
  registration->host = &registration->target;
  registration->threads = thread_count(settings.threads, registration->target);
  registration->only = kernel_of(settings.kernels);
  OrtCustomOpDomain* domain = nullptr;
  check(api, api.CreateCustomOpDomain("modelflow", &domain));
  const Registration& shared = *registration.release();
  // The runtime infers types from the first overload that takes a node's, and names that several ops share take any on
  // the CPU: what is for one type of float comes first. A schema is made of the first overload, whose result has to
  // have a type.
  const Registration* device = device_registration(shared, library_for(api));
  if (device) add_overloads(*device, device->target, std::array{DType::f16, DType::f32}, domain);
  add_type_of_devices(shared, DType::f16, domain);
  leave_types_to_models(shared, domain);
  if (device) add_overloads(*device, device->target, std::array{DType::bf16}, domain);
  for (const FusedOp* op : fused_ops()) {
    // A name that is registered is the plugin's: no body runs in its place.
    const std::vector<const FusedOp*> members = pool(*op);
    if (!all_run_here(members, shared.target)) continue;
    for (const std::vector<const FusedOp*>& alike : overloads(members))
      for (int i = 0; i < op->names; ++i)
        check(api,
              api.CustomOpDomain_Add(domain, new CustomOp(members, pool_name(op->kind, i), shared, alike, DType::f32)));
  }
  add_type_of_devices(shared, DType::bf16, domain);
  return domain;
}

// One domain per way to configure it, made once and leaked: sessions use it until the process ends.
OrtCustomOpDomain* domain_for(const OrtApi& api, int version, const Settings& settings) {
  using Key = std::pair<const OrtApi*, Settings>;
  static std::mutex* mutex = new std::mutex;
  static auto* domains = new std::map<Key, OrtCustomOpDomain*>;
  std::lock_guard lock(*mutex);
  OrtCustomOpDomain*& domain = (*domains)[{&api, settings}];
  if (!domain) domain = make_domain(api, version, settings);
  return domain;
}

void add_ops(const OrtApi& api, int version, OrtSessionOptions* options) {
  // Twice with the same options would be a conflict of kernels in the runtime.
  if (!config(api, options, kRegistered).empty()) return;
  const std::string kernels = config(api, options, "modelflow.kernels");
  // Nobody says whether this will be a session of the GPU, where names that have kernels for the CPU alone would run on
  // it, between copies: without kernels for the GPU, bodies run wherever the session is.
  const bool bodies = kernels == "off" || (kernels.empty() && may_run_on_device(api) && !library_for(api));
  if (!bodies) {
    OrtCustomOpDomain* domain = domain_for(
        api, version, {config(api, options, "modelflow.target"), config(api, options, "modelflow.threads"), kernels});
    check(api, api.AddCustomOpDomain(options, domain));
  }
  check(api, api.AddSessionConfigEntry(options, kRegistered, "1"));
}

}  // namespace
}  // namespace modelflow::ort

extern "C" __attribute__((visibility("default"))) OrtStatus* RegisterCustomOps(OrtSessionOptions* options,
                                                                               const OrtApiBase* base) {
  // Every function used here exists since version 18; a runtime does not know versions above its own.
  constexpr int kOldest = 18, kNewest = 21;
  for (int version = kNewest; version >= kOldest; --version) {
    const OrtApi* api = base->GetApi(static_cast<std::uint32_t>(version));
    if (!api) continue;
    return modelflow::ort::guarded(*api, [&] { modelflow::ort::add_ops(*api, version, options); });
  }
  const OrtApi* any = base->GetApi(1);
  return any ? any->CreateStatus(ORT_NOT_IMPLEMENTED, "modelflow needs ONNX Runtime 1.18 or newer") : nullptr;
}
