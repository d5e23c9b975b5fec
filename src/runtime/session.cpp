// Sessions of ONNX Runtime: options, inputs, runs.
#include "src/runtime/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "modelflow/error.h"
#include "src/core/stopwatch.h"
#include "src/runtime/deadline.h"
#include "src/runtime/profile.h"

namespace modelflow {
namespace {

using OptionsHandle = OrtCalls::Held<OrtSessionOptions>;

std::filesystem::path profile_prefix() {
  static std::atomic<unsigned> count{0};  // only so that two sessions never share a file
  return std::filesystem::temp_directory_path() /
         ("modelflow-profile-" + std::to_string(getpid()) + "-" + std::to_string(count++));
}

/// Nodes that the provider does not take stay on the CPU. Error(unsupported) where this runtime has none, or no GPU.
void append_provider(const OrtCalls& ort, OrtSessionOptions* options, Device device) {
  if (device == Device::cpu) return;
  OrtCUDAProviderOptionsV2* raw = nullptr;
  ort.check(ort->CreateCUDAProviderOptions(&raw));
  const auto held = OrtCalls::hold(raw, ort->ReleaseCUDAProviderOptions);
  ort.check(ort->SessionOptionsAppendExecutionProvider_CUDA_V2(options, raw));
}

OptionsHandle make_options(const OrtCalls& ort, const SessionOptions& options) {
  OrtSessionOptions* raw = nullptr;
  ort.check(ort->CreateSessionOptions(&raw));
  OptionsHandle held = OrtCalls::hold(raw, ort->ReleaseSessionOptions);
  ort.check(ort->SetSessionLogSeverityLevel(raw, ORT_LOGGING_LEVEL_FATAL));
  ort.check(ort->SetSessionGraphOptimizationLevel(raw, options.optimize ? ORT_ENABLE_ALL : ORT_DISABLE_ALL));
  if (options.threads > 0) ort.check(ort->SetIntraOpNumThreads(raw, options.threads));
  // What is not optimized is there for its results: threads that wait for work would take cores from what is measured.
  if (!options.optimize) ort.check(ort->AddSessionConfigEntry(raw, "session.intra_op.allow_spinning", "0"));
  if (options.profile) ort.check(ort->EnableProfiling(raw, profile_prefix().c_str()));
  if (!options.directory.empty())
    ort.check(ort->AddSessionConfigEntry(raw, "session.model_external_initializers_file_folder_path",
                                         options.directory.c_str()));
  // Before the plugin: it may read config entries while it registers.
  for (const auto& [key, value] : options.config)
    ort.check(ort->AddSessionConfigEntry(raw, key.c_str(), value.c_str()));
  // The plugin cannot know that this is a session of the CPU: where there is a GPU and no kernels for it, it would
  // register nothing.
  constexpr const char* kKernels = "modelflow.kernels";
  if (options.device == Device::cpu && !options.plugin.empty() && !options.config.contains(kKernels))
    ort.check(ort->AddSessionConfigEntry(raw, kKernels, "on"));
  append_provider(ort, raw, options.device);
  std::vector<std::filesystem::path> libraries = options.custom_ops;
  if (!options.plugin.empty()) libraries.push_back(options.plugin);
  for (const std::filesystem::path& library : libraries)
    ort.check(ort->RegisterCustomOpsLibrary_V2(raw, std::filesystem::absolute(library).c_str()));
  return held;
}

Type type_of(const OrtCalls& ort, const OrtTypeInfo* info) {
  ONNXType kind;
  ort.check(ort->GetOnnxTypeFromTypeInfo(info, &kind));
  if (kind != ONNX_TYPE_TENSOR) {
    Type other;
    other.kind = Type::Kind::other;
    return other;
  }
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;  // owned by `info`
  ort.check(ort->CastTypeInfoToTensorInfo(info, &tensor));
  ONNXTensorElementDataType dtype;
  std::size_t rank = 0;
  ort.check(ort->GetTensorElementType(tensor, &dtype));
  ort.check(ort->GetDimensionsCount(tensor, &rank));
  Dims numbers(rank);
  std::vector<const char*> names(rank);
  ort.check(ort->GetDimensions(tensor, numbers.data(), rank));
  ort.check(ort->GetSymbolicDimensions(tensor, names.data(), rank));
  std::vector<Dim> dims;
  for (std::size_t i = 0; i < rank; ++i)
    dims.push_back(numbers[i] >= 0 ? Dim(numbers[i]) : names[i] && *names[i] ? Dim::parse(names[i]) : Dim());
  return Type::tensor(static_cast<DType>(dtype), Shape(std::move(dims)));
}

struct Ports {
  decltype(OrtApi::SessionGetInputCount) count;
  decltype(OrtApi::SessionGetInputName) name;
  decltype(OrtApi::SessionGetInputTypeInfo) type;
};

/// The feeds of one run, wrapped for ORT: `values` point into the tensors of `feeds`.
struct Binding {
  Feeds feeds;
  std::vector<OrtValueHeld> values;
  std::vector<const char*> names;

