// A model in either form through inference of types and shapes: as it is, and with numbers in place of the symbols of
// its inputs, empty and huge ones among them. The graph stays sound, and what was inferred is written and read.
#include <array>
#include <map>

#include "modelflow/pass.h"
#include "src/graph/verify.h"
#include "tests/fuzz_targets/either_form.h"
#include "tests/fuzz_targets/expected.h"
#include "tests/fuzz_targets/targets.h"

namespace modelflow::fuzz {
namespace {

void inferred(Model model) {
  infer_types(model);
  verify(model, "after inference");
  const std::string written = model.to_bytes();
  holds(taken([&] { (void)Model::from_bytes(std::as_bytes(std::span(written))); }), "what was inferred is not read");
}

/// Each symbol gets one number, the same wherever it stands.
Model numbered(Model model, std::size_t first) {
  constexpr std::array<std::int64_t, 8> kExtents = {0, 1, 2, 3, 7, INT32_MAX, 1LL << 40, INT64_MAX};
  std::map<std::string, std::int64_t> numbers;
  for (Value* input : model.graph().inputs()) {
    if (!input->type.is_tensor() || !input->shape().has_rank()) continue;
    std::vector<Dim> dims = input->shape().dims();
    for (Dim& dim : dims) {
      for (const std::string& symbol : dim.symbols())
        numbers.emplace(symbol, kExtents[(first + numbers.size()) % kExtents.size()]);
      if (const auto number = dim.evaluate(numbers)) dim = *number;
    }
    input->type.shape = std::move(dims);
  }
  return model;
}

}  // namespace

void infer(Bytes bytes) {
  Model model;
  if (!taken([&] { model = model_of(bytes); })) return;
  taken([&] { inferred(model); });
  taken([&] { inferred(numbered(model, bytes.size())); });
}

}  // namespace modelflow::fuzz
