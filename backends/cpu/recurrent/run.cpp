// The work of each time step of a recurrent layer: projecting x, multiplying h, and initial and last states.
#include "backends/cpu/recurrent/run.h"

#include <algorithm>
#include <limits>

namespace modelflow::cpu {

RecurrentRun::RecurrentRun(const RecurrentProblem& problem, const RecurrentWeights& weights, const RecurrentCode& code,
                           std::size_t chunk, std::size_t tasks, Invocation& call)
    : p_(problem),
      weights_(weights),
      code_(code),
      chunk_(chunk),
      blocks_(unit_blocks(problem.hidden)),
      padded_(blocks_ * kUnits),
      gate_floats_(padded_ * weights.project.matrix.gates),
      step_bytes_(code.step_bytes ? code.step_bytes(std::max(problem.input, padded_)) : 0) {
  constexpr double kMost = 1e15;  // bytes: more would not even be counted right
  if (static_cast<double>(p_.dirs * chunk_) * static_cast<double>(p_.batch) * static_cast<double>(gate_floats_) > kMost)
    throw Error(ErrorKind::unsupported, "a recurrent layer of " + std::to_string(p_.batch) + " rows is too large");
  const std::size_t states = p_.dirs * p_.batch * padded_, most_rows = chunk_ * p_.batch;
  const auto floats = [&](std::size_t count) { return reinterpret_cast<float*>(call.scratch(count * sizeof(float))); };
  memory_.gates = floats(p_.dirs * chunk_ * p_.batch * gate_floats_);
  memory_.h = floats(2 * states);
  memory_.c = p_.attrs.lstm ? floats(states) : nullptr;
  memory_.reset = passes() == 2 ? floats(states) : nullptr;
  memory_.steps = reinterpret_cast<std::uint8_t*>(call.scratch(tasks * most_rows * step_bytes_));
  rows_ = reinterpret_cast<RecurrentRow*>(call.scratch(tasks * most_rows * sizeof(RecurrentRow)));
}

void RecurrentRun::begin(const RecurrentLane& lane) const {
  for (std::size_t row = lane.begin; row < lane.end; ++row) {
    const std::size_t from = p_.state_at(lane.dir, row);
    float* h = state(0, lane.dir, row);
    std::fill_n(h, padded_, 0.0f);
    if (p_.initial_h) std::copy_n(p_.initial_h + from, p_.hidden, h);
    if (!memory_.c) continue;
    float* c = memory_.c + (lane.dir * p_.batch + row) * padded_;
    std::fill_n(c, padded_, 0.0f);
    if (p_.initial_c) std::copy_n(p_.initial_c + from, p_.hidden, c);
  }
}

void RecurrentRun::quantize(RecurrentRow& row, std::size_t depth, std::size_t place, std::size_t task) const {
  std::uint8_t* steps = memory_.steps + (task * chunk_ * p_.batch + place) * step_bytes_;
  row.unit = code_.quantize(row.in, depth, steps);
  row.steps = steps;
}

void RecurrentRun::project(const RecurrentLane& lane, std::size_t first, std::size_t last, std::size_t begin,
                           std::size_t end, std::size_t task) const {
  RecurrentRow* rows = rows_ + task * chunk_ * p_.batch;
  std::size_t count = 0;
  for (std::size_t step = first; step < last; ++step) {
    for (std::size_t row = lane.begin; row < lane.end; ++row) {
      if (step >= p_.length(row)) continue;
      RecurrentRow made;
      made.in = p_.x_row(p_.time(step, lane.dir, row), row);
      made.gates = gates(step, lane.dir, row);
      if (code_.quantize) quantize(made, p_.input, count, task);
      rows[count++] = made;
    }
  }
  RecurrentPart part = weights_.project.part(lane.dir);
  part.rows = rows;
  part.count = count;
  part.begin = begin;
  part.end = end;
  (p_.attrs.lstm ? code_.project_lstm : code_.project_gru)(part);
}

RecurrentRow RecurrentRun::row(std::size_t step, std::size_t pass, std::size_t dir, std::size_t row) const {
  RecurrentRow made;
  const std::size_t at = (dir * p_.batch + row) * padded_;
  made.in = made.h = state(step, dir, row);
  made.next = state(step + 1, dir, row);
  made.gates = gates(step, dir, row);
  made.c = memory_.c ? memory_.c + at : nullptr;
  made.y = p_.y_row(p_.time(step, dir, row), dir, row);
  if (passes() == 1) return made;
  if (pass == 0) {
    made.next = memory_.reset + at;
    made.y = nullptr;
  } else {
    made.in = memory_.reset + at;
  }
  return made;
}

void RecurrentRun::step(const RecurrentLane& lane, std::size_t step, std::size_t pass, std::size_t begin,
                        std::size_t end, std::size_t task) const {
  RecurrentRow* rows = rows_ + task * chunk_ * p_.batch;
  std::size_t count = 0;
  for (std::size_t i = lane.begin; i < lane.end; ++i) {
    if (step >= p_.length(i)) continue;
    RecurrentRow made = row(step, pass, lane.dir, i);
    if (code_.quantize) quantize(made, p_.hidden, count, task);
    rows[count++] = made;
  }
  RecurrentPart part = (pass ? weights_.candidate : weights_.step).part(lane.dir);
  part.rows = rows;
  part.count = count;
  part.begin = begin;
  part.end = end;
  part.backwards = step % 2 != 0;
  part.clip = p_.attrs.clip > 0 ? p_.attrs.clip : std::numeric_limits<float>::infinity();
  const auto run = p_.attrs.lstm   ? code_.lstm
                   : passes() == 1 ? code_.gru
                   : pass          ? code_.gru_candidate
                                   : code_.gru_gates;
  run(part);
}

// A row of length 0 has no last state, whatever the initial one is: zeros, as in ONNX Runtime.
void RecurrentRun::finish(const RecurrentLane& lane) const {
  for (std::size_t row = lane.begin; row < lane.end; ++row) {
    const std::size_t to = p_.state_at(lane.dir, row);
    if (p_.lengths && p_.length(row) == 0) {
      if (p_.y_h) std::fill_n(p_.y_h + to, p_.hidden, 0.0f);
      if (p_.y_c) std::fill_n(p_.y_c + to, p_.hidden, 0.0f);
      continue;
    }
    if (p_.y_h) std::copy_n(state(p_.length(row), lane.dir, row), p_.hidden, p_.y_h + to);
    if (p_.y_c) std::copy_n(memory_.c + (lane.dir * p_.batch + row) * padded_, p_.hidden, p_.y_c + to);
  }
}

}  // namespace modelflow::cpu
