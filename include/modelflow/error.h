// The one exception of the library, and its kinds, which are the exit codes of the commands.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace modelflow {

/// What went wrong, in the classes that a caller can act on. The numbers are the exit codes of the command line.
enum class ErrorKind {
  internal = 1,       ///< our bug
  usage = 2,          ///< the caller asked for something that makes no sense
  invalid_input = 3,  ///< the model or data file is unreadable or breaks the ONNX rules
  unsupported = 4,    ///< valid, but this build, runtime or machine cannot do it
  verification = 5,   ///< the optimized model differs from the original
  output = 6,         ///< the result could not be written; what was there before is intact
  limit = 7,          ///< a memory, size or time limit was reached
};

/// The only exception type that the library throws.
///
///     throw Error(ErrorKind::invalid_input, "perm has 3 entries, the input has rank 4").within("node 'Transpose_3'");
///
/// what() reads "node 'Transpose_3': perm has 3 entries, ...": the outermost context first, always one line.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string_view message);
  /// The same error with one more context in front.
  Error within(std::string_view context) const;
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace modelflow
