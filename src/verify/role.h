// What an input of a model most likely stands for.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "modelflow/graph.h"

namespace modelflow {

/// `bias` is a mask that is added to scores: 0 keeps, a very low number hides. `factor` is a number that scales or
/// bounds something, `rate` the sampling rate of a signal, `bytes` are integers of 8 or fewer bits, `count` says how
/// often or how many.
enum class Role { plain, image, mask, bias, ids, segments, positions, lengths, rate, factor, bytes, count };

struct Meaning {
  Role role = Role::plain;
  std::int64_t limit = INT64_MAX;  ///< of ids, positions and floats of which a Cast makes ids: the smallest table
  bool one_hides = false;          ///< mask: 1 (true) hides what 0 keeps, as PyTorch's key_padding_mask has it
};

/// By dtype, name and use: masks are what reaches a Softmax as a condition or by way of an Add, ids what indexes a
/// table.
Meaning meaning_of(const Value& input);

/// Four axes, of which one holds 1 or 3 channels or as many as are not known.
bool looks_like_an_image(const Value& input);

/// Samples of a signal: what a convolution of one channel reads in steps of four and more, as speech models begin.
bool looks_like_sound(const Value& input);

/// `text` in lower case has one of these words in it.
bool has_word(std::string text, std::initializer_list<std::string_view> words);

}  // namespace modelflow
