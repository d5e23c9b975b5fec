"""Front ends: features of sound and pictures as the libraries make them, inside of models."""
import json

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest
from conftest import close, session
from test_python import modelflow


def model(path, text, opset=17):
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {text}'), path)
    return path


# Features as the libraries document them, in float64.
def frames_of(x, length, hop):
    return np.stack([x[i:i + length] for i in range(0, len(x) - length + 1, hop)])


def slaney(hz):
    return np.where(hz < 1000, hz * 3 / 200, 15 + 27 * np.log(np.maximum(hz, 1) / 1000) / np.log(6.4))


def slaney_filters(rate, n_fft, count):
    mels = np.linspace(0, slaney(np.array(rate / 2)), count + 2)
    edges = np.where(mels < 15, mels * 200 / 3, 1000 * np.exp((mels - 15) * np.log(6.4) / 27))
    bins = np.fft.rfftfreq(n_fft, 1 / rate)
    rise, fall = (bins - edges[:-2, None]) / np.diff(edges)[:-1, None], (edges[2:, None] - bins) / np.diff(edges)[1:, None]
    return np.maximum(0, np.minimum(rise, fall)) * 2 / (edges[2:] - edges[:-2])[:, None]


def whisper(x):
    padded = np.pad(x, 200, mode="reflect")
    power = np.abs(np.fft.rfft(frames_of(padded, 400, 160) * np.hanning(401)[:-1])) ** 2
    log = np.log10(np.maximum(slaney_filters(16000, 400, 80) @ power.T[:, :-1], 1e-10))
    return (np.maximum(log, log.max() - 8) + 4) / 4


def librosa(x):
    power = np.abs(np.fft.rfft(frames_of(np.pad(x, 512), 1024, 256) * np.hanning(1025)[:-1])) ** 2
    db = 10 * np.log10(np.maximum(slaney_filters(16000, 1024, 64) @ power.T, 1e-10))
    return np.maximum(db - db.max(), -80)


def kaldi(x):
    frames = frames_of(x * 32768, 400, 160)
    frames = frames - frames.mean(1, keepdims=True)
    frames = frames - 0.97 * np.concatenate([frames[:, :1], frames[:, :-1]], 1)
    power = np.abs(np.fft.rfft(frames * np.hanning(400) ** 0.85, 512)) ** 2
    mel = lambda hz: 1127 * np.log(1 + hz / 700)  # noqa: E731
    edges, bins = np.linspace(mel(20), mel(8000), 82), mel(np.arange(256) * 16000 / 512)
    rise, fall = (bins - edges[:-2, None]) / np.diff(edges)[:-1, None], (edges[2:, None] - bins) / np.diff(edges)[1:, None]
    return np.log(np.maximum(power[:, :256] @ np.maximum(0, np.minimum(rise, fall)).T, 2.0 ** -23))


FEATURES = {"whisper": whisper, "librosa:sample_rate=16000,n_fft=1024,hop_length=256,n_mels=64,log=db,reference=max,top=80": librosa,
            "kaldi:n_mels=80,input_scale=32768": kaldi}


def sound(seconds=2.0, rate=16000):
    """A voice-like buzz that glides and pauses, in a little noise."""
    t = np.arange(int(seconds * rate)) / rate
    buzz = sum(np.sin(2 * np.pi * k * (120 * t + 15 * t * t)) / k for k in range(1, 30))
    return (0.1 * buzz * (np.sin(2 * np.pi * 1.5 * t) > -0.3) + np.random.default_rng(0).normal(0, 1e-3, len(t))).astype(np.float32)


def quiet_up_to_its_end(samples):
    x = np.random.default_rng(4).normal(0, 1e-5, samples)
    x[-20:] *= 1e5
    return x.astype(np.float32)


@pytest.mark.parametrize("spec", FEATURES)
def test_features_are_those_of_the_libraries(optimize, tmp_path, spec):
    out = tmp_path / "front.onnx"
    assert optimize("--audio-front-end", spec, "-o", out, "--no-measure").code == 0
    sounds = np.stack([sound(), sound()[::-1], quiet_up_to_its_end(sound().size)])
    for run in (session(out), modelflow.session(out)):
        features, = run.run(None, {"samples": sounds})
        for x, found in zip(sounds.astype(np.float64), features):
            expected = FEATURES[spec](x)
            assert found.shape == expected.shape and np.abs(found - expected).max() < 2e-3


