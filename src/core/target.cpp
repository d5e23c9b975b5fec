#include "modelflow/target.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <string>
#include <vector>

#include "modelflow/error.h"
#include "src/core/nearest.h"

namespace modelflow {
namespace {

constexpr std::array<std::string_view, 6> kIsas = {"baseline", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"};

/// A generic server core of this instruction set at 2.5 GHz.
Target generic(Isa isa) {
  Target target;
  target.isa = isa;
  target.flops = isa >= Isa::avx512 ? 150e9 : isa == Isa::avx2 ? 75e9 : 20e9;
  target.l2_bandwidth = isa >= Isa::avx512 ? 95e9 : 60e9;
  return target;
}

struct Field {
  std::string_view name;
  int Target::*whole = nullptr;
  std::int64_t Target::*bytes = nullptr;
  double Target::*rate = nullptr;
};

constexpr std::array<Field, 7> kFields = {{
    {.name = "cores", .whole = &Target::cores},
    {.name = "l1", .bytes = &Target::l1},
    {.name = "l2", .bytes = &Target::l2},
    {.name = "l3", .bytes = &Target::l3},
    {.name = "flops", .rate = &Target::flops},
    {.name = "bandwidth", .rate = &Target::bandwidth},
    {.name = "l2_bandwidth", .rate = &Target::l2_bandwidth},
}};

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::usage, "target: " + message); }

double positive(std::string_view text, std::string_view field) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0) || value > 1e18) {
    refuse("'" + std::string(field) + "' takes a positive number, not '" + std::string(text) + "'");
  }
  return value;
}

void assign(Target& target, std::string_view item) {
  const std::size_t equals = item.find('=');
  const std::string_view key = item.substr(0, equals);
  std::vector<std::string> known;
  for (const Field& field : kFields) {
    known.emplace_back(field.name);
    if (field.name != key || equals == std::string_view::npos) continue;
    const double value = positive(item.substr(equals + 1), key);
    if (field.whole) target.*field.whole = static_cast<int>(std::min(value, 65536.0));
    if (field.bytes) target.*field.bytes = static_cast<std::int64_t>(value);
    if (field.rate) target.*field.rate = value;
    return;
  }
  if (equals == std::string_view::npos) refuse("'" + std::string(item) + "' is not of the form key=number");
  refuse("unknown key '" + std::string(key) + "'" + did_you_mean(key, known));
}

}  // namespace

std::string_view name(Isa isa) { return kIsas.at(static_cast<std::size_t>(isa)); }

Isa isa_of(std::string_view name) {
  for (std::size_t i = 0; i < kIsas.size(); ++i) {
    if (kIsas[i] == name) return static_cast<Isa>(i);
  }
  const std::vector<std::string> known(kIsas.begin(), kIsas.end());
  refuse("unknown instruction set '" + std::string(name) + "'" + did_you_mean(name, known) +
         " (baseline, avx2, avx512, avx512_vnni, avx512_bf16, amx)");
}

Target Target::parse(std::string_view text) {
  if (text == "cpu" || text == "host") return host();
  if (text.starts_with("cuda")) {
    throw Error(ErrorKind::unsupported, "target '" + std::string(text) + "': CUDA devices are not supported yet");
  }
  if (!text.starts_with("cpu:")) {
    refuse("'" + std::string(text) + "' is neither \"cpu\" (this machine) nor like \"cpu:avx512_vnni,cores=4\"");
  }
  text.remove_prefix(4);
  const std::size_t comma = std::min(text.find(','), text.size());
  Target target = generic(isa_of(text.substr(0, comma)));
  text.remove_prefix(comma);
  while (!text.empty()) {
    text.remove_prefix(1);
    const std::size_t end = std::min(text.find(','), text.size());
    assign(target, text.substr(0, end));
    text.remove_prefix(end);
  }
  return target;
}

std::string Target::str() const {
  if (device == Device::cuda) return "cuda";
  std::string text = "cpu:" + std::string(name(isa));
  const Target usual = generic(isa);
  for (const Field& field : kFields) {
    std::string value;
    char digits[32];
    if (field.whole) value = std::to_string(this->*field.whole);
    if (field.bytes && this->*field.bytes != usual.*field.bytes) value = std::to_string(this->*field.bytes);
    if (field.rate && this->*field.rate != usual.*field.rate) {
      value.assign(digits, std::to_chars(digits, digits + sizeof(digits), this->*field.rate).ptr);
    }
    if (!value.empty()) text.append(",").append(field.name).append("=").append(value);
  }
  return text;
}

}  // namespace modelflow
