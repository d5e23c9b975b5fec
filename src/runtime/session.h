// How sessions are made.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "modelflow/runtime.h"
#include "src/runtime/api.h"

namespace modelflow {

/// Where a session reads its model: a file, or bytes in memory when `file` is empty.
struct ModelSource {
  std::filesystem::path file;
  std::span<const std::byte> bytes;
};

std::unique_ptr<Session> make_session(std::shared_ptr<const OrtCalls> ort, OrtEnv* env, const ModelSource& source,
                                      const SessionOptions& options);

}  // namespace modelflow
