// Runs the threads of a block in turns, until all have returned or none can go on.
#include "backends/cuda/emulator/block.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/emulator/fiber.h"
#include "backends/cuda/launches/shared_memory.h"

namespace modelflow::cuda::emulated {
namespace {

enum class State { runnable, at_barrier, in_warp, done };

struct Copy {
  void* to;
  const void* from;
  unsigned bytes, all;
  int group;
};

struct Thread {
  Fiber fiber;
  uint3 index{};
  State state = State::runnable;
  unsigned mask = 0;
  Combine combine = nullptr;
  void* mine = nullptr;
  const char* what = "";
  std::vector<Copy> copies;
  int group = 0;
};

struct Block {
  std::vector<Thread> threads;
  std::size_t count = 0;
  Thread* now = nullptr;
  Context scheduler;
  Position position;
  const std::function<void()>* body = nullptr;
  std::mt19937 random;
  std::exception_ptr error;
  std::vector<std::byte> shared;
  char at_barrier = 0, before = 0, after = 0;  // addresses of happens-before edges
  char warps[32] = {};
  std::string message;
};
// A device runs many blocks at once; so may host threads.
thread_local Block block;

void pause(bool last = false) { block.now->fiber.leave(block.scheduler, last); }

void enter() {
  Fiber::arrived(block.scheduler);
  acquire(&block.before);
  try {
    (*block.body)();
  } catch (...) {
    if (!block.error) block.error = std::current_exception();
  }
  block.now->state = State::done;
  release(&block.after);
  pause(true);
}

void prepare(Thread& thread, const dim3& size, unsigned i) {
  thread.fiber.prepare(enter);
  thread.index = {i % size.x, i / size.x % size.y, i / (size.x * size.y)};
  thread.state = State::runnable;
  thread.copies.clear();
  thread.group = 0;
}

std::string where(const Thread& thread) {
  std::string text = "thread (" + std::to_string(thread.index.x) + ", " + std::to_string(thread.index.y) + ", " +
                     std::to_string(thread.index.z) + ") ";
  if (thread.state == State::done) return text + "has returned";
  return text + "waits in " + (thread.state == State::at_barrier ? "__syncthreads" : thread.what);
}

[[noreturn]] void refuse_to_wait() {
  std::string text = "threads wait for one another:";
  for (std::size_t i = 0, said = 0; i < block.count && said < 4; ++i) {
    if (i > 0 && block.threads[i].state == block.threads[i - 1].state) continue;
    text += " " + where(block.threads[i]) + ";";
    ++said;
  }
  throw std::logic_error(text);
}

/// A thread that has returned does not hold up a barrier.
bool open_barrier(std::size_t done) {
  std::size_t waiting = 0;
  for (std::size_t i = 0; i < block.count; ++i) waiting += block.threads[i].state == State::at_barrier ? 1 : 0;
  if (waiting == 0 || waiting + done != block.count) return false;
  for (std::size_t i = 0; i < block.count; ++i)
    if (block.threads[i].state == State::at_barrier) block.threads[i].state = State::runnable;
  return true;
}

/// The order in which threads take turns: forward, backward or shuffled. What is right does not depend on it.
std::string_view order() {
  static const char* const given = std::getenv("MODELFLOW_EMULATOR_ORDER");
  return given ? given : "forward";
}

void land(const Copy& copy) {
  std::memset(copy.to, 0, copy.all);
  if (copy.bytes > 0) std::memcpy(copy.to, copy.from, copy.bytes);
}

void run_block(unsigned turn) {
  std::vector<std::size_t> line(block.count);
  std::iota(line.begin(), line.end(), 0);
  if (order() == "backward") std::ranges::reverse(line);
  block.random.seed(turn);
  for (std::size_t done = 0; done < block.count;) {
    if (order() == "shuffled") std::ranges::shuffle(line, block.random);
    bool moved = false;
    for (const std::size_t i : line) {
      Thread& thread = block.threads[i];
      if (thread.state != State::runnable) continue;
      moved = true;
      block.now = &thread;
      block.position.thread = thread.index;
      thread.fiber.resume(block.scheduler);
      if (thread.state == State::done) ++done;
    }
    if (block.error) std::rethrow_exception(block.error);
    if (!open_barrier(done) && !moved) refuse_to_wait();
  }
}

/// Along y and z: a device takes 65535, this one so few that tests meet the end.
constexpr unsigned kMostBlocksAside = 64;

void run_grid(dim3 grid, dim3 size, unsigned shared) {
  block.count = std::size_t{size.x} * size.y * size.z;
  constexpr std::int64_t kMostShared = 227 << 10;
  if (block.count == 0 || block.count > 1024 || !fits_shared(shared, kMostShared) || grid.x == 0 || grid.y == 0 ||
      grid.z == 0 || grid.y > kMostBlocksAside || grid.z > kMostBlocksAside)
    throw std::invalid_argument("invalid configuration argument");
  if (block.threads.size() < block.count) block.threads.resize(block.count);
  block.position.block_size = size;
  block.position.grid_size = grid;
  unsigned turn = 0;
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        block.position.block = {x, y, z};
        std::vector<std::byte>(shared, std::byte{0xcd}).swap(block.shared);  // nothing of the block before
        for (unsigned i = 0; i < block.count; ++i) prepare(block.threads[i], size, i);
        release(&block.before);
        run_block(turn++);
        acquire(&block.after);
      }
}

}  // namespace

