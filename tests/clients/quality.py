"""The clients of speechmos, and the same as one model each."""
import numpy as np
from case import folder, maps, save, session
from voice import voice


class Quality:
    """speechmos' DNSMOS: two networks over nine seconds, one of them behind mel features that librosa computes."""
    name, title, sessions, tolerance, settles = "dnsmos", "speechmos 0.0.1.1, DNSMOS of 9 seconds", 2, 1e-3, 0
    length = 144160
    features = "librosa:sample_rate=16000,n_fft=321,hop_length=160,n_mels=120,log=db,reference=max,top=80,shift=40,scale=0.025,frames_first=1"

    def requests(self):
        sound = np.tile(voice(), 4)
        return [sound[i * 7000:][:self.length] for i in range(8)]

    def models(self):
        at = folder("speechmos") / "dnsmos_models"
        return at / "sig_bak_ovr.onnx", at / "model_v8.onnx"

    def arguments(self, out):
        primary, p808 = self.models()
        cut = save(out, "cut", """(float[N,144160] all) => (float[N,144000] samples) <int64[1] zero = {0}, int64[1] end = {-160}, int64[1] one = {1}> {
            samples = Slice(all, zero, end, one) }""")
        return ["--merge", cut, f"p808={p808}", f"primary={primary}", "--audio-front-end", self.features,
                *maps("cut.samples=front.samples", "front.features=p808.input_1", "cut.all=primary.input_1"), "--input-shapes", f"all:1,{self.length}"]

    def client(self):
        from speechmos import dnsmos
        one = dnsmos.DNSMOS(*map(str, self.models()))

        def answer(sound):
            features = np.array(one.audio_melspec(audio=sound[:-160])).astype("float32")[np.newaxis]
            return [one.p808_onnx_sess.run(None, {"input_1": features})[0][0][0], *one.onnx_sess.run(None, {"input_1": sound[np.newaxis]})[0][0]]
        return answer

    def merged(self, path, plugin):
        one = session(path, plugin)
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
        one = session(path, plugin)
        return lambda sound: one.run(None, {"samples": sound[np.newaxis]})[0][0]


class Echo:
    """AECMOS: mel features of three sounds that librosa computes, with rows that say who speaks, into one network."""
    name, title, sessions, tolerance, settles = "aecmos", "speechmos 0.0.1.1, AECMOS of 9 seconds", 1, 1e-3, 0
    length = 144000
    features = "librosa:sample_rate=16000,n_fft=513,hop_length=256,n_mels=160,log=db,reference=max,top=80,shift=40,scale=0.025,frames_first=1"

    def requests(self):
        sound = np.tile(voice(), 4)
        pieces = [sound[i * 7000:][:self.length] for i in range(10)]
        return [np.stack([far, near, 0.7 * near + 0.1 * far]).astype(np.float32) for far, near in zip(pieces, pieces[2:])]

    def arguments(self, out):
        said = save(out, "said", """(float[3,T,160] features) => (float[1,3,R,160] image) <float[1] one = {1}, float[1] none = {0}, int64[3] rows = {3, 20, 160}, int64[1] zero = {0}> {
            yes = Expand(one, rows) no = Expand(none, rows) all = Concat<axis = 1>(features, yes, no) image = Unsqueeze(all, zero) }""")
        network = folder("speechmos") / "aecmos_models/Run_1663915512_Stage_0.onnx"
        return ["--merge", said, f"net={network}", "--audio-front-end", self.features, *maps("front.features=said.features", "said.image=net.input"),
                "--bind", "h0=0", "--input-shapes", f"samples:3,{self.length}"]

    def client(self):
        from speechmos import aecmos
        one = aecmos.AECMOS("aecmos_16kHz")
        return lambda sounds: one._get_mos("dt", *sounds)

    def merged(self, path, plugin):
        one = session(path, plugin)
        return lambda sounds: one.run(None, {"samples": sounds})[0]


class Losses:
    """PLCMOS: a network that is asked 15 times of one sound, for raters that are drawn. What it hears is the same."""
    name, title, sessions, tolerance, settles = "plcmos", "speechmos 0.0.1.1, PLCMOS of 9 seconds, 15 raters", 15, 1e-3, 0
    rounds, length = 15, 144128  # whole frames: of others, the client makes one more
    features = "librosa:sample_rate=16000,n_fft=512,hop_length=256,window=hamming,n_mels=0,log=ln,floor=1e-30,scale=0.05,frames_first=1"

    def requests(self):
        sound = np.tile(voice(), 4)
        return [sound[i * 7000:][:self.length] for i in range(8)]

    def arguments(self, out):
        image = save(out, "image", "(float[N,T,257] features) => (float[N,1,T,257] y) <int64[1] one = {1}> { y = Unsqueeze(features, one) }")
        names = [f"r{i}" for i in range(self.rounds)]
        raters = save(out, "raters", f"(float[15,64] embeds) => ({', '.join(f'float[1,64] {name}' for name in names)}) {{ {', '.join(names)} = Split<axis = 0>(embeds) }}")
        network = folder("speechmos") / "plcmos_models/plcmos_v2.onnx"
        edges = maps("front.features=image.features", *(f"image.y=n{name}.degraded_audio" for name in names), *(f"raters.{name}=n{name}.rater_embed" for name in names))
        return ["--merge", image, raters, *(f"n{name}={network}" for name in names), "--audio-front-end", self.features, *edges,
                "--input-shapes", f"samples:1,{self.length}"]

    def client(self):
        from speechmos import plcmos
        one = plcmos.PLCMOS()

        def answer(sound):
            np.random.seed(len(sound) + int(1e4 * abs(sound[1000])))
            return one.get_mos(sound, 16000)
        return answer

    def merged(self, path, plugin):
        one = session(path, plugin)

        def answer(sound):
            np.random.seed(len(sound) + int(1e4 * abs(sound[1000])))
            embeds = np.concatenate([np.random.normal(size=(1, 64)) for _ in range(self.rounds)]).astype(np.float32)
            return float(np.mean(one.run(None, {"samples": sound[None], "embeds": embeds})))
        return answer
