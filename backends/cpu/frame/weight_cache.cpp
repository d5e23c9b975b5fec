// The cache of packed weights: an entry for each tensor and layout, freed with its last holder.
#include "backends/cpu/frame/weight_cache.h"

#include <map>
#include <mutex>
#include <random>

#include "backends/cpu/frame/mapped_weights.h"
#include "backends/cpu/frame/weight_memory.h"

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
  std::shared_ptr<std::byte> memory = weight_memory(bytes);
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
