// Optimize a model inside your own program: embed model.onnx fast.onnx
#include <modelflow/modelflow.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    modelflow::Options options;
    options.measure = false;  // let the cost model decide: quick; leave it out to keep only what is faster here
    modelflow::Result result = modelflow::optimize(modelflow::Model::load(argv[1]), options);
    result.model.save(argv[2]);
    std::cout << result.report.text();
  } catch (const modelflow::Error& error) {
    std::cerr << error.what() << '\n';
    return static_cast<int>(error.kind());
  }
}
