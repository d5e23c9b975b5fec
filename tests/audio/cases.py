"""The clients, and the same as one model: what is merged, and what a request is."""
import functools
import importlib.util
import pathlib

import numpy as np
import onnx
import onnx.parser
import onnxruntime


def folder(package):
    return pathlib.Path(importlib.util.find_spec(package).submodule_search_locations[0])


def session(path, plugin, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    if plugin:
        options.register_custom_ops_library(str(plugin))
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def save(out, name, text):
    """A model in text, for what a client does between two networks."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> {name} {text}')
    onnx.checker.check_model(model)
    onnx.save(model, out / f"{name}.onnx")
    return out / f"{name}.onnx"


class Wakewords:
    """openwakeword: 80 ms at a time through mel frames, an embedding of the last 76 of them, and six networks over the
    embeddings of the last seconds."""
    name, title, sessions, tolerance, settles = "wakewords", "openwakeword 0.4.0, 80 ms of sound", 8, 1e-4, 6
    heads = {"alexa": "alexa.13", "hey_jarvis": "53", "hey_mycroft": "dense", "weather": "weather.13"}

    def requests(self, voice):
        samples = (voice * 32767).astype(np.int16)
        return [samples[i:i + 1280] for i in range(0, len(samples) - 1280, 1280)]

    def arguments(self, out):
        at = folder("openwakeword") / "resources/models"
        window = save(out, "window", """(float[t,1,f,32] mel, float[76,32] past) => (float[1,76,32,1] recent, float[76,32] next)
            <int64[2] rows = {-1, 32}, int64[1] last = {-76}, int64[1] end = {9223372036854775807}, int64[1] zero = {0},
             int64[4] image = {1, 76, 32, 1}, float ten = {10}, float two = {2}> {
              r = Reshape(mel, rows) d = Div(r, ten) s = Add(d, two) all = Concat<axis = 0>(past, s)
              next = Slice(all, last, end, zero) recent = Reshape(next, image) }""")
        history = save(out, "history", """(float[n,1,1,96] embedding, float[34,96] past)
            => (float[1,16,96] last16, float[1,22,96] last22, float[1,34,96] last34, float[34,96] next)
            <int64[2] rows = {-1, 96}, int64[1] zero = {0}, int64[1] end = {9223372036854775807}, int64[1] m34 = {-34},
             int64[1] m22 = {-22}, int64[1] m16 = {-16}> {
              r = Reshape(embedding, rows) all = Concat<axis = 0>(past, r) next = Slice(all, m34, end, zero)
              a = Slice(next, m16, end, zero) b = Slice(next, m22, end, zero)
              last16 = Unsqueeze(a, zero) last22 = Unsqueeze(b, zero) last34 = Unsqueeze(next, zero) }""")
        heads = {"alexa": "alexa", "jarvis": "hey_jarvis", "marvin": "hey_marvin", "mycroft": "hey_mycroft", "timer": "timer", "weather": "weather"}
        maps = ["mel.output=window.mel", "window.recent=embed.input_1", "embed.conv2d_19=history.embedding", "history.last16=alexa.onnx::Flatten_0",
                "history.last16=jarvis.x.1", "history.last16=marvin.onnx::Flatten_0", "history.last16=mycroft.input_1", "history.last34=timer.onnx::Flatten_0",
                "history.last22=weather.onnx::Flatten_0"]
        return ["--merge", f"mel={at / 'melspectrogram.onnx'}", window, f"embed={at / 'embedding_model.onnx'}", history,
                *[f"{name}={at / file}_v0.1.onnx" for name, file in heads.items()], *[word for each in maps for word in ("--map", each)],
                "--input-shapes", "input:1,1760", "--threads", "1"]

    def client(self):
        from openwakeword.model import Model
        model = Model()
        model.preprocessor.raw_data_buffer.extend([0] * 480)  # as the samples before the first are for the merged one

        def answer(samples):
            scores = model.predict(samples)
            return [scores[name] for name in self.heads]
        return answer

    @functools.cached_property
    def first_embeddings(self):
        """The client begins with those of random sound: a run of it gives them."""
        from openwakeword.model import Model
        return Model().preprocessor.feature_buffer[-34:].astype(np.float32)

    def merged(self, path, plugin):
        one = session(path, plugin, 1)
        names = [each.name for each in one.get_outputs()]
        state = {"window.past": np.ones((76, 32), np.float32), "history.past": self.first_embeddings, "tail": np.zeros(480, np.int16)}

        def answer(samples):
            heard = np.concatenate([state["tail"], samples])
            feeds = {key: value for key, value in state.items() if key != "tail"}
            results = dict(zip(names, one.run(None, {"input": heard[None].astype(np.float32), **feeds})))
            state.update({"window.past": results["window.next"], "history.past": results["history.next"], "tail": heard[-480:]})
            return [float(results[output].ravel()[0]) for output in self.heads.values()]
        return answer


class Quality:
    """speechmos' DNSMOS: two networks over nine seconds, one of them behind mel features that librosa computes."""
    name, title, sessions, tolerance, settles = "dnsmos", "speechmos 0.0.1.1, DNSMOS of 9 seconds", 2, 1e-3, 0
    length = 144160
    features = "librosa:sample_rate=16000,n_fft=321,hop_length=160,n_mels=120,log=db,reference=max,top=80,shift=40,scale=0.025,frames_first=1"

    def requests(self, voice):
        sound = np.tile(voice, 4)
        return [sound[i * 7000:][:self.length] for i in range(8)]

    def models(self):
        at = folder("speechmos") / "dnsmos_models"
        return at / "sig_bak_ovr.onnx", at / "model_v8.onnx"

    def arguments(self, out):
        primary, p808 = self.models()
        cut = save(out, "cut", """(float[N,144160] all) => (float[N,144000] samples) <int64[1] zero = {0}, int64[1] end = {-160}, int64[1] one = {1}> {
            samples = Slice(all, zero, end, one) }""")
        return ["--merge", cut, f"p808={p808}", f"primary={primary}", "--audio-front-end", self.features, "--map", "cut.samples=front.samples",
                "--map", "front.features=p808.input_1", "--map", "cut.all=primary.input_1", "--input-shapes", f"all:1,{self.length}"]

    def client(self):
        from speechmos import dnsmos
        one = dnsmos.DNSMOS(*map(str, self.models()))

        def answer(sound):
            features = np.array(one.audio_melspec(audio=sound[:-160])).astype("float32")[np.newaxis]
            return [one.p808_onnx_sess.run(None, {"input_1": features})[0][0][0], *one.onnx_sess.run(None, {"input_1": sound[np.newaxis]})[0][0]]
        return answer

    def merged(self, path, plugin):
        one = session(path, plugin, 0)
        names = [each.name for each in one.get_outputs()]

        def answer(sound):
            results = dict(zip(names, one.run(None, {"all": sound[np.newaxis]})))
            return [results["p808.Identity:0"][0][0], *results["primary.Identity:0"][0]]
        return answer


class Listeners(Quality):
    """The network of these that reads mel features, by itself."""
    name, title, sessions = "p808", "speechmos 0.0.1.1, P808 of 9 seconds", 1
    length = 144000

    def arguments(self, out):
        return [self.models()[1], "--audio-front-end", self.features, "--input-shapes", f"samples:1,{self.length}"]

    def client(self):
        from speechmos import dnsmos
        one = dnsmos.DNSMOS(*map(str, self.models()))

        def answer(sound):
            features = np.array(one.audio_melspec(audio=sound)).astype("float32")[np.newaxis]
            return one.p808_onnx_sess.run(None, {"input_1": features})[0][0]
        return answer

    def merged(self, path, plugin):
        one = session(path, plugin, 0)
        return lambda sound: one.run(None, {"samples": sound[np.newaxis]})[0][0]


CASES = {case.name: case for case in (Wakewords(), Listeners(), Quality())}
