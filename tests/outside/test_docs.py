"""What the docs say is what the commands do."""
import pathlib
import re

from conftest import BUILD, run

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_passes_page_is_the_list(optimize):
    page = (ROOT / "docs/passes.md").read_text()
    listed = optimize("--list").out
    assert listed in page, "docs/passes.md is stale: run tools/passes-page"


def test_commands_of_the_readme(cnn, optimize, bench, tmp_path):
    """Every `build/...` line of the README runs as written, in a folder with a model.onnx and a sample.npz."""
    import numpy as np

    (tmp_path / "model.onnx").write_bytes(cnn.read_bytes())
    np.savez(tmp_path / "sample.npz", x=np.zeros((2, 3, 32, 32), np.float32))
    commands = re.findall(r"^build/(.+?)(?:\s+#.*)?$", (ROOT / "README.md").read_text(), re.M)
    assert len(commands) >= 4
    for command in commands:
        name, *arguments = command.split()
        extra = ["--rounds", "2", "--block", "0.05"] if name == "modelflow-bench" else []
        done = run(BUILD / name, *arguments, *extra, cwd=tmp_path)
        assert done.code == 0, (command, done.err)


def test_links_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#:\s]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_help_names_every_exit_code(optimize):
    text = optimize("--help").out
    for code in range(8):
        assert f"{code} " in text
