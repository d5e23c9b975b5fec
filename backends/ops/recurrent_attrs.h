// The attributes of LSTM and GRU, and of their int8 forms.
#pragma once

#include <string>

#include "modelflow/kernel.h"

namespace modelflow::ops {

/// The attributes of LSTM and GRU, and of QLSTM and QGRU. Throws Error(invalid_input) when they contradict each other.
///
/// Inputs: x [seq, batch, input] (x_layout SBI) or [batch, seq, input] (BSI); w [dirs, gates * hidden, input];
/// r [dirs, gates * hidden, hidden]; where the attributes say so, w_scale and r_scale [dirs, gates * hidden] (int8
/// weights), b [dirs, 2 * gates * hidden], lengths [batch] (whole numbers in float32), initial_h and, for LSTM,
/// initial_c [dirs, batch, hidden]. Gates stand in the order of ONNX: i, o, f, c and z, r, h.
///
/// Outputs, those that `outputs` names: Y [seq, dirs, batch, hidden] (y_layout SDBH), or its axes in the order SBDH or
/// BSDH; Y_h and Y_c [dirs, batch, hidden].
struct RecurrentAttrs {
  explicit RecurrentAttrs(const Call& call);

  bool lstm, quantized;
  bool reverse, bidirectional;
  bool has_bias, has_lengths, has_state;
  bool linear_before_reset;
  bool x_batch_first;
  std::string y_layout;
  bool y, y_h, y_c;  ///< which outputs there are
  float clip;        ///< 0: none
  std::int64_t hidden;

  std::int64_t gates() const { return lstm ? 4 : 3; }
  std::int64_t dirs() const { return bidirectional ? 2 : 1; }
  std::size_t outputs() const { return std::size_t{y} + y_h + y_c; }
  std::size_t inputs() const;
  bool y_batch_first() const { return y_layout.starts_with('B'); }
  bool y_joined() const { return y_layout.size() == 3; }
  std::size_t bias_index() const { return quantized ? 5 : 3; }
  std::size_t lengths_index() const { return bias_index() + has_bias; }
  std::size_t state_index() const { return lengths_index() + has_lengths; }
};

/// Shapes of the outputs; a no when attributes and inputs contradict each other.
Verdict infer_recurrent(Call& call);

std::vector<Call> lstm_samples();
std::vector<Call> gru_samples();
std::vector<Call> qlstm_samples();
std::vector<Call> qgru_samples();

}  // namespace modelflow::ops
