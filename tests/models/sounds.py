"""Speech-like sound, and what the models' own clients make of it: spectra, mel filters, decibels."""
import numpy as np
import speech

RATE = speech.RATE


def sound(index, seconds):
    """Samples in -1..1 at 16 kHz."""
    return speech.clip("models", index, seconds)[0][: int(seconds * RATE)]


def power(samples, size, hop):
    """[frames, size // 2 + 1]: the power spectrum of frames under a Hann window, centred as librosa does."""
    padded = np.pad(samples, size // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)[::hop]
    return np.abs(np.fft.rfft(frames * np.hanning(size + 1)[:-1])) ** 2


def mel_filters(count, size):
    """[size // 2 + 1, count]: triangles between points that lie evenly on the mel scale."""
    edges = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), count + 2) / 2595) - 1)
    bins = np.fft.rfftfreq(size, 1 / RATE)[:, None]
    rise, fall = (bins - edges[:-2]) / np.diff(edges)[:-1], (edges[2:] - bins) / np.diff(edges)[1:]
    return np.maximum(0, np.minimum(rise, fall))


def scaled_decibels(power, floor=80):
    """(decibels below the loudest + 40) / 40, cut at `floor`: what the speech quality models read."""
    decibels = 10 * np.log10(np.maximum(power, 1e-10))
    return ((np.maximum(decibels - decibels.max(), -floor) + 40) / 40).astype(np.float32)


def mel(samples, size, hop, count, frames=None):
    """[frames, count] of scaled decibels."""
    return scaled_decibels(power(samples, size, hop) @ mel_filters(count, size))[:frames]
