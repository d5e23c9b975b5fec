// Configurations that models are published with, as wishes for a front end.
#pragma once

#include "src/front_end/settings.h"

namespace modelflow {

/// preprocessor_config.json of a Whisper model (transformers); none where it is something else. Throws Error(usage) for
/// what a front end cannot do; read_wish says of which file.
std::optional<Wish> published_audio(const nlohmann::json& config);

/// preprocessor_config.json of transformers, or config.json of timm; likewise.
std::optional<Wish> published_image(const nlohmann::json& config);

}  // namespace modelflow