const Position& here() { return block.position; }

int lane() {
  const Position& at = block.position;
  return static_cast<int>((at.thread.x + at.block_size.x * (at.thread.y + at.block_size.y * at.thread.z)) % 32);
}

void* dynamic_shared() { return block.shared.data(); }

const char* run(dim3 grid, dim3 size, unsigned shared, const std::function<void()>& thread) {
  block.body = &thread;
  block.error = nullptr;
  try {
    run_grid(grid, size, shared);
    return nullptr;
  } catch (const std::exception& error) {
    block.message = error.what();
    block.threads.clear();  // stacks that nobody returned from
    return block.message.c_str();
  }
}

void barrier() {
  block.now->state = State::at_barrier;
  release(&block.at_barrier);
  pause();
  acquire(&block.at_barrier);
}

void meet(unsigned mask, Combine combine, void* mine, const char* what) {
  Thread& self = *block.now;
  const auto index = static_cast<std::size_t>(&self - block.threads.data()), first = index / 32 * 32;
  if (!(mask >> (index % 32) & 1U)) throw std::logic_error(std::string(what) + ": a thread is not in its own mask");
  self.mask = mask;
  self.combine = combine;
  self.mine = mine;
  self.what = what;
  void* lanes[32] = {};
  bool all = true;
  for (std::size_t i = 0; i < 32 && all; ++i) {
    if (!(mask >> i & 1U)) continue;
    if (first + i >= block.count)
      throw std::logic_error(std::string(what) + ": the mask names lanes that are not there");
    const Thread& other = block.threads[first + i];
    lanes[i] = other.mine;
    all = &other == &self || (other.state == State::in_warp && other.mask == mask && other.combine == combine);
  }
  release(&block.warps[first / 32]);
  if (all) {
    acquire(&block.warps[first / 32]);
    combine(lanes, mask);
    for (std::size_t i = 0; i < 32; ++i)
      if (mask >> i & 1U) block.threads[first + i].state = State::runnable;
    release(&block.warps[first / 32]);
  } else {
    self.state = State::in_warp;
    pause();
    acquire(&block.warps[first / 32]);
  }
}

void check_aligned(const void* at, unsigned bytes, const char* what) {
  if (reinterpret_cast<std::uintptr_t>(at) % bytes != 0)
    throw std::logic_error(std::string(what) + ": an address is no multiple of " + std::to_string(bytes));
}

void copy_async(void* to, const void* from, unsigned bytes, unsigned all) {
  check_aligned(to, all, "cp.async");
  if (bytes > 0) check_aligned(from, all, "cp.async");
  const Copy copy{to, from, bytes, all, block.now->group};
  if (order() == "shuffled" && block.random() % 2 == 0) return land(copy);
  block.now->copies.push_back(copy);
}

void copy_async_commit() { ++block.now->group; }

void copy_async_wait(int pending) {
  Thread& self = *block.now;
  std::erase_if(self.copies, [&](const Copy& copy) {
    if (copy.group >= self.group - pending) return false;
    land(copy);
    return true;
  });
}

}  // namespace modelflow::cuda::emulated
