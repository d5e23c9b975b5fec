// The cache of packed weights: an entry for each tensor and layout, freed with its last holder.
#include "backends/cpu/frame/weight_cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <random>

#include "backends/cpu/frame/mapped_weights.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace modelflow::cpu {
namespace {

struct Entry {
  std::mutex packing;
  std::weak_ptr<const std::byte> bytes;
};

struct Cache {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Entry>> entries;
};

// Leaked on purpose: kernels may be destroyed after static destructors ran.
Cache& cache() {
  static Cache* instance = new Cache;
  return *instance;
}

std::string key_of(const Tensor& weights, const std::string& layout) {
  std::string key = fingerprint(weights) + "/" + std::to_string(static_cast<int>(weights.dtype()));
  for (const std::int64_t dim : weights.dims()) key += "," + std::to_string(dim);
  return key + "/" + layout;
}

void forget(const std::string& key) {
  std::lock_guard lock(cache().mutex);
  const auto found = cache().entries.find(key);
  // A use count above one: another thread is packing the same weights again.
  if (found != cache().entries.end() && found->second.use_count() == 1 && found->second->bytes.expired()) {
    cache().entries.erase(found);
  }
}

}  // namespace

std::string fingerprint(const Tensor& tensor) {
  static const std::uint64_t seed = (static_cast<std::uint64_t>(std::random_device{}()) << 32) | std::random_device{}();
  const XXH128_hash_t digest = XXH3_128bits_withSeed(tensor.data(), tensor.bytes(), seed);
  return std::to_string(digest.high64) + "." + std::to_string(digest.low64);
}

std::shared_ptr<std::byte> aligned_bytes(std::size_t bytes) {
  constexpr std::size_t kHugePage = 2 << 20;
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : 64;
  // Rounded to pages only: huge pages that are filled in part would cost memory, many weights are little above 2 MiB.
  const std::size_t size = std::max<std::size_t>((bytes + 4095) / 4096 * 4096, 4096);
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, size) != 0)
    throw Error(ErrorKind::limit, "no memory for " + std::to_string(bytes) + " bytes of packed weights");
  // Packed weights are streamed by every run: huge pages save TLB misses.
  if (alignment == kHugePage) madvise(memory, size, MADV_HUGEPAGE);
  return {static_cast<std::byte*>(memory), std::free};
}

std::shared_ptr<const std::byte> packed_weights(const Tensor& weights, const std::string& layout, std::size_t bytes,
                                                const std::function<void(std::byte*)>& pack) {
  const std::string key = key_of(weights, layout);
  std::shared_ptr<Entry> entry;
  {
    std::lock_guard lock(cache().mutex);
    std::shared_ptr<Entry>& slot = cache().entries[key];
    if (!slot) slot = std::make_shared<Entry>();
    entry = slot;
  }
  std::lock_guard lock(entry->packing);
  if (std::shared_ptr<const std::byte> ready = entry->bytes.lock()) {
    release_mapped(weights.data(), weights.bytes());
    return ready;
  }
  std::shared_ptr<std::byte> memory = aligned_bytes(bytes);
  pack(memory.get());
  release_mapped(weights.data(), weights.bytes());
  std::shared_ptr<const std::byte> shared(memory.get(), [memory, key](const std::byte*) mutable {
    memory.reset();
    forget(key);
  });
  entry->bytes = shared;
  return shared;
}

}  // namespace modelflow::cpu
