// Attributes that are one of a few words: each op names its words here, where others are refused.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "backends/call_attrs.h"

namespace modelflow::ops {

using Words = std::initializer_list<std::string_view>;

/// Yes where the attribute is one of these.
inline Verdict check_word(const CallAttrs& attrs, std::string_view name, Words known) {
  const std::string said = attrs.text(name);
  if (std::ranges::count(known, said) > 0) return yes();
  std::string reason = std::string(name) + " is '" + said + "', not ";
  for (const std::string_view& word : known)
    reason += (&word == known.begin() ? "" : &word + 1 == known.end() ? " or " : ", ") + std::string(word);
  return no(reason);
}

/// The word; throws Error(invalid_input) where it is none of these.
inline std::string word(const CallAttrs& attrs, std::string_view name, Words known) {
  if (Verdict v = check_word(attrs, name, known); !v) throw Error(ErrorKind::invalid_input, v.reason);
  return attrs.text(name);
}

}  // namespace modelflow::ops
