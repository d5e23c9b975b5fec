// What is random in a generated model: everything follows from one number.
#pragma once

#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

namespace modelflow::fuzz {

/// The numbers of one seed, the same ones on every machine: std::uniform_*_distribution differs between libraries.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15ULL + 0x632be59bd9b4e019ULL) {}

  std::uint64_t bits() { return random_(); }
  /// 0 .. count-1.
  std::size_t below(std::size_t count) { return count ? static_cast<std::size_t>(random_() % count) : 0; }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::size_t>(high - low + 1)));
  }
  double uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  bool chance(double share) { return uniform() < share; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }
  template <class T>
  T any(std::initializer_list<T> from) {
    return from.begin()[below(from.size())];
  }
  template <class T>
  void shuffle(std::vector<T>& list) {
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[below(i)]);
  }

 private:
  std::mt19937_64 random_;
};

/// One number from a seed and a text (FNV-1a): values of an input stay what they are while a model shrinks around it.
inline std::uint64_t seed_of(std::uint64_t seed, std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL ^ (seed * 0x9e3779b97f4a7c15ULL >> 7);
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

}  // namespace modelflow::fuzz
