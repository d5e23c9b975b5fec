"""From training to a deployed model: a small CNN and a small transformer learn scikit-learn's digits, are exported and
optimized in float32 and in 8 bits, with the validation set as calibration data and as the score that bounds the loss.

    python train_export.py [FOLDER]     needs torch, scikit-learn, onnxruntime, onnx, onnxscript and modelflow

The last line of each model says what came of it on a test set that nothing has seen. Exit status 1 where 8 bits cost
more than BOUND there, or are not faster than float32."""
import pathlib
import sys
import time

import numpy as np
import torch
from models import Cnn, Transformer
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import modelflow

BOUND = 1.0  # per cent of accuracy that 8 bits may cost: of the validation set while it is chosen, of the test set in the end
BATCH = 64  # images at a time, for calibration and for timing
THREADS = 2


def digits():
    """Images and labels for training, validation and test."""
    images, labels = load_digits(return_X_y=True)
    images = (images.reshape(-1, 1, 8, 8) / 16).astype(np.float32)
    rest_x, test_x, rest_y, test_y = train_test_split(images, labels, test_size=500, random_state=0, stratify=labels)
    train_x, val_x, train_y, val_y = train_test_split(rest_x, rest_y, test_size=256, random_state=0, stratify=rest_y)
    return (train_x, train_y), (val_x, val_y), (test_x, test_y)


def train(module, images, labels, epochs):
    """Adam, with the rate of learning falling to nothing."""
    images, labels = torch.from_numpy(images), torch.from_numpy(labels)
    steps = epochs * -(-len(images) // BATCH)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=steps)
    order = torch.Generator().manual_seed(0)
    module.train()
    for _ in range(epochs):
        for batch in torch.randperm(len(images), generator=order).split(BATCH):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(module(images[batch]), labels[batch]).backward()
            optimizer.step()
            schedule.step()
    return module.eval()


def accuracy(session, images, labels):
    """Per cent of the images that a session of ONNX Runtime knows."""
    scores = session.run(None, {session.get_inputs()[0].name: images})[0]
    return 100 * float(np.mean(scores.argmax(axis=1) == labels))


def exported(module, validation, folder, precision):
    """The optimized model. In 8 bits: as many ops as the score allows, calibrated on the validation set."""
    images, labels = validation
    lower = {} if precision == "float32" else {
        "precision": precision, "calibration": [(images[i:i + BATCH],) for i in range(0, len(images), BATCH)],
        "score": lambda session: accuracy(session, images, labels), "max_drop": BOUND}
    return modelflow.torch.export(module, torch.from_numpy(images[:BATCH]), folder / f"{type(module).__name__}-{precision}.onnx".lower(),
                                  dynamic_shapes=({0: "batch"},), input_names=["image"], output_names=["scores"], threads=THREADS,
                                  max_seconds=20, **lower)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    torch.set_num_threads(THREADS)
    training, validation, test = digits()
    fine = True
    for kind, epochs in ((Cnn, 12), (Transformer, 20)):
        torch.manual_seed(0)
        start = time.monotonic()
        module = train(kind(), *training, epochs)
        print(f"{kind.__name__}: trained in {time.monotonic() - start:.0f} s")
        found = {}
        for precision in ("float32", "int8"):
            result = exported(module, validation, folder, precision)
            timed = modelflow.bench(result.model, result.original, threads=THREADS, inputs={"image": test[0][:BATCH]}).sides
            found[precision] = accuracy(modelflow.session(result.model), *test), timed[-1].speedup
            worst = max(one.relative for one in result.compared if one.model == "optimized")
            print(f"  {precision:8} {found[precision][0]:.1f} % right; {timed[-1].p50_ms:.3f} ms for {BATCH} images, stock {timed[0].p50_ms:.3f} ms: "
                  f"{timed[-1].speedup:.2f}x; {worst:.1e} from the module")
        lost, faster = found["float32"][0] - found["int8"][0], found["int8"][1] / found["float32"][1]
        fine = fine and lost <= BOUND and faster > 1
        print(f"  8 bits cost {lost:.1f} % (bound {BOUND:.1f} %) and are {faster:.2f}x as fast as float32")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
