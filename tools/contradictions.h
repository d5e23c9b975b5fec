// Command lines that contradict themselves.
#pragma once

#include "optimize_options.h"

namespace CLI {
class App;
}

namespace modelflow::tools {

/// Throws Error(usage) where an option was given that means nothing beside another, as --report with --inline.
void refuse_contradictions(const CLI::App& app);
/// Throws Error(usage) where the report or the result would replace something that is read (the result may replace its
/// model) or the weights of a model that is read, and Error(output) where a name to write leads to something that is no
/// regular file.
void refuse_shared_files(const Arguments& arguments);

}  // namespace modelflow::tools
