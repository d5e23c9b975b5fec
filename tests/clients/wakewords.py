"""openwakeword's client, and the same as one model."""
import functools

import numpy as np
from case import folder, maps, save, session
from voice import voice


class Wakewords:
    """openwakeword: 80 ms at a time through mel frames, an embedding of the last 76 of them, and six networks over the
    embeddings of the last seconds."""
    name, title, sessions, tolerance, settles = "wakewords", "openwakeword 0.4.0, 80 ms of sound", 8, 1e-4, 6
    heads = {"alexa": "alexa.13", "hey_jarvis": "53", "hey_mycroft": "dense", "weather": "weather.13"}

    def requests(self):
        samples = (voice() * 32767).astype(np.int16)
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
        edges = maps("mel.output=window.mel", "window.recent=embed.input_1", "embed.conv2d_19=history.embedding", "history.last16=alexa.onnx::Flatten_0",
                     "history.last16=jarvis.x.1", "history.last16=marvin.onnx::Flatten_0", "history.last16=mycroft.input_1",
                     "history.last34=timer.onnx::Flatten_0", "history.last22=weather.onnx::Flatten_0")
        return ["--merge", f"mel={at / 'melspectrogram.onnx'}", window, f"embed={at / 'embedding_model.onnx'}", history,
                *[f"{name}={at / file}_v0.1.onnx" for name, file in heads.items()], *edges,
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


class Voice:
    """The older detector of Silero that comes with openwakeword, whose branch for 8 kHz is never taken."""
    name, title, sessions, tolerance, settles = "silero", "the Silero voice detector of openwakeword 0.4.0, 30 ms of sound", 1, 1e-4, 0

    def requests(self):
        samples = (voice() * 32767).astype(np.int16)
        return [samples[i:i + 480] for i in range(0, len(samples) - 480, 480)]

    def arguments(self, out):
        shapes = [word for shape in ("input:1,480", "h:2,1,64", "c:2,1,64") for word in ("--input-shapes", shape)]
        return [folder("openwakeword") / "resources/models/silero_vad.onnx", "--bind", "sr=16000", *shapes, "--threads", "1"]

    def client(self):
        from openwakeword.vad import VAD
        return VAD().predict

    def merged(self, path, plugin):
        one, state = session(path, plugin, 1), {name: np.zeros((2, 1, 64), np.float32) for name in "hc"}

        def answer(samples):
            score, state["h"], state["c"] = one.run(None, {"input": (samples[None] / 32767).astype(np.float32), **state})
            return score[0][0]
        return answer
