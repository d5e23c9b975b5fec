"""The constructs as Keras models, through tf2onnx: python keras_models.py FOLDER (TensorFlow, tf2onnx, onnx)."""
import pathlib
import sys

import keras
import numpy as np
import onnx
import tensorflow as tf
import tf2onnx
from keras import layers, ops

B, S, H, D, E = 2, 5, 2, 8, 16
OPSETS = (13, 15, 17, 18)
IMAGE = (9, 9, 8)


def sequential(shape, *steps):
    x = y = keras.Input(shape)
    for step in steps:
        y = step(y)
    return keras.Model(x, y)


def dense(activation):
    return lambda: sequential((None, E), layers.Dense(24), activation)


def conv(activation, kind=layers.Conv2D, filters=(8,)):
    return lambda: sequential(IMAGE, kind(*filters, kernel_size=3, padding="same", use_bias=False), layers.BatchNormalization(), activation)


def residual():
    x = keras.Input(IMAGE)
    y = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(8, 3, padding="same", use_bias=False)(x)))
    y = layers.BatchNormalization()(layers.Conv2D(8, 3, padding="same", use_bias=False)(y))
    return keras.Model(x, layers.ReLU()(x + y))


def excite(inner, gate):
    def make():
        x = keras.Input(IMAGE)
        y = layers.GlobalAveragePooling2D(keepdims=True)(x)
        y = layers.Conv2D(8, 1, activation=gate)(layers.Conv2D(4, 1, activation=inner)(y))
        return keras.Model(x, x * y)

    return make


def attention():
    x = keras.Input((None, E))
    return keras.Model(x, layers.MultiHeadAttention(H, D)(x, x))


def add_norm():
    x, r = keras.Input((None, E), name="x"), keras.Input((None, E), name="r")
    return keras.Model([x, r], layers.LayerNormalization()(x + r))


def mlp():
    x = keras.Input((None, E))
    return keras.Model(x, x + layers.Dense(E)(layers.Dense(32, activation="gelu")(x)))


MODELS = {
    "linear_gelu": dense(layers.Activation("gelu")),
    "linear_gelu_tanh": dense(layers.Lambda(lambda x: keras.activations.gelu(x, approximate=True))),
    "linear_silu": dense(layers.Activation("silu")),
    "linear_mish": dense(layers.Activation("mish")),
    "linear_leaky_relu": dense(layers.LeakyReLU(0.1)),
    "linear_hardswish": dense(layers.Activation("hard_silu")),
    "conv_bn_relu": conv(layers.ReLU()),
    "conv_bn_relu6": conv(layers.ReLU(6.0)),
    "conv_bn_silu": conv(layers.Activation("silu")),
    "conv_bn_hardswish": conv(layers.Lambda(lambda x: x * (ops.relu6(x + 3.0) * (1.0 / 6.0)))),
    "depthwise_bn_relu": conv(layers.ReLU(), layers.DepthwiseConv2D, ()),
    "residual_block": residual,
    "squeeze_excite_mobilenet": excite("relu", "hard_sigmoid"),
    "squeeze_excite_efficientnet": excite("silu", "sigmoid"),
    "mlp": mlp,
    "layer_norm": lambda: sequential((None, E), layers.LayerNormalization()),
    "add_layer_norm": add_norm,
    "rms_norm_torch": lambda: sequential((None, E), layers.RMSNormalization()),
    "group_norm": lambda: sequential(IMAGE, layers.GroupNormalization(2)),
    "group_norm_silu": lambda: sequential(IMAGE, layers.GroupNormalization(2), layers.Activation("silu")),
    "multihead": attention,
    "lstm": lambda: sequential((S, E), layers.LSTM(8, return_sequences=True)),
    "gru": lambda: sequential((S, E), layers.GRU(8, return_sequences=True)),
}


def main(folder):
    for name, make in MODELS.items():
        keras.utils.set_random_seed(0)
        model = make()
        rng = np.random.default_rng(1)
        for weight in model.weights:
            values = rng.integers(-4, 5, weight.shape) / 8
            weight.assign(np.abs(values) + 0.5 if "variance" in weight.path else values)
        specs = [tf.TensorSpec((None, *x.shape[1:]), tf.float32, name=x.name.split(":")[0]) for x in model.inputs]
        function = tf.function(lambda *args: model(list(args) if len(args) > 1 else args[0]), input_signature=specs)
        for opset in OPSETS:
            target = folder / name / f"keras-{opset}.onnx"
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                onnx.save(tf2onnx.convert.from_function(function, specs, opset=opset)[0], target)
            except Exception as error:
                print(f"{name}/keras-{opset}: not exported: {type(error).__name__}: {str(error).splitlines()[0][:150]}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
