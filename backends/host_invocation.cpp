// Threads that share the indices of a loop, and an Invocation that allocates plain memory.
#include "backends/host_invocation.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "backends/parallel.h"

namespace modelflow {

struct HostThreads::State {
  std::vector<std::thread> workers;
  std::mutex mutex;
  std::condition_variable wake, done;
  const std::function<void(std::size_t)>* body = nullptr;
  std::size_t tasks = 0, generation = 0, busy = 0;
  std::atomic<std::size_t> next{0};
  bool stop = false;

  void claim() {
    ParallelRegion region;
    for (std::size_t i = next++; i < tasks; i = next++) (*body)(i);
  }

  void work() {
    std::size_t seen = 0;
    std::unique_lock lock(mutex);
    while (true) {
      wake.wait(lock, [&] { return stop || generation != seen; });
      if (stop) return;
      seen = generation;
      lock.unlock();
      claim();
      lock.lock();
      if (--busy == 0) done.notify_one();
    }
  }
};

HostThreads::HostThreads(std::size_t threads) : state_(std::make_unique<State>()) {
  for (std::size_t i = 1; i < threads; ++i) state_->workers.emplace_back([this] { state_->work(); });
}

HostThreads::~HostThreads() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_all();
  for (std::thread& worker : state_->workers) worker.join();
}

std::size_t HostThreads::size() const { return state_->workers.size() + 1; }

void HostThreads::run(std::size_t tasks, const std::function<void(std::size_t)>& body) {
  State& s = *state_;
  if (ParallelRegion::active() || s.workers.empty() || tasks < 2) {
    ParallelRegion region;
    for (std::size_t i = 0; i < tasks; ++i) body(i);
    return;
  }
  {
    std::lock_guard lock(s.mutex);
    s.body = &body;
    s.tasks = tasks;
    s.next = 0;
    s.busy = s.workers.size();
    ++s.generation;
  }
  s.wake.notify_all();
  s.claim();
  std::unique_lock lock(s.mutex);
  s.done.wait(lock, [&] { return s.busy == 0; });
}

HostInvocation::HostInvocation(HostThreads& threads, std::vector<Tensor> inputs)
    : threads_(threads), inputs_(std::move(inputs)) {}

View HostInvocation::input(std::size_t i) const { return {inputs_[i].dtype(), inputs_[i].dims(), inputs_[i].data()}; }

HostInvocation::Block HostInvocation::allocate(std::size_t bytes) {
  const std::size_t size = std::max<std::size_t>((bytes + 63) / 64 * 64, 64);
  return {{static_cast<std::byte*>(std::aligned_alloc(64, size)), std::free}, size};
}

void* HostInvocation::output(std::size_t i, std::span<const std::int64_t> dims) {
  while (outputs_.size() <= i) outputs_.push_back({{}, allocate(0)});
  Output& out = outputs_[i];
  out.dims.assign(dims.begin(), dims.end());
  const std::size_t bytes = byte_count(DType::f32, dims);  // the widest that an op gives
  if (out.block.size < bytes) out.block = allocate(bytes);
  return out.block.bytes.get();
}

void HostInvocation::parallel(std::size_t tasks, const std::function<void(std::size_t)>& body) {
  threads_.run(tasks, body);
}

std::byte* HostInvocation::scratch(std::size_t bytes) {
  if (used_scratch_ == scratch_.size()) scratch_.push_back(allocate(bytes));
  Block& block = scratch_[used_scratch_++];
  if (block.size < bytes) block = allocate(bytes);
  return block.bytes.get();
}

Tensor HostInvocation::result(std::size_t i, DType dtype) const {
  const Output& out = outputs_.at(i);
  return Tensor::make(dtype, out.dims, [&](std::byte* bytes) {
    std::memcpy(bytes, out.block.bytes.get(), byte_count(dtype, out.dims));
  });
}

}  // namespace modelflow
