"""What nvcc made of the kernels, read from libmodelflow_ort_cuda.so without a GPU: nothing spills, nothing lies in memory that should
be in registers, wide kernels load 128 bits at once. cuobjdump comes with tools/setup --cuda, or with a CUDA toolkit."""
import functools
import os
import re
import shutil
import subprocess

import pytest
from conftest import BUILD

LIBRARY = BUILD / "libmodelflow_ort_cuda.so"
CUOBJDUMP = os.environ.get("MODELFLOW_CUOBJDUMP") or shutil.which("cuobjdump") or ""
# A kernel with more than one of sinf and cosf gets this much stack, whatever else is in it: digits of 2/pi for arguments beyond 1e5.
PROGRAMS, DIGITS = re.compile("run_elements|run_steps|reduce_rows|reduce_columns"), 32
COUNTS_OTHERS = re.compile("MatMulNBits|Recurrent")  # N of these: bits of a weight, sequences
ELEMENT = {"float": 4, "__half": 2, "__nv_bfloat16": 2}
pytestmark = [pytest.mark.skipif(not LIBRARY.exists(), reason="no libmodelflow_ort_cuda.so: built without a CUDA compiler"),
              pytest.mark.skipif(not CUOBJDUMP, reason="no cuobjdump: tools/setup --cuda brings it")]


def dumped(*arguments):
    path = f"{os.path.dirname(CUOBJDUMP)}:{os.environ['PATH']}"  # it calls nvdisasm
    done = subprocess.run([CUOBJDUMP, *arguments, LIBRARY], check=True, capture_output=True, text=True, timeout=600, env={**os.environ, "PATH": path})
    return done.stdout


def plain(names):
    """{mangled: readable}"""
    done = subprocess.run(["c++filt"], input="\n".join(names), check=True, capture_output=True, text=True)
    return dict(zip(names, done.stdout.splitlines(), strict=True))


def architectures():
    listed = re.findall(r"sm_(\d+\w*)\.cubin", dumped("--list-elf"))
    return sorted(set(listed))


def test_every_architecture_has_code():
    chosen = re.search(r"MODELFLOW_CUDA_ARCHITECTURES:\w+=(.*)", (BUILD / "CMakeCache.txt").read_text())[1]
    wanted = {part.split("-")[0] for part in chosen.split(";") if not part.endswith("-virtual")}
    assert set(architectures()) == wanted
    assert dumped("--list-ptx").strip(), "nothing for what comes after these"


def test_nothing_spills():
    found = {}
    for arch in architectures():
        usage = re.findall(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", dumped("--dump-resource-usage", "-arch", f"sm_{arch}"))
        assert usage, arch
        for name, registers, stack, _, local in usage:
            assert int(registers) <= 255
            if int(local) or int(stack) > (DIGITS if PROGRAMS.search(name) else 0):
                found[f"sm_{arch} {name}"] = f"{stack} bytes of stack, {local} of local memory"
    names = plain([key.split(" ")[1] for key in found])
    assert not found, "\n".join(f"{key.split(' ')[0]} {names[key.split(' ')[1]][:160]}: {what}" for key, what in found.items())


@functools.cache
def functions(arch):
    """{readable name: its instructions}"""
    parts = re.split(r"\n\s*Function : (\S+)\n", dumped("-sass", "-arch", f"sm_{arch}"))
    names = plain(parts[1::2])
    return {names[mangled]: code for mangled, code in zip(parts[1::2], parts[2::2], strict=True)}


def test_wide_kernels_load_and_store_128_bits():
    """kernel<T, N> of N elements that are 16 bytes."""
    for arch in architectures():
        wide = 0
        for name, code in functions(arch).items():
            template = re.search(r"<(float|__half|__nv_bfloat16), (?:\(int\))?(\d+)\b", name)
            if not template or COUNTS_OTHERS.search(name) or ELEMENT[template[1]] * int(template[2]) != 16:
                continue
            wide += 1
            assert re.search(r"LDG\S*\.128", code), f"sm_{arch}: {name[:160]}"
            assert re.search(r"STG\S*\.128", code), f"sm_{arch}: {name[:160]}"
        assert wide, f"sm_{arch}: no kernel of that kind"


@pytest.mark.parametrize(("numbers", "instruction"), [("16 bits", "HMMA"), ("8 bits", "IMMA")])
def test_products_use_tensor_cores(numbers, instruction):
    """Every kernel that says so in its name."""
    for arch in (arch for arch in architectures() if int(re.match(r"\d+", arch)[0]) >= 80):
        found = [(name, code) for name, code in functions(arch).items() if "tensor_" in name and ("tensor_q" in name) == (numbers == "8 bits")]
        assert found, f"sm_{arch}: no kernel of that kind"
        for name, code in found:
            assert re.search(rf"\b{instruction}\.", code), f"sm_{arch}: {name[:160]}"


def test_tensor_kernels_stop_where_there_are_no_tensor_cores():
    """Code for older devices has them too: nothing chooses them there, and one that runs all the same makes no wrong numbers."""
    for arch in (arch for arch in architectures() if int(re.match(r"\d+", arch)[0]) < 80):
        for name, code in functions(arch).items():
            assert ("tensor_" in name) == ("BPT.TRAP" in code), f"sm_{arch}: {name[:160]}"
