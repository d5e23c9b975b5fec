"""Recognizers, separators, codecs and vocoders of sound: transformers, torchaudio, snac and speechbrain."""
from .configured import features, transformers, translation, wave
from .entry import BATCH, Entry, random_of, wrapped

WAVES = "Wav2Vec2Model HubertModel WavLMModel SEWModel UniSpeechModel Data2VecAudioModel Wav2Vec2ConformerModel".split()
MEL = features((1, 80, 3000), "input_features")


def torchaudio(name, *shapes, axes=BATCH, **options):
    def build():
        import torchaudio.models

        return getattr(torchaudio.models, name)(**options)
    return Entry(f"torchaudio {name}", "sound", random_of(build, *shapes, axes=axes))


def conformer():
    import torch
    import torchaudio.models

    net = torchaudio.models.Conformer(input_dim=80, num_heads=4, ffn_dim=256, num_layers=2, depthwise_conv_kernel_size=31)
    return wrapped(net), (torch.randn(2, 100, 80), torch.tensor([100, 80])), ({}, {})


def snac(part, shape):
    def build():
        import snac as library

        net = library.SNAC(sampling_rate=24000, encoder_dim=32, encoder_rates=[3, 3, 7, 7], decoder_dim=256, decoder_rates=[7, 7, 3, 3],
                           attn_window_size=None, noise=False)
        return net.get_submodule(part)
    return Entry(f"snac {part}", "sound", random_of(build, shape))


def ecapa():
    from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN

    return ECAPA_TDNN(80, channels=[512, 512, 512, 512, 1536], lin_neurons=192)


MODELS = [
    *(transformers(name, wave(), "sound") for name in WAVES),
    transformers("ASTModel", features((1, 1024, 128), "input_values"), "sound"),
    transformers("WhisperModel", MEL, "sound", part="encoder"),
    transformers("WhisperModel", translation(MEL), "sound"),
    transformers("MoonshineModel", translation(wave()), "sound"),
    transformers("Wav2Vec2BertModel", features((1, 100, 160), "input_features"), "sound"),
    transformers("ParakeetEncoder", features((1, 200, 80), "input_features"), "sound", config_name="ParakeetEncoderConfig"),
    transformers("EncodecModel", features((1, 128, 50), "hidden_states"), "sound", part="decoder", exporter="torchscript"),
    transformers("DacModel", features((1, 1024, 20), "hidden_state"), "sound", part="decoder"),
    transformers("SpeechT5HifiGan", features((1, 40, 80), "spectrogram"), "sound", settings={"upsample_initial_channel": 256},
                 config_name="SpeechT5HifiGanConfig"),
    Entry("torchaudio Conformer", "sound", conformer),
    torchaudio("ConvTasNet", (1, 1, 8000), axes={}, num_sources=2, enc_num_feats=256, msk_num_stacks=1),
    torchaudio("Wav2Letter", (1, 40, 400), num_classes=40, input_type="mfcc", num_features=40),
    torchaudio("squim_objective_base", (1, 16000), axes={}),
    snac("encoder", (1, 1, 8820)),
    snac("decoder", (1, 512, 20)),
    Entry("speechbrain ECAPA_TDNN", "sound", random_of(ecapa, (1, 200, 80), axes={})),
]
