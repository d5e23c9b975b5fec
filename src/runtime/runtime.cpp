// ONNX Runtime searched for, loaded and asked for its interface.
#include "modelflow/runtime.h"

#include <dlfcn.h>

#include <cstdlib>

#include "modelflow/error.h"
#include "src/runtime/api.h"
#include "src/runtime/discover.h"
#include "src/runtime/session.h"

namespace modelflow {
namespace fs = std::filesystem;
namespace {

/// The oldest interface we can live with: ORT 1.18, the last with new functions that we call.
constexpr std::uint32_t kOldestApi = 18;

/// The library never prints, so neither may the runtime inside it.
void ORT_API_CALL discard(void*, OrtLoggingLevel, const char*, const char*, const char*, const char*) {}

class OrtRuntime : public Runtime {
 public:
  OrtRuntime(std::shared_ptr<const OrtCalls> ort, OrtEnv* env) : ort_(std::move(ort)), env_(env) {}
  std::string version() const override { return ort_->version(); }
  std::unique_ptr<Session> load(const fs::path& model, const SessionOptions& options) override {
    return make_session(ort_, env_, {model, {}}, options);
  }
  std::unique_ptr<Session> load_bytes(std::span<const std::byte> model, const SessionOptions& options) override {
    return make_session(ort_, env_, {{}, model}, options);
  }

 private:
  std::shared_ptr<const OrtCalls> ort_;
  OrtEnv* env_;  // never released: ORT keeps one per process and other users may share it
};

/// Another runtime, with libraries that every session registers.
class WithCustomOps : public Runtime {
 public:
  WithCustomOps(std::shared_ptr<Runtime> runtime, const std::vector<fs::path>& custom_ops)
      : runtime_(std::move(runtime)) {
    for (const fs::path& library : custom_ops) custom_ops_.push_back(fs::absolute(library));
  }
  std::string version() const override { return runtime_->version(); }
  std::unique_ptr<Session> load(const fs::path& model, const SessionOptions& options) override {
    return runtime_->load(model, with(options));
  }
  std::unique_ptr<Session> load_bytes(std::span<const std::byte> model, const SessionOptions& options) override {
    return runtime_->load_bytes(model, with(options));
  }

 private:
  SessionOptions with(SessionOptions options) const {
    options.custom_ops.insert(options.custom_ops.begin(), custom_ops_.begin(), custom_ops_.end());
    return options;
  }

  std::shared_ptr<Runtime> runtime_;
  std::vector<fs::path> custom_ops_;
};

std::shared_ptr<Runtime> make_runtime(const OrtApiBase* base) {
  const std::string version = base->GetVersionString();
  const OrtApi* api = nullptr;
  for (std::uint32_t v = ORT_API_VERSION; !api && v >= kOldestApi; --v) {
    // GetApi complains on stderr when asked for more than it has, so ask for what the version string promises.
    const std::size_t dot = version.find('.');
    if (dot != std::string::npos && v > std::strtoul(version.c_str() + dot + 1, nullptr, 10)) continue;
    api = base->GetApi(v);
  }
  if (!api) throw Error(ErrorKind::unsupported, "ONNX Runtime " + version + " is too old, 1.18 or newer is needed");
  auto ort = std::make_shared<const OrtCalls>(api, version);
  OrtEnv* env = nullptr;
  ort->check(api->CreateEnvWithCustomLogger(discard, nullptr, ORT_LOGGING_LEVEL_FATAL, "modelflow", &env));
  return std::make_shared<OrtRuntime>(std::move(ort), env);
}

using GetApiBase = const OrtApiBase*(ORT_API_CALL*)();

/// One place to look: null with one more clause in `tried` when it has no ONNX Runtime that works.
std::shared_ptr<Runtime> attempt(const fs::path& library, std::string& tried) {
  try {
    return Runtime::open(library);
  } catch (const Error& error) {
    tried += std::string("; ") + error.what();
    return nullptr;
  }
}

std::shared_ptr<Runtime> search(std::string& tried) {
  if (auto symbol = reinterpret_cast<GetApiBase>(dlsym(RTLD_DEFAULT, "OrtGetApiBase"))) return make_runtime(symbol());
  tried = "no OrtGetApiBase in this process";
  if (const char* chosen = std::getenv("MODELFLOW_ONNXRUNTIME"); chosen && *chosen) {
    // The user's choice is final: silently taking another version would only confuse.
    if (!fs::is_directory(chosen)) return attempt(chosen, tried);
    for (const fs::path& library : libraries_in(chosen))
      if (auto runtime = attempt(library, tried)) return runtime;
    tried += std::string("; no libonnxruntime.so in $MODELFLOW_ONNXRUNTIME = ") + chosen;
    return nullptr;
  }
  for (const char* name : {"libonnxruntime.so", "libonnxruntime.so.1"})
    if (auto runtime = attempt(name, tried)) return runtime;
  for (const fs::path& library : python_libraries())
    if (auto runtime = attempt(library, tried)) return runtime;
  tried += "; no Python package onnxruntime found; install it or set MODELFLOW_ONNXRUNTIME to a libonnxruntime.so";
  return nullptr;
}

}  // namespace

std::shared_ptr<Runtime> Runtime::open(const fs::path& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: sessions and env live in it
  if (!handle) throw Error(ErrorKind::unsupported, dlerror());
  const auto symbol = reinterpret_cast<GetApiBase>(dlsym(handle, "OrtGetApiBase"));
  if (!symbol) throw Error(ErrorKind::unsupported, "has no OrtGetApiBase").within(library.string());
  return make_runtime(symbol());
}

std::shared_ptr<Runtime> Runtime::find(std::string* why, const std::vector<fs::path>& custom_ops) {
  std::string tried;
  std::shared_ptr<Runtime> runtime;
  try {
    runtime = search(tried);
  } catch (const Error& error) {
    tried += (tried.empty() ? "" : "; ") + std::string(error.what());
  }
  if (why) *why = runtime ? "" : "no ONNX Runtime: " + tried;
  if (!runtime || custom_ops.empty()) return runtime;
  for (const fs::path& library : custom_ops)  // said once, and not as a reason why each session failed
    if (!dlopen(fs::absolute(library).c_str(), RTLD_NOW | RTLD_LOCAL)) throw Error(ErrorKind::usage, dlerror());
  return std::make_shared<WithCustomOps>(std::move(runtime), custom_ops);
}

fs::path plugin_path() {
  std::error_code ignored;
  if (const char* chosen = std::getenv("MODELFLOW_PLUGIN"); chosen && *chosen)
    return fs::exists(chosen, ignored) ? fs::path(chosen) : fs::path();
  std::vector<fs::path> folders;
  Dl_info here;
  if (dladdr(reinterpret_cast<void*>(&plugin_path), &here) && here.dli_fname)
    folders.push_back(fs::weakly_canonical(here.dli_fname, ignored).parent_path());
  folders.push_back(fs::read_symlink("/proc/self/exe", ignored).parent_path());
  for (const fs::path& folder : folders)
    for (const fs::path& candidate : {folder / "libmodelflow_ort.so", folder / ".." / "lib" / "libmodelflow_ort.so"})
      if (fs::exists(candidate, ignored)) return fs::weakly_canonical(candidate, ignored);
  return {};
}

}  // namespace modelflow
