// A loop over the steps of sequences that an exporter has written out, told from what its steps have alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "modelflow/pass.h"

namespace modelflow::passes {

/// One value of each step; null behind the last step that has one: nothing reads it in those.
using Column = std::vector<Value*>;

/// Elementwise ops that are the same in all steps. What they read is a row of a sequence, a value from outside of the
/// loop, the result of another line, or a state: what some line was in the step before.
class UnrolledLoop {
 public:
  enum class Kind { sequence, constant, state, line };
  struct Operand {
    Kind kind;
    std::size_t index;
  };
  struct Sequence {
    Value* all;
    std::size_t axis;  ///< of time
  };
  struct State {
    Column before;         ///< before each step
    std::size_t next = 0;  ///< the line
  };
  struct Line {
    std::string op;
    std::vector<Operand> from;
    Column column;
  };

  explicit UnrolledLoop(std::int64_t opset) : opset_(opset) {}

  /// Reads the steps of which these are the results.
  Verdict read(const Column& results);

  const std::vector<Sequence>& sequences() const { return sequences_; }
  const std::vector<Value*>& constants() const { return constants_; }
  const std::vector<State>& states() const { return states_; }
  const std::vector<Line>& lines() const { return lines_; }
  /// Lines in an order in which each reads those in front of it.
  const std::vector<std::size_t>& order() const { return order_; }
  std::int64_t first() const { return first_; }  ///< row of the sequences that the first step reads
  /// The state behind the last step; null where nothing reads it.
  Value* last(const State& state) const { return lines_[state.next].column.back(); }
  /// No where a step is read outside: its `results` by nodes beside `stack`, or another value by any; what the last
  /// step hands on may be.
  Verdict is_apart(const Column& results, const std::unordered_set<const Node*>& stack) const;

 private:
  std::optional<Operand> find(const Column& column);
  std::optional<Operand> read_column(const Column& column);
  std::optional<Operand> read_line(const Column& column);
  std::optional<Operand> add_sequence(const Column& column);
  std::optional<Operand> add_state(const Column& column);
  void complete();
  Value* made_in(const Line& line, std::size_t step) const;
  bool is_value_of(Value& value, const Operand& operand, std::size_t step) const;

  std::int64_t opset_, first_ = 0;
  std::vector<Sequence> sequences_;
  std::vector<Value*> constants_;
  std::vector<State> states_;
  std::vector<Line> lines_;
  std::vector<std::size_t> order_, open_;  ///< open_: states whose next line is not read yet
  std::string why_;
};

}  // namespace modelflow::passes
