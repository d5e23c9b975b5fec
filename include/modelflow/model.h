// A whole ONNX model: graph, functions, opsets and metadata, read and written.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "modelflow/graph.h"
#include "modelflow/limits.h"

namespace modelflow {

/// A model-local function: a named body with formal inputs, outputs and attributes.
struct Function {
  std::string domain, name, overload, doc;
  std::vector<std::string> attributes;  ///< required attribute names
  Attrs defaults;                       ///< attributes with defaults
  std::map<std::string, std::int64_t> opsets;
  Metadata metadata;
  std::shared_ptr<Graph> body;  ///< its inputs and outputs are the formals
};

struct WriteOptions {
  enum class ExternalData { automatic, always, never };
  /// automatic: beside the model as FILE.data when the input had external data or the model would exceed 1.5 GiB or
  /// (with fused ops) hold more than 1 MiB of weights: ORT maps aligned external weights without copying them.
  ExternalData external_data = ExternalData::automatic;
};

/// A whole ONNX model as a value: copying makes an independent graph and shares the tensor bytes.
///
///     Model m = Model::load("model.onnx");
///     m.save("copy.onnx");
class Model {
 public:
  Model();
  Model(const Model& other);
  Model& operator=(const Model& other);
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  /// Reads and checks a model; external data is memory-mapped. Throws Error(invalid_input), and Error(limit) for one of
  /// more nodes or deeper nesting than `limits` allow.
  static Model load(const std::filesystem::path& file, const Limits& limits = {});
  /// From the bytes of a ModelProto; external data is looked up in `directory` (empty: refused).
  static Model from_bytes(std::span<const std::byte> bytes, const std::filesystem::path& directory = {},
                          const Limits& limits = {});
  /// From the ONNX text form (docs/text.md).
  static Model from_text(std::string_view text);
  /// Atomic: the old file stays until the new one is complete. Throws Error(output).
  void save(const std::filesystem::path& file, const WriteOptions& options = {}) const;
  /// One ModelProto with all weights inside; throws Error(limit) over 2 GiB.
  std::string to_bytes() const;
  std::string to_text() const;

  Graph& graph() { return *graph_; }
  const Graph& graph() const { return *graph_; }
  /// Version of the default domain, 0 when not imported.
  std::int64_t opset() const;

  std::int64_t ir_version = 8;
  std::map<std::string, std::int64_t> opsets;  ///< "" is ai.onnx
  std::string producer_name, producer_version, domain, doc;
  std::int64_t model_version = 0;
  Metadata metadata;
  std::vector<Function> functions;
  std::string extras;  ///< serialized ModelProto with the parts nothing here edits (training_info, ...)
  bool had_external_data = false;
  /// Symbols of the inputs that can be no other number, since a node refuses all others; inference goes by them. Not
  /// part of the file: the inputs stay as they are declared.
  std::map<std::string, std::int64_t> settled;

 private:
  std::unique_ptr<Graph> graph_;
};

}  // namespace modelflow
