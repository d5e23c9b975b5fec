"""An installed ModelFlow, moved to another place, used by programs that know only find_package."""
import os
import pathlib
import shutil
import subprocess
import sys

import onnx
import pytest
from conftest import BUILD, run

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    done = run("cmake", "--install", BUILD, "--prefix", folder / "first")
    assert done.code == 0, done.err
    shutil.move(folder / "first", folder / "moved")
    return folder / "moved"


@pytest.fixture(scope="module")
def consumer(prefix, tmp_path_factory):
    build = tmp_path_factory.mktemp("consumer")
    for step in (["cmake", "-S", ROOT / "examples/embed", "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}"], ["cmake", "--build", build]):
        done = run(*step)
        assert done.code == 0, done.out[-3000:] + done.err[-3000:]
    return build


@pytest.mark.parametrize("program", ["embed", "embed_c"])
def test_programs_that_link_the_package(consumer, cnn, tmp_path, program):
    out = tmp_path / "fast.onnx"
    done = run(consumer / program, cnn, out)
    assert done.code == 0, done.err
    assert any(n.domain == "modelflow" for n in onnx.load(out).graph.node)
    bad = run(consumer / program, tmp_path / "nothing.onnx", out)
    assert bad.code == 3 and len(bad.err.strip().splitlines()) == 1


def test_installed_command_and_plugin(prefix, cnn, tmp_path):
    out = tmp_path / "fast.onnx"
    assert run(prefix / "bin/optimize", cnn, "-o", out, "--no-measure").code == 0
    plugin = next(prefix.glob("lib*/**/libmodelflow_ort.so"))
    done = run(sys.executable, ROOT / "examples/serve/serve.py", out, plugin)
    assert done.code == 0 and "y (1, 10) float32" in done.out, done.err


def test_kernels_of_one_instruction_set_keep_their_functions_to_themselves():
    """The linker takes one of several equal inline functions: it must not be one that only newer CPUs can run."""
    objects = [o for o in (BUILD / "CMakeFiles/mf_backends.dir").rglob("*.o") if o.name.split(".")[0].endswith(("_avx2", "_avx512", "_vnni", "_amx"))]
    assert len(objects) > 20
    for file in objects:
        symbols = subprocess.run(["nm", "-C", file], capture_output=True, text=True, check=True).stdout
        assert not [line for line in symbols.splitlines() if " W " in line], file


def exported(library):
    out = subprocess.run(["nm", "-DC", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return [line.split(maxsplit=2)[2] for line in out.splitlines() if len(line.split(maxsplit=2)) == 3]


def test_libraries_export_only_what_is_ours(prefix):
    plugin = next(prefix.glob("lib*/**/libmodelflow_ort.so"))
    assert exported(plugin) == ["RegisterCustomOps"]
    library = next(prefix.glob("lib*/libmodelflow.so"))
    foreign = [s for s in exported(library) if "modelflow" not in s]
    assert not foreign, foreign[:10]
    needed = subprocess.run(["readelf", "-d", plugin], capture_output=True, text=True, check=True).stdout
    assert "protobuf" not in needed and "onnxruntime" not in needed


@pytest.fixture(scope="module")
def debian(tmp_path_factory):
    """The Debian package, and its files in a folder."""
    folder = tmp_path_factory.mktemp("debian")
    done = run("cpack", "-G", "DEB", "-B", folder / "package", cwd=BUILD)
    assert done.code == 0, done.out[-2000:] + done.err[-2000:]
    package = next((folder / "package").glob("modelflow_*_amd64.deb"))
    assert run("dpkg-deb", "-x", package, folder / "root").code == 0
    return package, folder / "root/usr"


def test_the_debian_package(debian, cnn, tmp_path):
    package, prefix = debian
    fields = dict(line.split(": ", 1) for line in run("dpkg-deb", "-f", package).out.splitlines() if ": " in line)
    assert fields["Package"] == "modelflow" and "libc6" in fields["Depends"] and "onnx" not in fields["Depends"]
    assert run(prefix / "bin/optimize", cnn, "-o", tmp_path / "fast.onnx", "--no-measure").code == 0
    for file in ("man/man1/optimize.1", "man/man1/modelflow-bench.1", "bash-completion/completions/optimize", "zsh/site-functions/_optimize",
                 "fish/vendor_completions.d/optimize.fish"):
        assert (prefix / "share" / file).stat().st_size > 500, file
    assert (prefix / "share/doc/modelflow/copyright").exists() and package.stat().st_size < 20 << 20


@pytest.mark.parametrize("program", ["embed.cpp", "embed.c"])
def test_pkg_config_finds_what_was_installed(debian, cnn, tmp_path, program):
    """From another place than the one that it was packed for."""
    prefix = debian[1]
    pkgconf = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}

    def said(*options):
        done = run("pkg-config", *options, "modelflow", env=pkgconf)
        assert done.code == 0, done.err
        return done.out.split()

    assert pathlib.Path(said("--variable=plugin")[0]).exists()
    compiler = ["c++", "-std=c++20"] if program.endswith(".cpp") else ["cc"]
    done = run(*compiler, ROOT / "examples/embed" / program, *said("--cflags", "--libs"), "-o", tmp_path / "embed")
    assert done.code == 0, done.err
    done = run(tmp_path / "embed", cnn, tmp_path / "fast.onnx", env={**os.environ, "LD_LIBRARY_PATH": str(prefix / "lib")})
    assert done.code == 0 and any(n.domain == "modelflow" for n in onnx.load(tmp_path / "fast.onnx").graph.node), done.err
