// A rule is data: what to look for, when it holds, what to put in its place. This one turns Exp(Log(x)) into x and runs
// as a pass of its own over a small model.
#include <cstdio>

#include "modelflow/modelflow.h"

using namespace modelflow;

int main() {
  Model model = Model::from_text(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    own (float[4] x) => (float[4] y) { l = Log (x)  e = Exp (l)  y = Neg (e) })");

  const Rule rule = {
      .name = "exp-of-log",
      .doc = "Exp(Log(x)) -> x, for positive x",
      .from = pattern::op("Exp", {pattern::op("Log", {pattern::any("x")})}),
      .when = {},
      .into = [](const Match& match, Build&) { return std::vector<Value*>{match["x"]}; },
  };
  const Pass pass = rewrite("own-pass", "What the example does.", {rule});

  const Options options;
  Context context{.model = model, .options = options, .target = Target::host(), .runtime = nullptr};
  const int changes = pass.run(model.graph(), context);
  std::printf("%d change\n%s\n", changes, model.to_text().c_str());
  return changes == 1 && model.graph().nodes().size() == 1 ? 0 : 1;
}
