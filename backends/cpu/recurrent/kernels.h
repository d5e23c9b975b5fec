// The ops and kernels of LSTM, GRU and selective state spaces, best first within each op.
#pragma once

#include <array>

#include "modelflow/kernel.h"

namespace modelflow::ops {
extern const FusedOp lstm_op, gru_op, qlstm_op, qgru_op, selective_scan_op;
}

namespace modelflow::cpu {

inline constexpr std::array kRecurrentOps = {&ops::lstm_op, &ops::gru_op, &ops::qlstm_op, &ops::qgru_op,
                                             &ops::selective_scan_op};

extern const Kernel lstm_avx512, lstm_any;
extern const Kernel gru_avx512, gru_any;
extern const Kernel qlstm_vnni, qlstm_avx_vnni, qlstm_avx2, qlstm_any;
extern const Kernel qgru_vnni, qgru_avx_vnni, qgru_avx2, qgru_any;
extern const Kernel selective_scan;

inline constexpr std::array kRecurrentKernels = {
    // LSTM
    &lstm_avx512,
    &lstm_any,
    // GRU
    &gru_avx512,
    &gru_any,
    // QLSTM
    &qlstm_vnni,
    &qlstm_avx_vnni,
    &qlstm_avx2,
    &qlstm_any,
    // QGRU
    &qgru_vnni,
    &qgru_avx_vnni,
    &qgru_avx2,
    &qgru_any,
    // SelectiveScan
    &selective_scan,
};

}  // namespace modelflow::cpu
