// Watches one run from a thread of its own.
#include "src/runtime/deadline.h"

#include <chrono>

namespace modelflow {
namespace {

OrtRunOptions* made(const OrtCalls& ort) {
  OrtRunOptions* options = nullptr;
  ort.check(ort->CreateRunOptions(&options));
  return options;
}

}  // namespace

Deadline::Deadline(const OrtCalls& ort, double seconds)
    : ort_(ort),
      options_(OrtCalls::hold(made(ort), ort->ReleaseRunOptions)),
      clock_([this, seconds] { wait(seconds); }) {}

Deadline::~Deadline() {
  {
    const std::scoped_lock lock(mutex_);
    done_ = true;
  }
  over_.notify_all();
  clock_.join();
}

bool Deadline::passed() const {
  const std::scoped_lock lock(mutex_);
  return passed_;
}

void Deadline::wait(double seconds) {
  std::unique_lock lock(mutex_);
  if (over_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return done_; })) return;
  passed_ = true;
  if (OrtStatus* status = ort_->RunOptionsSetTerminate(options_.get())) ort_->ReleaseStatus(status);
}

}  // namespace modelflow
