"""Speech-like sound by formant synthesis: syllables in words, words in phrases, pauses, and noise behind it all.

A voiced sound is a sum of harmonics of a gliding pitch whose strengths follow four moving resonances (formants), as the
vocal tract makes them; a consonant is a gap, a burst or hissing. Nothing is recorded; a seed gives the same clip anywhere.
"""
import numpy as np
from task import random_of

RATE = 16000
TRACK = 200  # control points per second
VOWELS = {  # formants in Hz of a man's voice
    "a": (730, 1090, 2440, 3400), "e": (530, 1840, 2480, 3500), "i": (270, 2290, 3010, 3600),
    "o": (570, 840, 2410, 3300), "u": (300, 870, 2240, 3200), "er": (490, 1350, 1690, 3300),
    "ae": (660, 1720, 2410, 3500), "uh": (520, 1190, 2390, 3300),
}
WIDTHS = (80, 100, 140, 220)
HISS = {"s": 6000, "sh": 3200, "f": 4500, "h": 1500}  # where the noise of a fricative lies


class Tracks:
    """What changes over time, one value per control point."""

    def __init__(self, points):
        self.pitch, self.voiced = np.zeros(points), np.zeros(points)
        self.formants = np.tile(np.array(VOWELS["uh"], float), (points, 1))
        self.hiss, self.centre = np.zeros(points), np.full(points, 4000.0)
        self.speech = np.zeros(points, bool)


def bump(count, attack=0.25):
    """A loudness that comes and goes."""
    t = np.linspace(0, 1, count)
    return np.minimum(1, np.minimum(t, 1 - t) / attack)


def syllable(tracks, at, random, size, pitch, loud):
    """Writes one consonant and one vowel from control point `at`; returns the end."""
    kind = random.choice(("s", "sh", "f", "h", "stop", "stop", "nasal", "nasal", "none"))
    end = len(tracks.pitch)
    if at >= end:
        return at
    if kind in HISS:
        stop = min(end, at + random.randrange(12, 24))
        tracks.hiss[at:stop], tracks.centre[at:stop] = 0.25 * loud * bump(stop - at), HISS[kind]
        at = stop
    elif kind == "stop":
        start = min(end, at + random.randrange(6, 14))
        stop = min(end, start + 4)
        tracks.hiss[start:stop], tracks.centre[start:stop] = 0.35 * loud, random.choice((1200, 2500, 4000))
        at = stop
    elif kind == "nasal":
        stop = min(end, at + random.randrange(10, 18))
        tracks.voiced[at:stop] = 0.35 * loud
        tracks.formants[at:stop] = np.array((250, 1100, 2300, 3300)) * size
        tracks.pitch[at:stop] = pitch
        at = stop
    stop = min(end, at + random.randrange(22, 52))
    tracks.voiced[at:stop] = loud * bump(stop - at)
    tracks.formants[at:stop] = np.array(VOWELS[random.choice(list(VOWELS))]) * size
    tracks.pitch[at:stop] = pitch * np.linspace(1.03, 0.95, stop - at)
    return stop


def plan(random, seconds):
    """Phrases of words of syllables, with pauses between them."""
    points = int(seconds * TRACK)
    tracks = Tracks(points)
    base = random.choice((random.uniform(85, 140), random.uniform(160, 260)))
    size = 0.97 + 0.2 * (base > 150) * random.uniform(0.7, 1.1)  # shorter tract, higher formants
    at = random.randrange(20, 200)
    while at < points:
        start, words = at, random.randrange(1, 6)
        for word in range(words):
            for _ in range(random.randrange(1, 5)):
                fall = 1.15 - 0.3 * (at - start) / (TRACK * 2.0)
                at = syllable(tracks, at, random, size, base * fall * random.uniform(0.92, 1.1), random.uniform(0.5, 1))
            at += random.randrange(2, 14)
        tracks.speech[start:at] = True
        at += random.randrange(60, 400)
    return tracks


def smooth(track, points):
    """Moving average: articulators take time."""
    kernel = np.ones(points) / points
    padded = np.pad(track, (points // 2, points - 1 - points // 2), mode="edge")
    return np.convolve(padded, kernel, "valid")


def to_samples(track, times):
    return np.interp(times, np.arange(len(track)) / TRACK, track)


def voiced(tracks, times):
    pitch = tracks.pitch.copy()
    where = np.flatnonzero(pitch)
    if not len(where):
        return np.zeros_like(times)
    pitch = np.interp(np.arange(len(pitch)), where, pitch[where])
    f0 = to_samples(smooth(pitch, 7), times) * (1 + 0.012 * np.sin(2 * np.pi * 5.3 * times))
    formants = [to_samples(smooth(tracks.formants[:, i], 9), times) for i in range(4)]
    phase = 2 * np.pi * np.cumsum(f0) / RATE
    total = np.zeros_like(times)
    for k in range(1, int(5000 / f0.min()) + 1):
        f = k * f0
        gain = (f < 5000) / k**1.1
        for centre, width in zip(formants, WIDTHS, strict=True):
            gain = gain / np.hypot(1 - (f / centre) ** 2, f * width / centre**2)
        total += gain * np.cos(k * phase)
    return total * to_samples(smooth(tracks.voiced, 5), times)


def band(noise, centre, width):
    spectrum = np.fft.rfft(noise)
    f = np.fft.rfftfreq(len(noise), 1 / RATE)
    return np.fft.irfft(spectrum * np.exp(-(((f - centre) / width) ** 2)), len(noise))


def background(kind, samples, rng):
    white = rng.standard_normal(samples)
    if kind == "white":
        return white
    f = np.maximum(np.fft.rfftfreq(samples, 1 / RATE), 20)
    if kind == "pink":
        return np.fft.irfft(np.fft.rfft(white) / np.sqrt(f), samples)
    t = np.arange(samples) / RATE  # a machine: hum, its harmonics and rumble
    hum = sum(np.sin(2 * np.pi * 50 * k * t + k) / k for k in range(1, 9))
    rumble = np.fft.irfft(np.fft.rfft(white) / f, samples)
    return hum + 2 * rumble / rumble.std()


def clip(split, index, seconds=8.0):
    """(samples in -1..1, whether someone speaks at each control point). One clip in eight holds noise alone."""
    random = random_of("clip", split, index)
    rng = np.random.default_rng(random.randrange(2**32))
    tracks = plan(random, seconds)
    times = np.arange(int(seconds * RATE)) / RATE
    tone = voiced(tracks, times)
    tone /= max(np.abs(tone).max(), 1e-9)
    hiss = np.zeros_like(times)
    for centre in np.unique(tracks.centre):
        share = to_samples(smooth(np.where(tracks.centre == centre, tracks.hiss, 0), 3), times)
        noise = band(rng.standard_normal(len(times)), centre, 900)
        hiss += share * noise / max(noise.std(), 1e-9) * 0.3
    speech = tone + hiss
    noise = background(random.choice(("white", "pink", "machine")), len(times), rng)
    noise /= noise.std()
    power = np.sqrt(np.mean(speech[speech != 0] ** 2)) if speech.any() else 0.1
    snr = random.choice((40, 30, 20, 15, 10, 5))
    silent = index % 8 == 7
    sound = (0 if silent else 1) * speech + noise * power * 10 ** (-snr / 20)
    sound *= random.uniform(0.08, 0.7) / max(np.abs(sound).max(), 1e-9)
    return sound.astype(np.float32), tracks.speech & (not silent)