  bool holds(const Feeds& others) const {
    const auto same = [](const auto& a, const auto& b) {
      return a.first == b.first && a.second.data() == b.second.data() && a.second.dims() == b.second.dims() &&
             a.second.dtype() == b.second.dtype() && a.second.dtype() != DType::string;
    };
    return !values.empty() && std::equal(others.begin(), others.end(), feeds.begin(), feeds.end(), same);
  }
};

/// Thread-safe: run() keeps nothing between calls.
class OrtSessionObject : public Session {
 public:
  OrtSessionObject(std::shared_ptr<const OrtCalls> ort, OrtSession* session, bool profiling)
      : ort_(std::move(ort)), session_(OrtCalls::hold(session, (*ort_)->ReleaseSession)), profiling_(profiling) {
    const OrtCalls& o = *ort_;
    inputs_ = ports({o->SessionGetInputCount, o->SessionGetInputName, o->SessionGetInputTypeInfo});
    outputs_ = ports({o->SessionGetOutputCount, o->SessionGetOutputName, o->SessionGetOutputTypeInfo});
    overridable_ = ports({o->SessionGetOverridableInitializerCount, o->SessionGetOverridableInitializerName,
                          o->SessionGetOverridableInitializerTypeInfo});
    for (const auto& output : outputs_) output_names_.push_back(output.first.c_str());
  }

  ~OrtSessionObject() override {
    if (profiling_) drop_profile();
  }

  std::vector<std::pair<std::string, Type>> inputs() const override { return inputs_; }
  std::vector<std::pair<std::string, Type>> outputs() const override { return outputs_; }

  std::vector<Tensor> run(const Feeds& feeds) override { return tensors_of(call(bind(feeds))); }

  std::vector<Tensor> run_within(const Feeds& feeds, double seconds) override {
    if (seconds <= 0) return run(feeds);
    const Deadline deadline(*ort_, seconds);
    try {
      return tensors_of(call(bind(feeds), deadline.options()));
    } catch (const Error&) {
      if (!deadline.passed()) throw;
      throw Error(ErrorKind::limit, fmt::format("a run takes longer than {:.1f} s", seconds));
    }
  }

  double timed_run(const Feeds& feeds) override {
    const std::scoped_lock lock(timing_);  // two timings at once would measure each other
    if (!bound_.holds(feeds)) bound_ = bind(feeds);
    const Stopwatch watch;
    const std::vector<OrtValueHeld> values = call(bound_);
    return watch.seconds();
  }

  std::vector<NodeTime> profile() override {
    const std::filesystem::path file = ended_profile();
    std::vector<NodeTime> times = read_profile(file);
    std::filesystem::remove(file);
    return times;
  }

  std::filesystem::path ended_profile() {
    if (!profiling_) throw Error(ErrorKind::usage, "profile() needs SessionOptions::profile");
    profiling_ = false;
    OrtAllocator* allocator = nullptr;
    ort_->check((*ort_)->GetAllocatorWithDefaultOptions(&allocator));
    char* name = nullptr;
    ort_->check((*ort_)->SessionEndProfiling(session_.get(), allocator, &name));
    std::filesystem::path file = name;
    allocator->Free(allocator, name);
    return file;
  }

