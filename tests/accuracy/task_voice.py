"""Voice activity: silero-vad's sequence model on synthesized speech in noise."""
import importlib.util
import pathlib

import numpy as np
import speech
from task import Metric, Missing, Task, agreement, take

FRAME, CONTEXT, BLOCK = 512, 64, 64


class Voice(Task):
    name = "voice"
    title = "Voice activity (Silero VAD): speech-like sound in noise"
    metrics = (Metric("frames decided alike", floor=99),)

    def __init__(self, folder, share):
        spec = importlib.util.find_spec("silero_vad")
        if not spec:
            raise Missing("silero-vad is not installed")
        package = pathlib.Path(spec.submodule_search_locations[0])
        self.models = {"vad": package / "data/silero_vad_16k_sequence.onnx"}
        self.data = {split: [speech.clip(split, i)[0] for i in range(take(share, count, 4))]
                     for split, count in (("test", 60), ("calibration", 16))}

    def run(self, engines, split):
        return [self.listen(engines["vad"], sound) for sound in self.data[split]]

    @staticmethod
    def listen(engine, sound):
        """Speech probability of every frame. Frames follow each other, each led by the end of the one before; the
        state of the recurrence goes from block to block."""
        frames = sound[:len(sound) // FRAME * FRAME].reshape(-1, FRAME)
        before = np.concatenate([np.zeros((1, CONTEXT), np.float32), frames[:-1, -CONTEXT:]])
        frames = np.concatenate([before, frames], axis=1)
        h = c = np.zeros((1, 1, 128), np.float32)
        heard = []
        for start in range(0, len(frames), BLOCK):
            block, h, c = engine({"input": frames[start:start + BLOCK], "h": h, "c": c})
            heard.append(block.reshape(-1))
        return np.concatenate(heard)

    def score(self, answers, original):
        decided = [np.concatenate(clips) >= 0.5 for clips in (answers, original)]
        return {"frames decided alike": agreement(*decided)}