def spectra(x, n_fft, win_length, hop, window, periodic, center):
    """Power as a short-time Fourier transform in float64 gives it."""
    turns = np.arange(win_length) * 2 * np.pi / (win_length - (not periodic))
    weights = {"hann": 0.5 - 0.5 * np.cos(turns), "hamming": 0.54 - 0.46 * np.cos(turns), "povey": np.abs(0.5 - 0.5 * np.cos(turns)) ** 0.85,
               "rectangular": np.ones(win_length)}[window]
    before = (n_fft - win_length) // 2
    weights = np.pad(weights, (before, n_fft - win_length - before))
    return np.abs(np.fft.rfft(frames_of(np.pad(x, n_fft // 2 if center else 0), n_fft, hop) * weights)) ** 2


def test_spectra_of_any_frames(tmp_path):
    """Windows that are symmetric, which are folded, and those that are not; hops that are longer and shorter than half a frame."""
    dice = np.random.default_rng(1)
    for _ in range(40):
        n_fft = int(dice.integers(2, 70))
        win_length, hop = int(dice.integers(2, n_fft + 1)), int(dice.integers(1, 40))
        window = ("hann", "hamming", "povey", "rectangular")[dice.integers(4)]
        periodic, center = (bool(dice.integers(2)) for _ in range(2))
        spec = f"librosa:n_mels=0,n_fft={n_fft},win_length={win_length},hop_length={hop},window={window},periodic={int(periodic)},center={int(center)},frames_first=1"
        (tmp_path / "front.onnx").write_bytes(modelflow.audio_front_end(spec))
        for length in (n_fft, n_fft + hop, 333):
            x = dice.standard_normal((2, length), dtype=np.float32)
            expected = [spectra(each.astype(np.float64), n_fft, win_length, hop, window, periodic, center) for each in x]
            features, = session(tmp_path / "front.onnx").run(None, {"samples": x})
            assert features.shape == np.shape(expected) and np.abs(features - expected).max() <= 1e-5 * np.max(expected), spec


@pytest.mark.parametrize("window", ["hann", "hamming", "povey"])
def test_windows_of_one_sample_are_1(window):
    for periodic in (0, 1):
        spec = f"librosa:n_mels=0,n_fft=8,win_length=1,periodic={periodic},window="
        assert modelflow.audio_front_end(spec + window) == modelflow.audio_front_end(spec + "rectangular")


def resampled(x, given, wanted):
    """torchaudio.functional.resample with its defaults, in float64."""
    if given == wanted:
        return x
    given, wanted = (rate // np.gcd(given, wanted) for rate in (given, wanted))
    cutoff = min(given, wanted) * 0.99
    width = int(np.ceil(6 * given / cutoff))
    t = np.clip((np.arange(-width, width + given) / given - np.arange(wanted)[:, None] / wanted) * cutoff, -6, 6)
    filters = np.sinc(t) * np.cos(t * np.pi / 12) ** 2 * cutoff / given
    padded = np.pad(x, (width, width + given))
    return (frames_of(padded, 2 * width + given, given) @ filters.T).ravel()[:-(-len(x) * wanted // given)]


@pytest.mark.parametrize("given, wanted", [(22050, 16000), (8000, 16000), (48000, 16000), (16000, 11025), (16000, 16000)])
def test_sound_of_another_rate(tmp_path, given, wanted):
    spec = f"librosa:input_rate={given},sample_rate={wanted},n_fft=64,hop_length=16,n_mels=0"
    (tmp_path / "front.onnx").write_bytes(modelflow.audio_front_end(spec))
    for length in (500, 1323):
        x = np.random.default_rng(2).standard_normal((2, length), dtype=np.float32)
        features, = session(tmp_path / "front.onnx").run(None, {"samples": x})
        expected = spectra(resampled(x[1].astype(np.float64), given, wanted), 64, 64, 16, "hann", True, True).T
        assert features[1].shape == expected.shape and np.abs(features[1] - expected).max() < 1e-5 * expected.max()


@pytest.mark.parametrize("count, hop, edges", [(7, 6, True), (3, 1, True), (4, 9, True), (2, 0, False), (5, 3, False), (2, 5, False), (13, 2, False), (9, 1, False)])
def test_frames_side_by_side(tmp_path, count, hop, edges):
    spec = "librosa:n_mels=0,n_fft=16,hop_length=8,frames_first=1"
    (tmp_path / "frames.onnx").write_bytes(modelflow.audio_front_end(spec))
    (tmp_path / "stacks.onnx").write_bytes(modelflow.audio_front_end(f"{spec},stack={count},stack_hop={hop},stack_edges={int(edges)}"))
    for length in range(40, 140, 7):
        x = np.random.default_rng(3).standard_normal((2, length), dtype=np.float32)
        (frames,), (stacks,) = (session(tmp_path / f"{name}.onnx").run(None, {"samples": x}) for name in ("frames", "stacks"))
        step = hop or count
        if edges:
            want = -(-frames.shape[1] // step)
            frames = np.pad(frames, ((0, 0), ((count - 1) // 2, count + step), (0, 0)), mode="edge")
        else:
            want = max((frames.shape[1] - count) // step + 1, 0)
        expected = [[each[i * step:i * step + count].ravel() for i in range(want)] for each in frames]
        assert np.array_equal(stacks, np.reshape(expected, stacks.shape)), (length, stacks.shape, want)


def test_bark_filters_cover_the_spectrum(tmp_path):
    """Traunmueller's scale: where neighbouring triangles meet, their weights add up to one."""
    (tmp_path / "f.onnx").write_bytes(modelflow.audio_front_end("librosa:mel=bark,norm=0,n_mels=20,n_fft=512,sample_rate=16000,window=rectangular,center=0,hop_length=512"))
    weights = next(onnx.numpy_helper.to_array(each) for each in onnx.load(tmp_path / "f.onnx").graph.initializer if each.name == "filters")
    z = np.linspace(*((lambda z: np.where(z < 2, z + 0.15 * (2 - z), np.where(z > 20.1, z + 0.22 * (z - 20.1), z)))(26.81 * f / (1960 + f) - 0.53)
                      for f in (0.0, 8000.0)), 22)
    z = np.where(z < 2, (z - 0.3) / 0.85, z)
    z = np.where(z > 20.1, (z + 4.422) / 1.22, z)
    edges, bins = 1960 * (z + 0.53) / (26.28 - z), np.fft.rfftfreq(512, 1 / 16000)
    inside = (bins >= edges[1]) & (bins <= edges[-2])
    assert np.allclose(weights.sum(1)[inside], 1, atol=1e-6) and np.abs(bins[weights.argmax(0)] - edges[1:-1]).max() <= 16000 / 512


def test_a_front_end_runs_on_what_arrives(tmp_path):
    x = sound()[None]
    (tmp_path / "whole.onnx").write_bytes(modelflow.audio_front_end("kaldi:n_mels=40"))
    (tmp_path / "stream.onnx").write_bytes(modelflow.audio_front_end("kaldi:n_mels=40,streaming=1"))
    whole, = session(tmp_path / "whole.onnx").run(None, {"samples": x})
    stream = session(tmp_path / "stream.onnx")
    past, pieces = x[:, :240], []
    for i in range(240, x.shape[1] - 1600, 1600):
        features, past = stream.run(None, {"samples": x[:, i:i + 1600], "past": past})
        pieces.append(features)
    done = np.concatenate(pieces, 1)
    assert done.shape[1] > 150 and np.abs(done - whole[:, :done.shape[1]]).max() < 1e-4


def test_a_front_end_becomes_part_of_a_model(optimize, tmp_path):
    net = model(tmp_path / "net.onnx", "(float[N,80,T] mels, float[N] gain) => (float[N,80] y) { m = ReduceMean<axes = [2], keepdims = 0>(mels) "
                "y = Tanh(m) }")
    out = tmp_path / "o.onnx"
    done = optimize(net, "-o", out, "--audio-front-end", "whisper", "--no-measure", "--explain")
    assert done.code == 0 and "inside  features float32[N,80,frames] = front.features -> net.mels" in done.out, (done.out[:300], done.err)
    y, = session(out).run(None, {"samples": sound()[None], "gain": np.zeros(1, np.float32)})
    close([np.tanh(whisper(sound()).mean(1))[None].astype(np.float32)], [y])


@pytest.mark.parametrize("spec", ["wisper", "whisper:mels=80", "whisper:n_mels=many", "whisper:n_fft=0", "kaldi:window=flat", "whisper:streaming=1",
                                  "librosa:fmin=9000,sample_rate=16000", "whisper:input_rate=44101", "kaldi:streaming=1,stack=2", "whisper:stack=0", "none.json", "whisper:n_mels",
                                  "kaldi:preemphasis=nan", "whisper:scale=inf", "kaldi:input_scale=nan", "whisper:shift=-inf", "whisper:floor=1e-50", "kaldi:floor=1e50", "whisper:floor=0",
                                  "librosa:sample_rate=4294967296,input_rate=1048576", "librosa:sample_rate=1e300", "kaldi:streaming=1,drop_last=1", "kaldi:streaming=1,top=8",
                                  "kaldi:streaming=1,normalize=1", "kaldi:streaming=1,log=db,reference=max"])
def test_features_that_make_no_sense(optimize, tmp_path, spec):
    done = optimize("--audio-front-end", spec, "-o", tmp_path / "o.onnx")
    assert done.code == 2 and done.err.count("\n") == 1 and "audio features" in done.err, done.err


# Pictures as Pillow (to version 12: columns, then rows) and OpenCV resize them, in their whole numbers.
def pillow(x, size, filter_, reach):
    for axis, length in ((1, size[1]), (0, size[0])):
        scale, weights = x.shape[axis] / length, np.zeros((length, x.shape[axis]))
        wide = max(scale, 1)
        for i in range(length):
            center = (i + 0.5) * scale
            taps = np.arange(max(int(center - reach * wide + 0.5), 0), min(int(center + reach * wide + 0.5), x.shape[axis]))
            weight = filter_(np.abs((taps - center + 0.5) / wide))
            weights[i, taps] = np.floor(weight / weight.sum() * 2 ** 22 + 0.5)
        x = np.clip(np.floor(np.moveaxis(np.tensordot(weights, x, (1, axis)), 0, axis) / 2 ** 22 + 0.5), 0, 255)
    return x


def bilinear(x, size):
    return pillow(x, size, lambda t: np.maximum(1 - t, 0), 1)


def bicubic(x, size):
    return pillow(x, size, lambda t: np.where(t < 1, 1.5 * t ** 3 - 2.5 * t ** 2 + 1, np.where(t < 2, -0.5 * t ** 3 + 2.5 * t ** 2 - 4 * t + 2, 0)), 2)


def pillow_nearest(x, size):
    rows, columns = (np.floor(np.cumsum([a / b / 2] + [a / b] * (b - 1))).astype(int) for a, b in zip(x.shape, size))
    return x[rows][:, columns]


def opencv_nearest(x, size):
    rows, columns = (np.floor(np.arange(b) * (1 / (b / a))).astype(int) for a, b in zip(x.shape, size))
    return x[rows][:, columns]


def opencv(x, size):
    def between(length, to, once):
        at = ((np.arange(to) + 0.5) * (1 / (to / length)) - 0.5).astype(np.float32)
        first = np.floor(at).astype(int)
        share = (at - first).astype(np.float32)
        share[once & ((first < 0) | (first >= length - 1))] = 0
        return (np.clip(first, 0, length - 1), np.clip(first + 1, 0, length - 1),
                np.rint((1 - share) * np.float32(2048)).astype(int), np.rint(share * np.float32(2048)).astype(int))
    (c0, c1, a0, a1), (r0, r1, b0, b1) = between(x.shape[1], size[1], True), between(x.shape[0], size[0], False)
    wide = (x[:, c0].astype(int) * a0[:, None] + x[:, c1].astype(int) * a1[:, None]) >> 4
    return ((wide[r0] * b0[:, None, None] >> 16) + (wide[r1] * b1[:, None, None] >> 16) + 2) >> 2


def normalized(x, mean, std):
    return ((x / 255 - mean) / std).transpose(2, 0, 1)


IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))


def classified(size, crop, how, rounding, statistics):
    def answer(x):
        h, w = x.shape[:2]
        x = how(x, (int(size * h / min(h, w)), int(size * w / min(h, w))))
        top, left = (rounding((length - crop) / 2) for length in x.shape[:2])
        return normalized(x[top:top + crop, left:left + crop], *statistics)
    return answer


def letterboxed(x, size=64):
    h, w = x.shape[:2]
    ratio = min(size / h, size / w)
    frame, inner = np.full((size, size, 3), 114), (round(h * ratio), round(w * ratio))
    top, left = (round((size - length) / 2 - 0.1) for length in inner)
    frame[top:top + inner[0], left:left + inner[1]] = opencv(x, inner)
    return frame[:, :, ::-1].transpose(2, 0, 1) / 255


def bounded(x, size=100):
    ratio = max(size / min(x.shape[:2]), 1)
    return normalized(opencv(x, tuple(max(int(round(int(length * ratio) / 32)), 1) * 32 for length in x.shape[:2])), 0.5, 0.5)


PICTURES = {"imagenet:size=50,crop=45": classified(50, 45, bilinear, round, IMAGENET),
            "imagenet:size=50,crop=44,interpolation=bicubic": classified(50, 44, bicubic, round, IMAGENET),
            "imagenet:size=50,crop=50,interpolation=nearest": classified(50, 50, pillow_nearest, round, IMAGENET),
            "imagenet:size=50,crop=41,library=opencv,interpolation=nearest": classified(50, 41, opencv_nearest, round, IMAGENET),
            "clip:size=50,crop=45": classified(50, 45, bicubic, int, CLIP), "yolo:size=64": letterboxed, "paddleocr:size=100": bounded,
            "imagenet:library=opencv,resize=exact,size=33/70,crop=": lambda x: normalized(opencv(x, (33, 70)), *IMAGENET)}


def pictures():
    """Smooth ones and noise, wide and tall, larger and smaller than what they become."""
    dice = np.random.default_rng(0)
    for h, w in dice.integers(20, 200, (6, 2)):
        yield dice.integers(0, 256, (h, w, 3), dtype=np.uint8)
        rows, columns = np.mgrid[:h, :w, :3][:2]
        yield (127 + 127 * np.sin(rows / 7 + columns / 11)).astype(np.uint8)


@pytest.mark.parametrize("spec", PICTURES)
def test_pictures_are_those_of_the_libraries(optimize, tmp_path, spec):
    """OpenCV's exactly; Pillow's interpolation is one of 255 levels off (two where it enlarges) in a few places."""
    out = tmp_path / "front.onnx"
    assert optimize("--image-front-end", spec, "-o", out, "--no-measure").code == 0
    exact = "opencv" in spec or "nearest" in spec or spec.startswith(("yolo", "paddle"))
    for run in (modelflow.session(out), session(out)):
        for x in pictures():
            expected = PICTURES[spec](x)
            image, = run.run(None, {"pixels": np.stack([x, x[::-1]])})
            assert image.shape[1:] == expected.shape, x.shape
            off = np.abs(image[0] - expected)
            level = 1 / 255 / 0.224
            assert off.max() < (1e-5 if exact else 2.5 * level) and (off > 1e-3).mean() < (1e-9 if exact else 0.06), (x.shape, off.max())


def test_no_pictures_at_all(tmp_path):
    for spec in ("imagenet", "yolo", "paddleocr:layout=nhwc,dtype=float16"):
        (tmp_path / "front.onnx").write_bytes(modelflow.image_front_end(spec))
        image, = session(tmp_path / "front.onnx").run(None, {"pixels": np.zeros((0, 30, 50, 3), np.uint8)})
        assert image.shape[0] == 0 and 3 in image.shape


PUBLISHED = {
    "clip": {"image_processor_type": "CLIPImageProcessorFast", "do_resize": True, "size": {"shortest_edge": 224}, "resample": 3, "do_center_crop": True,
             "crop_size": {"height": 224, "width": 224}, "do_rescale": True, "do_normalize": True, "image_mean": CLIP[0], "image_std": CLIP[1], "do_convert_rgb": True},
    "imagenet:resize=exact,size=224,crop=,crop_rounding=down,mean=0.5,std=0.5/0.5/0.5": {
        "feature_extractor_type": "ViTFeatureExtractor", "size": 224, "resample": 2, "do_normalize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3},
    "imagenet:size=256,crop=224,crop_rounding=down,interpolation=bicubic": {
        "image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 224}, "crop_pct": 0.875, "resample": 3, "do_normalize": True,
        "image_mean": IMAGENET[0], "image_std": IMAGENET[1]},
    "imagenet:size=235,interpolation=bicubic": {"architecture": "resnet50", "pretrained_cfg": {
        "input_size": [3, 224, 224], "crop_pct": 0.95, "interpolation": "bicubic", "mean": IMAGENET[0], "std": IMAGENET[1], "crop_mode": "center"}},
    "imagenet:resize=shortest": {"preset": "imagenet", "size": 256, "crop": [224]},
}


@pytest.mark.parametrize("spec", PUBLISHED)
def test_what_models_are_published_with(tmp_path, spec):
    config = tmp_path / "preprocessor_config.json"
    config.write_text(json.dumps(PUBLISHED[spec]))
    assert modelflow.image_front_end(str(config)) == modelflow.image_front_end(spec)


def test_what_whisper_is_published_with(tmp_path):
    config = tmp_path / "preprocessor_config.json"
    config.write_text(json.dumps({"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 128, "hop_length": 160, "n_fft": 400, "chunk_length": 30,
                                  "sampling_rate": 16000}))
    assert modelflow.audio_front_end(str(config)) == modelflow.audio_front_end("whisper:n_mels=128")


@pytest.mark.parametrize("config", [{"image_processor_type": "EfficientNetImageProcessor"}, {"image_processor_type": "ViTImageProcessor", "size": 3},
                                    {"image_processor_type": "ViTImageProcessor", "size": {"height": "x", "width": 2}, "resample": "y"},
                                    {**PUBLISHED["clip"], "do_center_crop": None},  # versions of transformers differ in what they take then
                                    {"image_processor_type": "MobileViTImageProcessor", "size": 32, "resample": 2, "do_center_crop": False},
                                    {"image_processor_type": "BitImageProcessor", "do_pad": True}, {"crop_pct": 0, "input_size": [3, 2, 2]},
                                    {"pretrained_cfg": {"crop_pct": 1, "input_size": 5}}, {"size": [1, 2, 3]}, {"mean": {"r": 1}}])
def test_published_words_that_are_not_known(optimize, tmp_path, config):
    (tmp_path / "c.json").write_text(json.dumps(config))
    done = optimize("--image-front-end", tmp_path / "c.json", "-o", tmp_path / "o.onnx")
    assert done.code == 2 and done.err.count("\n") == 1 and "image features: " in done.err, done.err


@pytest.mark.parametrize("which", ["image", "audio"])
def test_configurations_of_many_levels(optimize, tmp_path, which):
    """What reads or writes them level by level would end the process."""
    (tmp_path / "c.json").write_text('{"mean": ' + "[" * 300000 + "]" * 300000 + "}")
    done = optimize(f"--{which}-front-end", tmp_path / "c.json", "-o", tmp_path / "o.onnx")
    assert done.code == 2 and done.err.count("\n") == 1 and f"{which} features: '" in done.err, done.err


@pytest.mark.parametrize("spec", ["imagnet", "imagenet:sise=3", "imagenet:size=", "imagenet:size=1/2/3", "imagenet:size=0", "imagenet:resize=area", "imagenet:crop=300",
                                  "yolo:crop=3", "yolo:interpolation=bicubic", "imagenet:std=0", "imagenet:mean=1/2", "imagenet:mean=a", "none.json",
                                  "imagenet:pad_value=300", "imagenet:size=100/200", "paddleocr:multiple=0", "imagenet:scale=inf", "imagenet:layout=chw"])
def test_pictures_that_make_no_sense(optimize, tmp_path, spec):
    done = optimize("--image-front-end", spec, "-o", tmp_path / "o.onnx")
    assert done.code == 2 and done.err.count("\n") == 1 and "image features" in done.err, done.err


def test_pictures_go_into_a_model(optimize, tmp_path):
    net = model(tmp_path / "net.onnx", "(float[1,3,32,48] x) => (float[1,3] y) { m = GlobalAveragePool(x) f = Flatten(m) y = Softmax(f) }")
    out, spec = tmp_path / "o.onnx", "imagenet:resize=exact,size=32/48,crop=,library=opencv"
    done = optimize(net, "-o", out, "--image-front-end", spec, "--no-measure", "--explain")
    assert done.code == 0 and "inside  image float32[1,3,32,48] = front.image -> net.x" in done.out, (done.out[:300], done.err)
    x = next(pictures())
    means = normalized(opencv(x, (32, 48)), *IMAGENET).mean((1, 2))
    y, = session(out).run(None, {"pixels": x[None]})
    close([(np.exp(means) / np.exp(means).sum())[None].astype(np.float32)], [y])
    both = optimize(net, "-o", out, "--image-front-end", spec, "--audio-front-end", "whisper")
    assert both.code == 2 and "excludes" in both.err, both.err
