"""Files that mean harm (made by the modules in hostile/): the right exit code, one line that a terminal survives, within a
second and little memory, and nothing opened beside the model's directory."""
import ctypes
import os
import pathlib
import select
import struct
import subprocess
import tempfile

import pytest
from conftest import BUILD
from hostile import contents, external, found, functions, operators, tensors
from hostile.case import Folders
from onnx import ModelProto

CASES = external.CASES | functions.CASES | tensors.CASES | operators.CASES | contents.CASES | found.CASES
SLOW = float(os.environ.get("MODELFLOW_SLOWNESS", "1"))  # how much slower a build with sanitizers is
IN_ACCESS, IN_OPEN = 1, 0x20


class Watch:
    """Which files in a folder are opened."""

    def __init__(self, folder):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK)
        assert self.fd >= 0 and libc.inotify_add_watch(self.fd, str(folder).encode(), IN_OPEN | IN_ACCESS) >= 0

    def opened(self):
        names, data = [], b""
        if select.select([self.fd], [], [], 0)[0]:
            data = os.read(self.fd, 1 << 16)
        while data:
            _, mask, _, length = struct.unpack_from("iIII", data)
            if not mask & 0x40000000:  # the folder itself
                names.append(data[16:16 + length].rstrip(b"\0"))
            data = data[16 + length:]
        return names

    def close(self):
        os.close(self.fd)


def made(case, folder):
    folders = Folders(folder / "model", folder / "outside")
    folders.model.mkdir()
    folders.outside.mkdir()
    (folders.outside / "secret.bin").write_bytes(b"secret" * 1000)
    result = case.make(folders)
    if isinstance(result, pathlib.Path):
        return folders, result
    path = folders.model / "m.onnx"
    path.write_bytes(result.SerializeToString() if isinstance(result, ModelProto) else result)
    return folders, path


def ran(command):
    """Exit code, what was said, CPU seconds and the largest size in memory (MiB) of a command."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(["timeout", "-k", "1", str(60 * SLOW), *map(str, command)], stdout=said, stderr=said, stdin=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        return process.returncode, said.read(), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def harmless(text):
    return all(c == "\n" or (c.isprintable() and not 0x80 <= ord(c) < 0xa0) for c in text)


@pytest.mark.parametrize("name", CASES)
def test_hostile_file(tmp_path, name):
    case = CASES[name]
    folders, path = made(case, tmp_path)
    before = {p: p.lstat().st_size for p in tmp_path.rglob("*")}
    watch = Watch(folders.outside)
    out = tmp_path / "out.onnx"
    command = [BUILD / "optimize", path, "-o", out, "--no-measure", "--quiet", *case.flags]
    code, said, seconds, memory = ran(command)
    opened = watch.opened()
    watch.close()
    text = said.decode()  # UTF-8, whatever the names in the model are
    assert code in case.codes, (code, text[:500])
    assert not opened
    assert harmless(text) and len(text) < 5000, text[:500]
    if code:
        assert text.startswith("optimize: ") and text.count("\n") == 1 and case.word in text, text[:500]
        assert not out.exists() and {p: p.lstat().st_size for p in tmp_path.rglob("*")} == before
    else:
        assert text == "" or (text.startswith("optimize: warning: not verified") and text.count("\n") == 1), text[:500]
    for _ in range(2):  # what else the machine does costs processor time as well, here and there
        seconds = min(seconds, ran(command)[2]) if seconds >= case.seconds * SLOW and path.exists() else seconds
    assert memory < case.memory * SLOW and seconds < case.seconds * SLOW, (memory, seconds)


def test_there_are_enough():
    assert len(CASES) >= 60
