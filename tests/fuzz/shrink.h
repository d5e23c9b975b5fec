// A model made as small as it can be while the same thing is wrong with it.
#pragma once

#include <functional>

#include "modelflow/model.h"

namespace modelflow::fuzz {

/// `fails` says whether a model still shows the failure; it is asked at most `most` times.
Model shrunk(Model model, const std::function<bool(const Model&)>& fails, int most);

}  // namespace modelflow::fuzz
