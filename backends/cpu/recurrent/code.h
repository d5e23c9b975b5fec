// Rows and weights of recurrent layers in numbers, and the table of code that each instruction set has for them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace modelflow::cpu {

/// Units of a layer whose weights and gates lie together; every extent of units is padded to a multiple of it.
inline constexpr std::size_t kUnits = 16;

inline std::size_t unit_blocks(std::size_t hidden) { return (hidden + kUnits - 1) / kUnits; }

/// One sequence of a batch at one time step. All but `y` are padded to whole blocks of units.
struct RecurrentRow {
  const float* in = nullptr;  ///< what is multiplied: x, h or r * h
  /// With int8 weights: `in` in 8-bit numbers, as RecurrentCode::quantize made it, and their scale.
  const std::uint8_t* steps = nullptr;
  float unit = 0;
  float* gates = nullptr;  ///< [blocks, gates, kUnits]: the part that comes from x and the bias
  const float* h = nullptr;
  float* next = nullptr;  ///< where the new h goes; gru_gates: r * h
  float* c = nullptr;     ///< LSTM only, in place
  float* y = nullptr;     ///< [hidden], a copy of the new h; may be null
};

/// Some units of some sequences at one time step, and the weights for them.
struct RecurrentPart {
  const RecurrentRow* rows = nullptr;
  std::size_t count = 0;
  std::size_t begin = 0, end = 0;  ///< blocks of units
  bool backwards = false;          ///< the last block first: what the step before left in L2 is used from there
  std::size_t depth = 0;           ///< of RecurrentRow::in
  std::size_t hidden = 0;
  const std::byte* packed = nullptr;  ///< as RecurrentCode::pack left it
  const float* scale = nullptr;       ///< int8 weights: of the gates of the product, [blocks, gates, kUnits]
  const float* bias = nullptr;        ///< project_*: [blocks, gates, kUnits]; gru: of the candidate, [blocks, kUnits]
  float clip = 0;                     ///< of gates before their activation; infinity where there is none
};

/// The weights of some gates of one direction: rows `first` * hidden and on of [gates * hidden, depth].
struct RecurrentMatrix {
  std::size_t hidden = 0, depth = 0;
  std::size_t first = 0, gates = 0;
};

/// The arithmetic for one instruction set, all on the calling thread. Gates stand as in ONNX: i, o, f, c and z, r, h.
struct RecurrentCode {
  const char* layout;  ///< names what `pack` makes
  std::size_t (*packed_bytes)(const RecurrentMatrix& matrix);
  void (*pack)(const RecurrentMatrix& matrix, const void* weights, std::byte* packed);
  /// int8 weights: bytes of a row of this depth in steps, and a row in steps; returns their size. Null for float32.
  std::size_t (*step_bytes)(std::size_t depth);
  float (*quantize)(const float* in, std::size_t depth, std::uint8_t* steps);
  /// gates = in W + bias.
  void (*project_lstm)(const RecurrentPart& part);
  void (*project_gru)(const RecurrentPart& part);
  void (*lstm)(const RecurrentPart& part);
  /// linear_before_reset: one product for all gates.
  void (*gru)(const RecurrentPart& part);
  /// Reset before the product, in two passes over all units: z into its place in `gates` and r * h into `next`, then
  /// the candidate from it.
  void (*gru_gates)(const RecurrentPart& part);
  void (*gru_candidate)(const RecurrentPart& part);
};

/// Each only where host_isas() has it.
extern const RecurrentCode recurrent_code_any, recurrent_code_avx2, recurrent_code_avx512;
/// int8 weights. All compute the same whole numbers; `quads` is for AVX-VNNI.
extern const RecurrentCode recurrent_code_steps, recurrent_code_vnni;
extern const RecurrentCode recurrent_code_pairs_avx2, recurrent_code_quads_avx2;

/// Packing for the float32 code: [blocks, depth, gates, kUnits], or [blocks, gates, depth, kUnits].
std::size_t packed_float_bytes(const RecurrentMatrix& matrix);
void pack_floats(const RecurrentMatrix& matrix, const void* weights, std::byte* packed);
void pack_floats_by_gate(const RecurrentMatrix& matrix, const void* weights, std::byte* packed);

}  // namespace modelflow::cpu
