// Targets by name ("cpu:avx2", "cuda:sm_90"), and the numbers of devices.
#include "modelflow/target.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <string>
#include <vector>

#include "modelflow/error.h"
#include "modelflow/tensor.h"
#include "src/core/nearest.h"

namespace modelflow {
namespace {

constexpr std::array<std::string_view, 7> kIsas = {"baseline",    "avx2",        "avx_vnni", "avx512",
                                                   "avx512_vnni", "avx512_bf16", "amx"};

/// A generic server core with these instruction sets at 2.5 GHz.
Target generic(IsaSet isas) {
  Target target;
  target.isas = isas;
  target.flops = isas.has(Isa::avx512) ? 150e9 : isas.has(Isa::avx2) ? 75e9 : 20e9;
  target.l2_bandwidth = isas.has(Isa::avx512) ? 95e9 : 60e9;
  return target;
}

/// A device of each generation, as its vendor's data sheet has it: T4, A100 (40 GB), A10, L4, H100 (SXM), B200, RTX
/// 5090.
struct Gpu {
  int sm, cores;
  std::int64_t shared, l2;              ///< bytes of a multiprocessor and of the device
  double flops, half_flops, bandwidth;  ///< FLOP/s in float32 and in float16 summed in float32, bytes/s
};
constexpr std::array<Gpu, 7> kGpus = {{{75, 40, 64 << 10, 4 << 20, 8.1e12, 65e12, 320e9},
                                       {80, 108, 163 << 10, 40 << 20, 19.5e12, 312e12, 1555e9},
                                       {86, 72, 99 << 10, 6 << 20, 31.2e12, 125e12, 600e9},
                                       {89, 58, 99 << 10, 48 << 20, 30.3e12, 121e12, 300e9},
                                       {90, 132, 227 << 10, 50 << 20, 67e12, 989e12, 3350e9},
                                       {100, 148, 227 << 10, 126 << 20, 75e12, 2250e12, 8000e9},
                                       {120, 170, 99 << 10, 96 << 20, 105e12, 209e12, 1792e9}}};
constexpr double kLaunch = 3e-6;  // 2 to 4 microseconds in a stream

struct Field {
  std::string_view name;
  int Target::*whole = nullptr;
  std::int64_t Target::*bytes = nullptr;
  double Target::*rate = nullptr;
};

constexpr std::array<Field, 9> kFields = {{
    {.name = "cores", .whole = &Target::cores},
    {.name = "l1", .bytes = &Target::l1},
    {.name = "l2", .bytes = &Target::l2},
    {.name = "l3", .bytes = &Target::l3},
    {.name = "flops", .rate = &Target::flops},
    {.name = "half_flops", .rate = &Target::half_flops},
    {.name = "bandwidth", .rate = &Target::bandwidth},
    {.name = "l2_bandwidth", .rate = &Target::l2_bandwidth},
    {.name = "launch", .rate = &Target::launch},
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

std::string_view name(Device device) { return device == Device::cpu ? "cpu" : "cuda"; }

IsaSet IsaSet::parse(std::string_view text) {
  IsaSet set;
  while (true) {
    const std::size_t plus = std::min(text.find('+'), text.size());
    const auto found = std::find(kIsas.begin(), kIsas.end(), text.substr(0, plus));
    if (found == kIsas.end()) {
      const std::vector<std::string> known(kIsas.begin(), kIsas.end());
      std::string list;
      for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
      refuse("unknown instruction set '" + std::string(text.substr(0, plus)) + "'" +
             did_you_mean(text.substr(0, plus), known) + " (" + list + ")");
    }
    set = set | static_cast<Isa>(found - kIsas.begin());
    if (plus == text.size()) return set;
    text.remove_prefix(plus + 1);
  }
}

std::string IsaSet::str() const {
  std::string text;
  for (std::size_t i = 0; i < kIsas.size(); ++i) {
    const auto isa = static_cast<Isa>(i);
    bool implied = !has(isa);
    for (std::size_t k = 0; k < kIsas.size(); ++k)
      implied = implied || (k != i && has(static_cast<Isa>(k)) && IsaSet(static_cast<Isa>(k)).has(isa));
    if (!implied) text.append(text.empty() ? "" : "+").append(kIsas.at(i));
  }
  return text;
}

namespace {

Target preset_gpu(std::string_view sm) {
  for (const Gpu& gpu : kGpus) {
    if (sm != "sm_" + std::to_string(gpu.sm)) continue;
    Target target;
    target.device = Device::cuda;
    target.sm = gpu.sm;
    target.cores = gpu.cores;
    target.l1 = gpu.shared;
    target.l2 = target.l3 = gpu.l2;
    target.flops = gpu.flops / gpu.cores;
    target.half_flops = gpu.half_flops / gpu.cores;
    target.bandwidth = gpu.bandwidth / gpu.cores;
    target.l2_bandwidth = 3 * target.bandwidth;
    target.launch = kLaunch;
    return target;
  }
  std::string list;
  for (const Gpu& gpu : kGpus) list += (list.empty() ? "sm_" : ", sm_") + std::to_string(gpu.sm);
  refuse("unknown GPU '" + std::string(sm) + "' (" + list + ")");
}

/// What stands in front of the first comma.
Target preset(std::string_view text) {
  if (text.starts_with("cpu:")) return generic(IsaSet::parse(text.substr(4)));
  if (text.starts_with("cuda:")) return preset_gpu(text.substr(5));
  if (text == "cuda") refuse("'cuda' needs the kind of the device, as in \"cuda:sm_90\"");
  refuse("'" + std::string(text) +
         "' is neither \"cpu\" (this machine) nor like \"cpu:avx512_vnni,cores=4\" or \"cuda:sm_90\"");
}

}  // namespace

double Target::compute(DType type, double work, double share) const {
  // Units that multiply 16 bits multiply twice as many numbers of 8 bits, on every device of the table.
  const bool bytes = type == DType::i8 || type == DType::u8, half = type == DType::f16 || type == DType::bf16;
  const double rate = half_flops > 0 && bytes ? 2 * half_flops : half_flops > 0 && half ? half_flops : flops;
  return work / (rate * share * cores);
}

Target Target::parse(std::string_view text) {
  if (text == "cpu" || text == "host") return host();
  const std::size_t comma = std::min(text.find(','), text.size());
  Target target = preset(text.substr(0, comma));
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
  std::string text =
      std::string(name(device)) + ":" + (device == Device::cpu ? isas.str() : "sm_" + std::to_string(sm));
  const Target usual = preset(text);
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
