// Models put together and cut down: several become one, inputs become constants, outputs are chosen.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "modelflow/kernel.h"
#include "modelflow/model.h"
#include "modelflow/modelflow.h"
#include "modelflow/runtime.h"

namespace modelflow {

/// A model on its way into another one, and the name that it goes by there: "encoder" of "encoder.hidden".
struct Part {
  std::string name;
  Model model;
};

/// What one part computes, or is given, goes into an input of another one. `from` is an output or an input of its part:
/// an input is then given once, for both.
struct Edge {
  std::string from_part, from, to_part, to;
};

/// Where the inputs and outputs of a merged model come from.
struct Joint {
  std::string name;  ///< of the merged model; of an edge what it is inside
  Type type;
  std::string from;             ///< "encoder.hidden"; of an input that several parts take, the first
  std::vector<std::string> to;  ///< the inputs that take it
};

struct Merged {
  Model model;
  std::vector<Joint> inputs, edges, outputs;
  std::vector<std::string> notes;  ///< opsets that were raised, names that were taken twice, functions written out
  /// One line for each input, edge and output: what goes where.
  std::string signature() const;
};

/// Several models as one that computes what they compute in turn. Without edges, what has the same name goes from an
/// earlier part into a later one; where nothing has, the only output into the only input of the next one. The opset is
/// the newest of theirs. Names of inputs and outputs stay where only one part has them, else they read "part.name"; so
/// do names of dynamic dims. A result that another part takes is an output no more (keep_outputs brings it back).
/// Weights that a part before IR 4 lists as inputs are none of the whole, unless an edge names them. Metadata of all
/// parts is kept. Throws Error(usage) for edges that name nothing or cannot fit, Error(unsupported) for what cannot be
/// brought together.
Merged merge(std::vector<Part> parts, const std::vector<Edge>& edges = {});

/// What came of running the parts in turn beside the whole.
struct MergeCheck {
  std::size_t feeds = 0;  ///< sets of inputs that were compared
  double max_rel = 0;     ///< the largest difference: 0 but where an opset was raised to an operator of another kind
  std::string why_not;    ///< where none was
  std::set<std::string> random = {};  ///< outputs that are not compared: runs of the parts differ in them as well

  std::string text() const;  ///< a line for people
};

/// Runs the parts and what was merged from them on Options::inputs, or on made-up ones (Options::input_shapes), with
/// Options::threads, and tells Options::progress. Throws Error(verification) where they differ in an output that is not
/// random, or where ONNX Runtime runs the parts and not the whole.
MergeCheck check_merge(Runtime& runtime, const std::vector<Part>& parts, const Merged& merged, const Options& options);
/// The same in the ONNX Runtime that is found, with Options::custom_ops; why_not says where there is none.
MergeCheck check_merge(const std::vector<Part>& parts, const Merged& merged, const Options& options);

/// "encoder.hidden=decoder.memory", for models of these names; names may hold dots and equals signs themselves. Throws
/// Error(usage) that says what there is.
Edge parse_edge(std::string_view text, const std::vector<Part>& parts);

/// From an output to the only input of another part that takes it. Throws Error(usage) where none does, or several.
Edge fitting_edge(const Part& from, const std::string& output, const Part& to);

/// These inputs become constants. Throws Error(usage) for what is no input, or of another type or shape.
Model bind_inputs(Model model, const Feeds& values);
/// "sr=16000", "state=0", "scale=1,2,3" or "flag=true" for an input with known extents, which one number fills, or the
/// name of an .npz file with an array for each input to be bound. Throws Error(usage).
Feeds parse_bind(const Model& model, std::string_view text);

/// Only these results, in this order, inner values of the main graph among them. Inputs that nothing reads any more go
/// as well. Throws Error(usage).
Model keep_outputs(Model model, const std::vector<std::string>& outputs);
/// All but these.
Model drop_outputs(Model model, const std::vector<std::string>& outputs);

/// The same model in the form of a newer opset, in place; a refusal, with the node, leaves it as it was. Opsets from 7
/// on. Types of values must be known (infer_types).
Verdict raise_opset(Model& model, std::int64_t opset);

}  // namespace modelflow
