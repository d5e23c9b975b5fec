// The operands of a generated call: shapes and numbers, drawn from a seed.
#pragma once

#include <deque>

#include "modelflow/kernel.h"

namespace modelflow::domains {

/// A kind of numbers that some elements of float operands take.
enum class Special { none, nan, infinite, huge, largest, tiny };

class Operands {
 public:
  Operands(std::uint64_t seed, Special special) : state_(seed), special_(special) {}

  Call call;
  Special special() const { return special_; }
  /// One for each input of the call.
  const std::deque<Tensor>& values() const { return values_; }

  /// What a runtime gives at each run; some of it special.
  void feed(const char* name, Tensor value) { add(name, spoiled(std::move(value)), false); }
  /// The same as it is: scales, ids, lengths.
  void feed_as_is(const char* name, Tensor value) { add(name, std::move(value), false); }
  /// Weights, which a kernel may read when it is made; `is` false: it gets them at each run.
  void constant(const char* name, Tensor value, bool is = true) { add(name, std::move(value), is); }

  Tensor normal(const Dims& dims, float deviation = 1);
  /// Whose products over `depth` of them end near one.
  Tensor weights(const Dims& dims, std::int64_t depth);
  /// Between low and high.
  Tensor uniform(const Dims& dims, float low, float high);
  Tensor bytes(const Dims& dims);
  Tensor steps(const Dims& dims, int largest = 127);  ///< int8, -largest to largest
  Tensor integers(const Dims& dims, int size);
  Tensor flags(const Dims& dims, double share);
  /// Ids of `rows` rows, counted from either end.
  Tensor ids(const Dims& dims, std::int64_t rows, bool narrow);
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)); }
  bool chance(double share) { return static_cast<double>(random() >> 11) * 0x1p-53 < share; }

 private:
  void add(const char* name, Tensor value, bool constant);
  Tensor spoiled(Tensor value);

  std::uint64_t random() {
    std::uint64_t bits = state_ += 0x9e3779b97f4a7c15;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
  }

  /// Of SplitMix64 (Steele, Lea, Flood 2014): the standard library's engines took most of the tests' time.
  std::uint64_t state_;
  Special special_;
  std::deque<Tensor> values_;  // calls point into it
};

}  // namespace modelflow::domains
