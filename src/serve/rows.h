// Inputs of several rows, and whether a model treats each row by itself.
#pragma once

#include "modelflow/modelflow.h"

namespace modelflow {

/// Why requests cannot be gathered into rows of one batch, by the types of inputs and outputs; empty: they may.
std::string why_no_rows(const Model& model);

/// Inputs like `like`, of so many rows.
Feeds with_rows(Session& session, const Model& model, const Feeds& like, std::int64_t rows);

/// Whether two rows give together what each gives alone. `two` are inputs of two rows.
bool rows_are_independent(Session& session, const Feeds& two);

}  // namespace modelflow
