// Inputs made up for a model, each set with the idea behind it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "modelflow/model.h"
#include "modelflow/modelflow.h"

namespace modelflow {

/// How the extents of one set of feeds are chosen. Every further symbol of the same kind is `step` longer. With
/// `scalars` flags and single numbers are others than usual as well.
struct Extents {
  std::int64_t batch = 1, sequence = 64, past = 8, height = 320, width = 320, channels = 3, step = 0;
  bool scalars = true;
};

/// What the values are. Inputs to which it means nothing have typical ones.
enum class Style {
  typical,
  other,          ///< typical ones, drawn anew
  unit_image,     ///< 0 to 1
  byte_image,     ///< 0 to 255
  right_padding,  ///< rows of unlike lengths, hidden at their ends
  left_padding,
  masked_rows,  ///< every other row hidden as a whole
  short_lengths,
  odd_lengths,
  range_ends,    ///< the first and the last entry of every table
  inside_cache,  ///< positions behind what the cache holds
  zeros,
  full_scale,    ///< signals at -1 and 1
  large,         ///< signals up to 60
  any_integers,  ///< of either sign, where no table bounds them
  nan,           ///< here and there NaN, in masked places too
  infinite,
  extreme,  ///< 1e15 (its square is a float, too), 1e-40, -0
};

/// One idea of what data may look like. `extents` are alternatives: the first that the model takes.
struct Idea {
  std::string name, why;
  std::vector<Extents> extents = {};
  Style style = Style::typical;
  bool usual = false;  ///< as most users have it: fit for judging low precision
  bool kinds = false;  ///< the numbers are nobody's promise
  bool kinds_only() const { return kinds || style >= Style::nan; }
};

/// What most users feed; the alternatives are unlike kinds of models.
Idea typical_idea(const Model& model);
/// What else a model meets, the quickest and the most telling first. `base`: the extents that it takes.
std::vector<Idea> further_ideas(const Model& model, const Extents& base, const std::map<std::string, Dims>& given);

/// Values for every symbol and unknown dim of the inputs; `given` wins. Throws Error(unsupported) for an input that is
/// no tensor.
std::map<std::string, Dims> input_dims(const Model& model, const Extents& extents,
                                       const std::map<std::string, Dims>& given);
/// Elements of all inputs together.
double elements(const std::map<std::string, Dims>& dims);

/// The values of all inputs, always the same for the same model.
Feeds made_up(const Model& model, const std::map<std::string, Dims>& dims, const Extents& extents, Style style);

}  // namespace modelflow
