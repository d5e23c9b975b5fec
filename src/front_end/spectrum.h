// Windows, Fourier bases and mel filters as tables.
#pragma once

#include <vector>

#include "modelflow/front_end.h"

namespace modelflow {

/// [2 bins][frame]: what a frame is multiplied by for the real parts of its spectrum, then the imaginary ones; all that
/// is linear about a frame is in it. A frame is n_fft samples long, or win_length where the window stands first.
std::vector<std::vector<double>> frame_basis(const AudioFeatures& features);

/// [n_mels][bins]: the weights of the bins in each filter.
std::vector<std::vector<double>> mel_filters(const AudioFeatures& features);

/// [frame]: the window where it stands in a frame.
std::vector<double> frame_window(const AudioFeatures& features);

int bins(const AudioFeatures& features);
int frame_length(const AudioFeatures& features);
int window_length(const AudioFeatures& features);

}  // namespace modelflow