 private:
  std::vector<std::pair<std::string, Type>> ports(const Ports& get) const {
    const OrtCalls& ort = *ort_;
    std::size_t count = 0;
    ort.check(get.count(session_.get(), &count));
    OrtAllocator* allocator = nullptr;
    ort.check(ort->GetAllocatorWithDefaultOptions(&allocator));
    std::vector<std::pair<std::string, Type>> found;
    for (std::size_t i = 0; i < count; ++i) {
      char* name = nullptr;
      ort.check(get.name(session_.get(), i, allocator, &name));
      std::string copy = name;
      allocator->Free(allocator, name);
      OrtTypeInfo* info = nullptr;
      ort.check(get.type(session_.get(), i, &info));
      const auto held = OrtCalls::hold(info, ort->ReleaseTypeInfo);
      found.emplace_back(std::move(copy), type_of(ort, info));
    }
    return found;
  }

  /// Wraps the tensors for a run; names that the model does not have are left out.
  Binding bind(const Feeds& feeds) const {
    Binding binding;
    binding.feeds = feeds;
    for (const auto* list : {&inputs_, &overridable_})
      for (const auto& [name, type] : *list)
        if (const auto found = binding.feeds.find(name); found != binding.feeds.end()) {
          binding.values.push_back(to_ort(*ort_, found->second));
          binding.names.push_back(name.c_str());
        }
    return binding;
  }

  std::vector<Tensor> tensors_of(const std::vector<OrtValueHeld>& values) const {
    std::vector<Tensor> tensors;
    tensors.reserve(values.size());
    for (const OrtValueHeld& value : values) tensors.push_back(from_ort(*ort_, value.get()));
    return tensors;
  }

  std::vector<OrtValueHeld> call(const Binding& binding, const OrtRunOptions* options = nullptr) const {
    std::vector<const OrtValue*> inputs;
    inputs.reserve(binding.values.size());
    for (const OrtValueHeld& value : binding.values) inputs.push_back(value.get());
    std::vector<OrtValue*> outputs(output_names_.size());
    OrtStatus* status = (*ort_)->Run(session_.get(), options, binding.names.data(), inputs.data(), inputs.size(),
                                     output_names_.data(), output_names_.size(), outputs.data());
    std::vector<OrtValueHeld> held;
    held.reserve(outputs.size());
    for (OrtValue* output : outputs) held.push_back(OrtCalls::hold(output, (*ort_)->ReleaseValue));
    ort_->check(status);
    return held;
  }

  void drop_profile() noexcept {
    try {
      std::filesystem::remove(ended_profile());
    } catch (const std::exception&) {  // a temporary file that stays is no reason to fail a destructor
    }
  }

  std::shared_ptr<const OrtCalls> ort_;
  OrtCalls::Held<OrtSession> session_;
  bool profiling_;
  std::vector<std::pair<std::string, Type>> inputs_, outputs_, overridable_;
  std::vector<const char*> output_names_;
  std::mutex timing_;
  Binding bound_;  // kept between timed runs, so that they time the model and not the wrapping
};

}  // namespace

std::filesystem::path end_profile(Session& session) {
  return dynamic_cast<OrtSessionObject&>(session).ended_profile();  // the only kind there is
}

std::unique_ptr<Session> make_session(std::shared_ptr<const OrtCalls> ort, OrtEnv* env, const ModelSource& source,
                                      const SessionOptions& options) {
  const OrtCalls& calls = *ort;
  const OptionsHandle held = make_options(calls, options);
  OrtSession* session = nullptr;
  if (!source.file.empty())
    calls.check(calls->CreateSession(env, source.file.c_str(), held.get(), &session));
  else
    calls.check(calls->CreateSessionFromArray(env, source.bytes.data(), source.bytes.size(), held.get(), &session));
  return std::make_unique<OrtSessionObject>(std::move(ort), session, options.profile);
}

}  // namespace modelflow
