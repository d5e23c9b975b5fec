// Fourier transforms of the reference in double precision.
#include "src/verify/exact_spectra.h"

#include "src/verify/widened.h"

namespace modelflow {

std::optional<Model> with_exact_spectra(const Model& model) {
  return with_exact(
      model, [](const Node& node) { return node.is("STFT") || node.is("DFT"); },
      [](Node& node) {
        if (node.is("STFT"))
          widen(node, {0, 2});  // the signal and the window
        else
          widen(node, {0});
      });
}

}  // namespace modelflow
