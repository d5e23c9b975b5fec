// The kernels of LSTM and GRU over whole sequences. x is multiplied for many time steps at once, h step by step with
// the gates and the new state still in registers. Directions, and sequences of a batch, are independent: each has a
// task from begin to end. Where there are too few of them and weights are many, the units of each step are shared
// instead.
#include <algorithm>

#include "backends/cpu/frame/share.h"
#include "backends/cpu/recurrent/kernels.h"
#include "backends/cpu/recurrent/run.h"

namespace modelflow::cpu {
namespace {

using ops::RecurrentAttrs;

/// How a run is shared: lanes of rows, or the units of every step.
struct Shares {
  std::size_t rows = 1;   ///< lanes of each direction
  std::size_t units = 1;  ///< tasks of each step; 1: a lane is one task
};

/// Rates of one core, measured on Cascade Lake: weights in its own L2, weights beyond it, arithmetic; and what it takes
/// to start a parallel loop.
constexpr double kNear = 60e9, kFar = 20e9, kFlops = 90e9, kLoop = 4e-6;

double step_seconds(double bytes, double rows, double l2) {
  const double flops = rows * bytes / 2;  // two for each float
  return std::max(bytes / (bytes < 0.75 * l2 ? kNear : kFar), flops / kFlops);
}

Shares shares_of(const RecurrentProblem& p, double step_bytes, double l2, std::size_t threads) {
  Shares best;
  if (threads == 1) return best;
  const auto batch = static_cast<double>(p.batch), dirs = static_cast<double>(p.dirs);
  const auto rounds = [&](std::size_t lanes) { return (p.dirs * lanes + threads - 1) / threads; };
  double least = static_cast<double>(rounds(1)) * step_seconds(step_bytes, batch, l2);
  for (std::size_t lanes = 2; lanes <= std::min(threads, p.batch); ++lanes) {
    const double seconds =
        static_cast<double>(rounds(lanes)) * step_seconds(step_bytes, batch / static_cast<double>(lanes), l2);
    if (seconds < 0.9 * least) least = seconds, best = {lanes, 1};
  }
  const auto parts = static_cast<double>(threads);
  const double loops = !p.attrs.lstm && !p.attrs.linear_before_reset ? 2 : 1;
  const double seconds = step_seconds(dirs * step_bytes / parts, batch, l2) + loops * kLoop;
  if (seconds < 0.8 * least) best = {1, std::min(threads, unit_blocks(p.hidden))};
  return best;
}

class Recurrent : public Implementation {
 public:
  Recurrent(const Call& call, const RecurrentCode& code, const Target& target)
      : attrs_(call), code_(code), weights_(call, code), l2_(static_cast<double>(target.l2)) {}

  void run(Invocation& call) const override {
    RecurrentProblem p(attrs_, call);
    p.allocate(call);
    if (p.batch == 0) return;
    const Shares shares =
        shares_of(p, weights_.step.packed_bytes + weights_.candidate.packed_bytes, l2_, call.threads());
    std::vector<RecurrentLane> lanes;
    for (std::size_t dir = 0; dir < p.dirs; ++dir)
      for (std::size_t i = 0; i < shares.rows; ++i)
        lanes.push_back({dir, p.batch * i / shares.rows, p.batch * (i + 1) / shares.rows});
    // Rows of x that share one reading of its weights.
    constexpr std::size_t kRows = 64;
    const std::size_t chunk =
        std::clamp<std::size_t>(kRows * shares.rows / p.batch, 1, std::max<std::size_t>(p.seq, 1));
    const std::size_t tasks = std::max(lanes.size(), call.threads() * 2);
    const RecurrentRun run(p, weights_, code_, chunk, tasks, call);
    if (shares.units == 1 && lanes.size() > 1) {
      call.parallel(lanes.size(), [&](std::size_t i) { whole(run, p.seq, lanes[i], i); });
    } else {
      together(run, p.seq, lanes, shares.units, call);
    }
  }

 private:
  static void whole(const RecurrentRun& run, std::size_t seq, const RecurrentLane& lane, std::size_t task) {
    run.begin(lane);
    for (std::size_t first = 0; first < seq; first += run.chunk()) {
      const std::size_t last = std::min(first + run.chunk(), seq);
      run.project(lane, first, last, 0, run.blocks(), task);
      for (std::size_t step = first; step < last; ++step)
        for (std::size_t pass = 0; pass < run.passes(); ++pass) run.step(lane, step, pass, 0, run.blocks(), task);
    }
    run.finish(lane);
  }

  /// Every chunk of x by all threads, then its steps by `units` tasks each.
  static void together(const RecurrentRun& run, std::size_t seq, const std::vector<RecurrentLane>& lanes,
                       std::size_t units, Invocation& call) {
    for (const RecurrentLane& lane : lanes) run.begin(lane);
    const std::size_t parts = std::min(call.threads() * 2, run.blocks());
    for (std::size_t first = 0; first < seq; first += run.chunk()) {
      const std::size_t last = std::min(first + run.chunk(), seq);
      share(call, run.blocks(), parts, [&](std::size_t begin, std::size_t end, std::size_t task) {
        for (const RecurrentLane& lane : lanes) run.project(lane, first, last, begin, end, task);
      });
      for (std::size_t step = first; step < last; ++step) {
        for (std::size_t pass = 0; pass < run.passes(); ++pass) {
          share(call, run.blocks(), units, [&](std::size_t begin, std::size_t end, std::size_t task) {
            for (const RecurrentLane& lane : lanes) run.step(lane, step, pass, begin, end, task);
          });
        }
      }
    }
    for (const RecurrentLane& lane : lanes) run.finish(lane);
  }

