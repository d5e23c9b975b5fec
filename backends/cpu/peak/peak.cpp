// How many operations per second this machine makes at most, measured with loops of multiplications and additions.
#include "src/core/peak.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "backends/cpu/peak/spin.h"
#include "backends/vector_registers.h"
#include "modelflow/target.h"

namespace modelflow {
namespace {

using Clock = std::chrono::steady_clock;
/// Gives the number of operations in so many rounds.
using Spin = double (*)(std::size_t rounds);

double spin_baseline(std::size_t rounds) {
  using Lanes = float __attribute__((vector_size(16)));
  const Lanes half = {0.5f, 0.5f, 0.5f, 0.5f};
  return cpu::spin(rounds, half, 2 * 4, [half](Lanes sum) { return sum * half + half; });
}

double seconds_of(Spin spin, std::size_t rounds, int threads, double& operations) {
  std::vector<double> done(static_cast<std::size_t>(threads));
  const auto start = Clock::now();
  {
    const VectorRegisters registers;
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < done.size(); ++i) others.emplace_back([&, i] { done[i] = spin(rounds); });
    done[0] = spin(rounds);
  }
  operations = 0;
  for (const double count : done) operations += count;
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The best of some runs of ten milliseconds: more rounds until they take that long, also when the first ones were
/// interrupted; the clock is where such code lets it be by then.
double rate(Spin spin, int threads) {
  constexpr double kLong = 0.01;
  double operations = 0, best = 0;
  std::size_t rounds = 1000;
  for (int runs = 0; runs < 5;) {
    const double seconds = seconds_of(spin, rounds, threads, operations);
    best = std::max(best, operations / seconds);
    seconds < kLong ? rounds *= 2 : ++runs;
  }
  return best;
}

/// In turns, the best of each: runs are shorter than what the scheduler gives at once.
bool avx512_does_more() {
  constexpr std::size_t kRounds = 20000;
  constexpr double kMore = 1.3;  // measured: 1.6 to 2.1 with two units, on a busy machine too; one gives 1
  double narrow = 0, wide = 0, operations = 0;
  for (int turn = 0; turn < 8; ++turn) {
    const double narrow_seconds = seconds_of(cpu::spin_avx2, kRounds, 1, operations);
    narrow = std::max(narrow, operations / narrow_seconds);
    const double wide_seconds = seconds_of(cpu::spin_avx512, kRounds, 1, operations);
    wide = std::max(wide, operations / wide_seconds);
  }
  return wide > kMore * narrow;
}

}  // namespace

Target with_measured_units(Target target) {
  if (!target.is_host() || !target.has(Isa::avx512)) return target;
  static const bool more = avx512_does_more();
  if (!more) target.flops /= 2;
  return target;
}

Peak measure_peak(int threads) {
  const IsaSet isas = host_isas();
  const Spin floats = isas.has(Isa::avx512) ? cpu::spin_avx512 : isas.has(Isa::avx2) ? cpu::spin_avx2 : spin_baseline;
  const double float32 = rate(floats, threads);
  if (isas.has(Isa::amx)) return {float32, rate(cpu::spin_bf16_amx, threads), rate(cpu::spin_bytes_amx, threads)};
  return {float32, float32, isas.has(Isa::avx512_vnni) ? rate(cpu::spin_vnni, threads) : float32};
}

}  // namespace modelflow
