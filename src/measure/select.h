// Selection: which form of a model is kept.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "modelflow/model.h"
#include "modelflow/modelflow.h"
#include "modelflow/report.h"
#include "src/measure/timing.h"

namespace modelflow {

/// More rounds would not change what becomes of a whole model.
bool is_decided(const Timing& timing);

/// What selection needs from its caller.
struct SelectTools {
  /// A model with fused nodes in plain layout -> layout and clean-up done, fused nodes still fused.
  std::function<Model(Model fused)> lay_out;
  /// Fused nodes -> local functions: what ONNX Runtime loads.
  std::function<Model(Model laid_out)> emit;
  TimeModels time;  ///< whole models
  /// Seconds of the stock and of the fused form of each region (in this order); absent where it cannot be measured.
  std::function<std::vector<Timing>(const Model& laid_out)> time_regions;
  double budget = 60;                        ///< seconds, where runs take little of it
  double max_seconds = 600;                  ///< after which no other form is tried
  std::map<std::string, Dims> typical = {};  ///< extents of the inputs, for costs
};

/// The forms of one model between which the clock decides.
struct Forms {
  const Model& original;
  const Model& portable;  ///< clean-ups only
  const Model& fused;     ///< everything fused, before layout
};

/// What was chosen; `whole`: everything stayed fused, so that it is the very model that was verified before.
struct Selected {
  Model model;
  bool whole = false;
  bool original = false;  ///< nothing was: it is the model that came
};

/// The fastest form that is not slower than stock ONNX Runtime runs the original: everything fused, less the regions
/// that are slower fused; else only some kinds of fused nodes; else clean-ups only; in the end the original as it
/// came. Runnable; writes regions, times and reasons into the report.
Selected select(const Forms& forms, const SelectTools& tools, Report& report);

/// The same without a clock, for inputs of tools.typical: regions whose extents follow from these go back when the cost
/// model says that their kernels take clearly longer than plain ops.
Selected select_by_cost(const Model& fused, Model laid_out, const SelectTools& tools, const Target& target,
                        Report& report);

/// Multiplications and additions of a convolution or matrix product; 0 for other ops.
double flops(const Call& call);
/// Seconds of the plain ops that a fused call stands for, by roofline: the arithmetic at the rate that stock kernels
/// reach and one more pass over the output per epilogue step. Unknown dims count as 1.
double plain_seconds(const Call& call, const Target& target);
/// Launches beside the first of LSTM, GRU or RNN in standard ops, of this x: on a GPU ONNX Runtime has cuDNN take the
/// steps one behind the other (CUDNN_RNN_ALGO_STANDARD), each of them a product and what follows it. 0 for other ops.
double step_launches(std::string_view op, const Attrs& attrs, const Shape& x);

}  // namespace modelflow
