"""What the docs say is what the commands do."""
import pathlib
import re
import shlex

import numpy as np
import onnx
import onnx.parser
import pytest
from conftest import BUILD, run

ROOT = pathlib.Path(__file__).resolve().parents[2]


PARTS = {"encoder": "(float[N,4] x, int64 lang) => (float[N,4] hidden, float[N] score) <int64 one = {1}> { c = Equal(lang, one) hidden = If(c) <then_branch = t () => "
                    "(float[N,4] r) { r = Relu(x) }, else_branch = e () => (float[N,4] r) { r = Neg(x) }> score = ReduceMax<axes = [1], keepdims = 0>(x) }",
         "decoder": "(float[M,4] memory, float[4] bias) => (float[M,4] y) { h = Add(memory, bias) y = Tanh(h) }",
         "picture": "(float[N,3,224,224] x) => (float[N,3] y) { m = GlobalAveragePool(x) y = Flatten(m) }",
         "speech": "(float[N,80,T] mels) => (float[N,80] y) { m = ReduceMean<axes = [2], keepdims = 0>(mels) y = Tanh(m) }"}


def test_passes_page_is_the_list(optimize):
    page = (ROOT / "docs/passes.md").read_text()
    stale = "docs/passes.md is stale: run tools/passes-page"
    assert optimize("--list").out in page, stale
    for options in ("int8", "int8-dynamic", "int4-weights", "bf16", "fp16 --target cuda:sm_90"):
        added = page.split(f"--precision {options}`")[1].split("```")[1]
        listed = optimize("--list", "--precision", *options.split()).out
        assert all(line in listed for line in added.splitlines()), stale
        assert all(line in page for line in listed.splitlines()), stale


@pytest.mark.parametrize("page", ["README.md", "docs/measuring.md", "docs/quantization.md", "docs/report.md", "docs/commands.md", "docs/deploy.md", "docs/peers.md", "docs/compose.md"])
def test_commands_of_the_pages(cnn, optimize, bench, tmp_path, page):
    """Every `build/...` line runs as written, in a folder with a model.onnx, a sample.npz, some samples/ and an accuracy.py."""
    (tmp_path / "model.onnx").write_bytes(cnn.read_bytes())
    np.savez(tmp_path / "sample.npz", x=np.zeros((2, 3, 32, 32), np.float32))
    (tmp_path / "models").mkdir()
    (tmp_path / "models/model.onnx").write_bytes(cnn.read_bytes())
    (tmp_path / "models/more").mkdir()
    (tmp_path / "models/more/other.onnx").write_bytes(cnn.read_bytes())
    (tmp_path / "samples").mkdir()
    for i in range(6):
        np.savez(tmp_path / f"samples/{i:04}.npz", x=np.random.default_rng(i).standard_normal((2, 3, 32, 32), dtype=np.float32))
    for name, text in PARTS.items():
        onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {name} {text}'), tmp_path / f"{name}.onnx")
    (tmp_path / "preprocessor_config.json").write_text('{"image_processor_type": "ViTImageProcessor", "size": {"height": 224, "width": 224}, "resample": 2, '
                                                       '"image_mean": 0.5, "image_std": 0.5}')
    (tmp_path / "accuracy.py").write_text("import os, sys\nassert os.path.exists(sys.argv[1]) and os.path.exists(os.environ['MODELFLOW_PLUGIN'])\nprint('accuracy', 0.9)\n")
    if page in ("docs/measuring.md", "docs/report.md", "docs/deploy.md", "docs/peers.md"):  # begins where fast.onnx is there
        assert optimize(cnn, "-o", tmp_path / "fast.onnx", "--no-measure").code == 0
    commands = re.findall(r"^build/(.+?)(?:\s+#.*|\s+>.*)?$", (ROOT / page).read_text(), re.M)
    assert len(commands) >= 3
    for command in commands:
        name, *arguments = shlex.split(command)
        extra = [] if {"--completion", "--manual"} & set(arguments) else ["--rounds", "2", "--block", "0.05"] if name == "modelflow-bench" else ["--max-seconds", "1"]
        done = run(BUILD / name, *arguments, *extra, cwd=tmp_path)
        assert done.code == 0, (command, done.err)


def test_links_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#:\s]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_help_names_every_exit_code(optimize):
    codes = optimize("--help").out.split("Exit codes:")[1]
    for code in [*range(8), 130]:
        assert re.search(rf"(?<!\d){code} [a-z]", codes), code
