// A run that may end the process, tried in one of its own.
#pragma once

#include "modelflow/limits.h"
#include "modelflow/model.h"
#include "src/verify/session.h"

namespace modelflow {

class ModelFolder;

/// Whether some input has no elements.
bool has_empty_input(const Feeds& feeds);

/// What inference tells of a run before it begins. `empty`: an input, or a value that is computed from the inputs, has
/// no elements (ONNX Runtime, 1.31 still, divides by such extents in some ops (Einsum, LSTM), which ends the process),
/// or the shapes contradict each other. `contradicts`: the parts of a Concat do, which ONNX Runtime lets pass where
/// they have no elements, or something asks for the shape of a reduction of nothing, which ONNX Runtime makes up.
/// `recurrence_of_nothing`: a recurrent layer may get such a value. `largest`, `all`: elements of the largest value and
/// of all together, as far as they are known.
struct Outlook {
  bool empty = false, contradicts = false, recurrence_of_nothing = false;
  double largest = 0, all = 0;
  std::vector<Shape> outputs = {};  ///< of the model, as far as they are known
};
Outlook outlook(const Model& model, const Feeds& feeds);

/// Whether a process would survive loading this model and running it, whatever comes out. Asks a forked one, which ends
/// with this one. Throws Error(limit) where that takes more than the memory of the limits.
bool survives(const Sessions& sessions, const Model& model, const Feeds& feeds, const SessionOptions& session,
              const Limits& limits);

}  // namespace modelflow