  RecurrentAttrs attrs_;
  const RecurrentCode& code_;
  RecurrentWeights weights_;
  double l2_;
};

/// `share`: of the peak that products reach where weights are near.
double cost_at(const Call& call, const Target& target, double share) {
  const RecurrentWork work = recurrent_work(call);
  const bool near = work.step_bytes < 0.75 * static_cast<double>(target.l2) * target.cores;
  const double weights =
      work.steps * work.step_bytes / ((near ? target.l2_bandwidth : 2 * target.bandwidth) * target.cores);
  return std::max(target.compute(work.flops, share), weights) + target.compute(work.gates * 12, std::min(share, 0.6)) +
         target.stream(work.bytes);
}

double vector_cost(const Call& call, const Target& target) { return cost_at(call, target, 0.6); }

std::unique_ptr<Implementation> create_avx512(const Call& call, const Target& target) {
  return std::make_unique<Recurrent>(call, recurrent_code_avx512, target);
}

std::unique_ptr<Implementation> create_any(const Call& call, const Target& target) {
  const bool avx2 = target.has(Isa::avx2);
  return std::make_unique<Recurrent>(call, avx2 ? recurrent_code_avx2 : recurrent_code_any, target);
}

std::unique_ptr<Implementation> create_vnni(const Call& call, const Target& target) {
  return std::make_unique<Recurrent>(call, recurrent_code_vnni, target);
}

std::unique_ptr<Implementation> create_avx_vnni(const Call& call, const Target& target) {
  return std::make_unique<Recurrent>(call, recurrent_code_quads_avx2, target);
}

std::unique_ptr<Implementation> create_avx2(const Call& call, const Target& target) {
  return std::make_unique<Recurrent>(call, recurrent_code_pairs_avx2, target);
}

std::unique_ptr<Implementation> create_steps(const Call& call, const Target& target) {
  return std::make_unique<Recurrent>(call, recurrent_code_steps, target);
}

/// 8-bit products: four times the rate of float32, less what rows in steps and gates take.
double vnni_cost(const Call& call, const Target& target) { return cost_at(call, target, 1.8); }
double pairs_cost(const Call& call, const Target& target) { return cost_at(call, target, 0.7); }
double steps_cost(const Call& call, const Target& target) { return cost_at(call, target, 0.05); }

}  // namespace

const Kernel lstm_avx512 = {.op = "LSTM",
                            .name = "cpu.lstm_avx512",
                            .needs = Isa::avx512,
                            .accepts = accepts_recurrent,
                            .cost = vector_cost,
                            .create = create_avx512};
const Kernel lstm_any = {.op = "LSTM",
                         .name = "cpu.lstm_any",
                         .needs = Isa::avx2,
                         .accepts = accepts_recurrent,
                         .cost = vector_cost,
                         .create = create_any};
const Kernel gru_avx512 = {.op = "GRU",
                           .name = "cpu.gru_avx512",
                           .needs = Isa::avx512,
                           .accepts = accepts_recurrent,
                           .cost = vector_cost,
                           .create = create_avx512};
const Kernel gru_any = {.op = "GRU",
                        .name = "cpu.gru_any",
                        .needs = Isa::avx2,
                        .accepts = accepts_recurrent,
                        .cost = vector_cost,
                        .create = create_any};

const Kernel qlstm_vnni = {.op = "QLSTM",
                           .name = "cpu.qlstm_vnni",
                           .needs = Isa::avx512_vnni,
                           .accepts = accepts_recurrent,
                           .cost = vnni_cost,
                           .create = create_vnni};
const Kernel qlstm_avx_vnni = {.op = "QLSTM",
                               .name = "cpu.qlstm_avx_vnni",
                               .needs = Isa::avx_vnni,
                               .accepts = accepts_recurrent,
                               .cost = vnni_cost,
                               .create = create_avx_vnni};
const Kernel qlstm_avx2 = {.op = "QLSTM",
                           .name = "cpu.qlstm_avx2",
                           .needs = Isa::avx2,
                           .accepts = accepts_recurrent,
                           .cost = pairs_cost,
                           .create = create_avx2};
const Kernel qlstm_any = {.op = "QLSTM",
                          .name = "cpu.qlstm_any",
                          .needs = Isa::avx2,
                          .accepts = accepts_recurrent,
                          .cost = steps_cost,
                          .create = create_steps};
const Kernel qgru_vnni = {.op = "QGRU",
                          .name = "cpu.qgru_vnni",
                          .needs = Isa::avx512_vnni,
                          .accepts = accepts_recurrent,
                          .cost = vnni_cost,
                          .create = create_vnni};
const Kernel qgru_avx_vnni = {.op = "QGRU",
                              .name = "cpu.qgru_avx_vnni",
                              .needs = Isa::avx_vnni,
                              .accepts = accepts_recurrent,
                              .cost = vnni_cost,
                              .create = create_avx_vnni};
const Kernel qgru_avx2 = {.op = "QGRU",
                          .name = "cpu.qgru_avx2",
                          .needs = Isa::avx2,
                          .accepts = accepts_recurrent,
                          .cost = pairs_cost,
                          .create = create_avx2};
const Kernel qgru_any = {.op = "QGRU",
                         .name = "cpu.qgru_any",
                         .needs = Isa::avx2,
                         .accepts = accepts_recurrent,
                         .cost = steps_cost,
                         .create = create_steps};

}  // namespace modelflow::cpu
