"""Architectures that hubs serve and papers bring, from the packages that people export from: random weights, no downloads."""
from . import detectors, generators, language, pictures, segmenters, sight, sound, tables

MODELS = [entry for part in (pictures, segmenters, detectors, sight, language, sound, generators, tables) for entry in part.MODELS]
