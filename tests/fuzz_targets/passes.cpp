// A model in either form through inference and every pass, without a runtime: the graph stays sound, and what comes out
// is read again.
#include "modelflow/modelflow.h"
#include "src/graph/verify.h"
#include "src/pipeline.h"
#include "tests/fuzz_targets/either_form.h"
#include "tests/fuzz_targets/expected.h"
#include "tests/fuzz_targets/targets.h"

namespace modelflow::fuzz {
namespace {

/// The target follows from the bytes, so that a finding is found again.
Options options_of(Bytes bytes) {
  constexpr const char* kMachines[] = {"cpu:avx512_vnni", "cpu:avx2", "cpu:amx", "cpu:baseline"};
  Options options;
  options.target = Target::parse(kMachines[bytes.size() % 4]);
  options.measure = options.verify = false;
  return options;
}

}  // namespace

void passes(Bytes bytes) {
  Model model;
  if (!taken([&] { model = model_of(bytes); })) return;
  const Options options = options_of(bytes);
  const Pipeline pipeline(options, nullptr);
  Report report;
  std::string written;
  const bool done = taken([&] {
    const Pipeline::Forms forms = pipeline.fuse(model, {}, report);
    verify(forms.portable, "after the clean-ups");
    const Model laid_out = pipeline.lay_out(forms.whole(), {}, report);
    verify(laid_out, "at the end");
    written = Pipeline::emit(laid_out).to_bytes();
  });
  if (done) holds(taken([&] { (void)Model::from_bytes(std::as_bytes(std::span(written))); }), "the result is not read");
}

}  // namespace modelflow::fuzz
