// One run of a recurrent layer: its memory, and the work of each time step.
#pragma once

#include "backends/cpu/recurrent/problem.h"
#include "backends/cpu/recurrent/weights.h"

namespace modelflow::cpu {

/// Some sequences of a batch in one direction.
struct RecurrentLane {
  std::size_t dir = 0, begin = 0, end = 0;
  std::size_t rows() const { return end - begin; }
};

/// Memory of a run, all of it in whole blocks of units.
struct RecurrentMemory {
  float* gates;         ///< [dirs, chunk, batch, blocks * gates * kUnits]
  float* h;             ///< [dirs, 2, batch, padded]: of an even step and of an odd one
  float* c;             ///< [dirs, batch, padded]
  float* reset;         ///< [dirs, batch, padded]: r * h
  std::uint8_t* steps;  ///< [tasks, step_bytes of the rows of a task]; int8 weights only
};

/// One run: what to do at one time step, for any share of the units and sequences. `chunk` steps of x are projected at
/// a time, so that their gates are still in L2 when they are used.
class RecurrentRun {
 public:
  RecurrentRun(const RecurrentProblem& problem, const RecurrentWeights& weights, const RecurrentCode& code,
               std::size_t chunk, std::size_t tasks, Invocation& call);

  std::size_t chunk() const { return chunk_; }
  std::size_t blocks() const { return blocks_; }

  /// Initial states into their places.
  void begin(const RecurrentLane& lane) const;
  /// Gates of the steps [first, last), the part that comes from x; `task` has its own scratch memory.
  void project(const RecurrentLane& lane, std::size_t first, std::size_t last, std::size_t begin, std::size_t end,
               std::size_t task) const;
  /// One step of a lane for the blocks [begin, end) of units. Where the reset comes first, pass 0 has to be complete
  /// for all of them before pass 1 begins; else there is only pass 0.
  void step(const RecurrentLane& lane, std::size_t step, std::size_t pass, std::size_t begin, std::size_t end,
            std::size_t task) const;
  std::size_t passes() const { return weights_.candidate.packed ? 2 : 1; }
  /// Final states to Y_h and Y_c.
  void finish(const RecurrentLane& lane) const;

 private:
  float* state(std::size_t step, std::size_t dir, std::size_t row) const {
    return memory_.h + (((dir * 2) + step % 2) * p_.batch + row) * padded_;
  }
  float* gates(std::size_t step, std::size_t dir, std::size_t row) const {
    return memory_.gates + ((dir * chunk_ + step % chunk_) * p_.batch + row) * gate_floats_;
  }
  RecurrentRow row(std::size_t step, std::size_t pass, std::size_t dir, std::size_t row) const;
  void quantize(RecurrentRow& row, std::size_t depth, std::size_t place, std::size_t task) const;

  const RecurrentProblem& p_;
  const RecurrentWeights& weights_;
  const RecurrentCode& code_;
  std::size_t chunk_, blocks_, padded_, gate_floats_, step_bytes_;
  RecurrentMemory memory_;
  RecurrentRow* rows_;  ///< [tasks, chunk * batch]
};

}  // namespace modelflow::cpu
