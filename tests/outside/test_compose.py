"""Models that become one by the command and from Python, inputs that are bound, outputs that are chosen, front ends."""
import json
import re

import numpy as np
import onnx
import onnx.parser
import pytest
from conftest import close, session
from test_python import ROOT, modelflow

QUICK = {"measure": False, "threads": 1}


def model(path, text, opset=17):
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {text}'), path)
    return path


@pytest.fixture
def parts(tmp_path):
    return (model(tmp_path / "encoder.onnx", "(float[N,4] x, bool flip) => (float[N,4] hidden) { h = If(flip) <then_branch = t () => (float[N,4] r) "
                  "{ r = Neg(x) }, else_branch = e () => (float[N,4] r) { r = Relu(x) }> hidden = Clip<min = -2.0>(h) }", 10),
            model(tmp_path / "decoder.onnx", "(float[M,4] memory) => (float[M,4] y, float[M,4] z) { y = Gelu(memory) z = Exp(memory) }", 20))


def in_turn(parts, x, flip):
    hidden, = session(parts[0]).run(None, {"x": x, "flip": np.array(flip)})
    return session(parts[1]).run(None, {"memory": hidden})


def test_the_command_merges_binds_and_chooses(optimize, parts, tmp_path):
    out = tmp_path / "both.onnx"
    done = optimize("--merge", *parts, "-o", out, "--map", "encoder.hidden=decoder.memory", "--bind", "flip=true", "--outputs", "z,y", "--explain", "--no-measure")
    assert done.code == 0, done.err
    assert done.out.startswith("input   x float32[N,4] -> encoder.x\ninput   flip bool -> encoder.flip\ninside  hidden float32[N,4] = encoder.hidden -> decoder.memory\n")
    assert "'encoder' raised from opset 10 to 20" in done.out and "gives what its parts give in turn" in done.out and "no inputs any more: flip" in done.out
    x = np.random.default_rng(0).standard_normal((3, 4), dtype=np.float32)
    y, z = in_turn(parts, x, True)
    close([z, y], session(out).run(None, {"x": x}))
    assert not any(node.op_type == "If" for node in onnx.load(out).graph.node)


def test_the_report_of_a_merged_model(optimize, parts, tmp_path):
    done = optimize("--merge", f"one={parts[0]}", f"two={parts[1]}", "-o", tmp_path / "o.onnx", "--map", "one.hidden=two.memory", "--json", "--no-measure")
    report = json.loads(done.out)
    assert report["verified"] and "encoder.onnx + two=" in report["input"], report["input"]


WRONG = {"no edge": (["--map", "encoder.hidden"], "MODEL.OUTPUT=MODEL.INPUT"),
         "another model": (["--map", "coder.hidden=decoder.memory"], "did you mean 'encoder'?"),
         "another input": (["--map", "encoder.hidden=decoder.memry"], "did you mean 'memory'?"),
         "itself": (["--map", "encoder.hidden=encoder.x"], "does not feed itself"),
         "another type": (["--map", "encoder.hidden=encoder.flip"], "encoder.flip"),
         "no such input to bind": (["--map", "encoder.hidden=decoder.memory", "--bind", "flop=1"], "it has x and flip"),
         "no such output": (["--map", "encoder.hidden=decoder.memory", "--outputs", "q"], "'q'"),
         "both ways": (["--map", "encoder.hidden=decoder.memory", "--outputs", "y", "--drop-outputs", "z"], "one or the other")}


@pytest.mark.parametrize("case", WRONG)
def test_one_line_says_what_does_not_fit(optimize, parts, tmp_path, case):
    arguments, words = WRONG[case]
    done = optimize("--merge", *parts, "-o", tmp_path / "o.onnx", *arguments)
    assert done.code == 2 and done.err.count("\n") == 1 and words in done.err, (done.code, done.err)
    assert not (tmp_path / "o.onnx").exists()


def test_what_belongs_to_merging(optimize, parts, tmp_path):
    for arguments in (["--map", "encoder.hidden=decoder.memory"], ["--merge", tmp_path], ["--merge"]):
        done = optimize(*arguments, parts[0], "-o", tmp_path / "o.onnx")
        assert done.code in (2, 3) and done.err.count("\n") == 1, (arguments, done.code, done.err)


def test_output_of_a_model_that_is_merged(optimize, parts, tmp_path):
    done = optimize("--merge", *parts, "-o", tmp_path / "o.onnx", "--map", "encoder.hidden=decoder.memory", "--report", parts[1], "--no-measure")
    assert done.code == 2 and "--report" in done.err, done.err


