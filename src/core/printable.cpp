// Names come from models and may hold any bytes: what a terminal would act on is written out.
#include "src/core/printable.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace modelflow {
namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t length = 0;  // bytes; 0: not UTF-8
};

/// The character at the start of `text`, by table 3-7 of the Unicode standard: nothing overlong, no surrogates.
Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xf0 && lead <= 0xf4 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  if (length == 0 || lead > 0xf4 || text.size() < length) return {};
  std::uint32_t code = lead & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr std::array<std::uint32_t, 5> least = {0, 0, 0x80, 0x800, 0x10000};
  if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
  return {code, length};
}

bool harmless(std::uint32_t code) {
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
  const bool line_end = code == 0x2028 || code == 0x2029;
  const bool turns = code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
                     (code >= 0x2066 && code <= 0x2069) || code == 0x61c;
  return !line_end && !turns;
}

void append_escaped(std::string_view bytes, std::string& to) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    to += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
  }
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character next = first_of(text);
    const std::string_view bytes = text.substr(0, next.length ? next.length : 1);
    if (next.length && harmless(next.code))
      out += bytes;
    else
      append_escaped(bytes, out);
    text.remove_prefix(bytes.size());
  }
  return out;
}

std::string printable_line(std::string_view text) { return printable(text) + "\n"; }

}  // namespace modelflow
