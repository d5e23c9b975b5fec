// The cases of tests/passes as data, and how the passes that one names are run on a model.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "modelflow/modelflow.h"

namespace modelflow {

/// One case of a text form file; tests/cases_test.cpp says how they are written.
struct Case {
  std::filesystem::path file;
  int line = 0;
  std::string title, passes, target, before, miss, expected;
  int opset = 17;
  Precision precision = Precision::f32;
};

std::vector<Case> all_cases();
std::string read_file(const std::filesystem::path& file);
std::string trimmed(const std::string& text);
/// The model that a part of a case describes.
Model parse(const Case& c, const std::string& text);
/// The passes that a case names, in the order given.
std::vector<Pass> passes_of(const std::string& names, const Options& options);
Options options_of(const Case& c);

/// What may differ relative to the largest element of an output: float sums in another order, or half a step of the
/// weights and half a step of the activations.
/// `products`: how many follow one another, as the two of attention do.
double tolerance_of(Precision precision, int products = 1);

struct Transformed {
  Model model;
  StepReport report;
  std::vector<std::string> notes;
  int changes = 0;
  std::vector<std::string> changed = {};  ///< names of the passes that changed something
};

/// The model behind these passes, run until nothing changes; the graph is checked behind each. Calibration, where it is
/// asked for, is made up: every value lies within 16, channels have sizes 1, 5 and 9 in turn, no correction corrects.
Transformed transform(const std::vector<Pass>& passes, const Options& options, Model model,
                      const std::shared_ptr<Runtime>& runtime, int most_rounds = 20);

/// True where the two cannot be types of one value.
bool contradict(const Type& a, const Type& b);

}  // namespace modelflow
