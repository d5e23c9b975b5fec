// A run of a session that is ended when it takes too long.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "src/runtime/api.h"

namespace modelflow {

/// The options of one run. After so many seconds ONNX Runtime is asked to end it, which it does before its next node.
class Deadline {
 public:
  Deadline(const OrtCalls& ort, double seconds);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  const OrtRunOptions* options() const { return options_.get(); }
  bool passed() const;

 private:
  void wait(double seconds);

  const OrtCalls& ort_;
  OrtCalls::Held<OrtRunOptions> options_;
  mutable std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false, passed_ = false;
  std::thread clock_;
};

}  // namespace modelflow
