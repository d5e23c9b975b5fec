// ONNX Runtime, found and loaded at run time: sessions, runs, times of nodes.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "modelflow/graph.h"
#include "modelflow/target.h"
#include "modelflow/tensor.h"

namespace modelflow {

/// Named tensors: the inputs of one run.
using Feeds = std::map<std::string, Tensor>;

struct SessionOptions {
  int threads = 0;                                     ///< 0: the runtime's default
  bool optimize = true;                                ///< false: graph optimisation off (the reference)
  std::filesystem::path plugin = {};                   ///< register this custom-op library
  std::vector<std::filesystem::path> custom_ops = {};  ///< and these before it
  Device device = Device::cpu;                         ///< of the execution provider that comes first
  bool profile = false;                                ///< collect per-node times; Session::profile()
  std::filesystem::path directory = {};                ///< where external data of a model from bytes lies
  std::map<std::string, std::string> config = {};      ///< session config entries
};

struct NodeTime {
  std::string name, op;
  double seconds = 0;  ///< of a run, the median: others who use the machine interrupt some
  int calls = 0;
  std::vector<Dims> inputs = {}, outputs = {};  ///< extents of the last run
};

/// A loaded model in ONNX Runtime. Several threads may run one session at once.
class Session {
 public:
  virtual ~Session() = default;
  virtual std::vector<std::pair<std::string, Type>> inputs() const = 0;
  virtual std::vector<std::pair<std::string, Type>> outputs() const = 0;
  /// All outputs in order. Of a sequence or a map it is one axis with the numbers of all its tensors or values; an
  /// absent optional is undefined. Throws Error(unsupported) with ORT's message.
  virtual std::vector<Tensor> run(const Feeds& feeds) = 0;
  /// The same; Error(limit) where it takes longer than `seconds` (0: as long as it wants).
  virtual std::vector<Tensor> run_within(const Feeds& feeds, double seconds) = 0;
  /// Seconds of one run with inputs bound once, outputs dropped: for timing loops.
  virtual double timed_run(const Feeds& feeds) = 0;
  /// Ends profiling and gives the times per node, slowest first.
  virtual std::vector<NodeTime> profile() = 0;
};

/// ONNX Runtime, found and loaded at run time through its C API (never linked).
class Runtime {
 public:
  virtual ~Runtime() = default;
  /// The ORT this process already has, else $MODELFLOW_ONNXRUNTIME, else libonnxruntime.so on the library path, else
  /// the one of the `onnxruntime` Python package. Null when there is none; `why` then says what was tried. All sessions
  /// register the libraries `custom_ops`; Error(usage) for one that does not load.
  static std::shared_ptr<Runtime> find(std::string* why = nullptr,
                                       const std::vector<std::filesystem::path>& custom_ops = {});
  static std::shared_ptr<Runtime> open(const std::filesystem::path& library);
  virtual std::string version() const = 0;
  virtual std::unique_ptr<Session> load(const std::filesystem::path& model, const SessionOptions& options) = 0;
  virtual std::unique_ptr<Session> load_bytes(std::span<const std::byte> model, const SessionOptions& options) = 0;
};

/// The plugin that belongs to this library: $MODELFLOW_PLUGIN, else libmodelflow_ort.so beside libmodelflow.so or the
/// executable. Empty when it is not there.
std::filesystem::path plugin_path();

}  // namespace modelflow