def test_python_merges_what_comes_in(parts, tmp_path):
    edges = {"b.memory": "a.hidden"}
    by_path = modelflow.merge({"a": parts[0], "b": parts[1]}, edges)
    protos = modelflow.merge({"a": onnx.load(parts[0]), "b": onnx.load(parts[1])}, edges)
    whole = modelflow.merge({"a": parts[0].read_bytes(), "b": parts[1].read_bytes()}, ["a.hidden=b.memory"], tmp_path / "m.onnx")
    assert isinstance(protos.model, onnx.ModelProto) and isinstance(whole.model, bytes) and (tmp_path / "m.onnx").exists()
    assert "inside  hidden" in by_path.signature == repr(by_path)
    x = np.random.default_rng(0).standard_normal((2, 4), dtype=np.float32)
    fast = modelflow.optimize(by_path.model, tmp_path / "fast.onnx", bind={"flip": False}, outputs=["y"], **QUICK)
    close(in_turn(parts, x, False)[:1], session(fast.model).run(None, {"x": x}))
    with pytest.raises(modelflow.UsageError, match="ranks|fits|types"):
        modelflow.merge({"a": parts[0], "b": parts[1]}, {"a.flip": "b.y"})
    with pytest.raises(modelflow.UsageError, match="same name"):
        modelflow.merge([parts[0], parts[0]])


def test_python_binds_arrays(parts, tmp_path):
    bound = modelflow.optimize(parts[0], tmp_path / "o.onnx", bind={"x": np.ones((2, 4), np.float32), "flip": True}, **QUICK)
    assert not onnx.load(bound.model).graph.input
    close([-np.ones((2, 4), np.float32)], session(bound.model).run(None, {}))


def forms(schema):
    """What a node of an operator may have: defaults of its attributes, which of its inputs may be left out, its outputs."""
    defaults = {name: (a.required, onnx.helper.get_attribute_value(a.default_value) if a.default_value.type else None) for name, a in schema.attributes.items()}
    return defaults, [str(each.option) for each in schema.inputs], [str(each.option) for each in schema.outputs]


def test_every_change_between_opsets_has_its_line():
    """An operator whose older form does not hold in a newer opset stands in the table of raise_changes.cpp."""
    table = {(op, int(opset)) for op, opset in re.findall(r'{"(\w+)", (\d+), \w+}', (ROOT / "src/compose/raise_changes.cpp").read_text())}
    history = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            history.setdefault(schema.name, []).append(schema)
    changed = set()
    for name, schemas in history.items():
        schemas.sort(key=lambda schema: schema.since_version)
        for old, new in zip(schemas, schemas[1:]):
            (attributes, inputs, outputs), (newer, more, results) = forms(old), forms(new)
            lost = any(key not in newer or (newer[key] != value and not (value[0] and not newer[key][0])) for key, value in attributes.items())
            required = any(value[0] for key, value in newer.items() if key not in attributes)
            moved = any(before != now and now != "FormalParameterOption.Optional" for before, now in zip(inputs, more)) or len(more) < len(inputs)
            needed = any(now == "FormalParameterOption.Single" for now in more[len(inputs):])
            if new.since_version > 7 and (lost or required or moved or needed or len(results) < len(outputs) or new.deprecated):
                changed.add((name, new.since_version))
    assert table and changed - table == set()
    assert len(changed) > 25


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


@pytest.mark.parametrize("spec", FEATURES)
def test_features_are_those_of_the_libraries(optimize, tmp_path, spec):
    out = tmp_path / "front.onnx"
    assert optimize("--audio-front-end", spec, "-o", out, "--no-measure").code == 0
    x, expected = sound(), FEATURES[spec](sound().astype(np.float64))
    for plugin in (False, True):
        features, = (modelflow.session(out) if plugin else session(out)).run(None, {"samples": np.stack([x, x[::-1]])})
        assert features.shape[1:] == expected.shape
        assert np.abs(features[0] - expected).max() < 2e-3


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
                                  "librosa:fmin=9000,sample_rate=16000", "none.json", "whisper:n_mels"])
def test_features_that_make_no_sense(optimize, tmp_path, spec):
    done = optimize("--audio-front-end", spec, "-o", tmp_path / "o.onnx")
    assert done.code == 2 and done.err.count("\n") == 1 and "audio features" in done.err, done.err
