"""What is heard: a voice of espeak-ng where it is installed, else a buzz that glides."""
import functools
import io
import shutil
import subprocess

import numpy as np

RATE = 16000
TEXT = "alexa, hey jarvis, what is the weather today? hey mycroft, set a ten minute timer. this is a test of models of sound, in a little noise."


def spoken():
    import librosa
    import soundfile
    wave = subprocess.run(["espeak-ng", "--stdout", "-s", "150", TEXT], check=True, capture_output=True).stdout
    samples, rate = soundfile.read(io.BytesIO(wave))
    return librosa.resample(samples.astype(np.float32), orig_sr=rate, target_sr=RATE)


def buzz(seconds=10.0):
    t = np.arange(int(seconds * RATE)) / RATE
    return 0.1 * sum(np.sin(2 * np.pi * k * (120 * t + 3 * t * t)) / k for k in range(1, 30)) * (np.sin(2 * np.pi * 1.5 * t) > -0.3)


@functools.lru_cache(maxsize=None)
def voice():
    """Samples in -1..1 at 16 kHz, with a second of silence before and behind."""
    samples = spoken() if shutil.which("espeak-ng") else buzz()
    samples = np.concatenate([np.zeros(RATE), samples / np.abs(samples).max() * 0.5, np.zeros(RATE)])
    return (samples + np.random.default_rng(0).normal(0, 2e-3, len(samples))).astype(np.float32)
