"""Files of many types, made up: source code from the templates in sources/, and binary formats from their writers."""
import gzip
import io
import json
import lzma
import bz2
import pathlib
import pickle
import re
import sqlite3
import struct
import tarfile
import wave
import zipfile
import zlib

import numpy as np
from pages import WORDS, line
from PIL import Image
from task import random_of

SOURCES = pathlib.Path(__file__).with_name("sources")


def sentence(random):
    return " ".join(random.choices(WORDS, k=random.randrange(4, 12))) + "."


def fill(template, random):
    """Names, numbers and words for the marks of a template: §a to §h, §n, §k, §w, §s, §S."""
    names = {c: random.choice(WORDS) + random.choice(("", "_" + random.choice(WORDS))) for c in "abcdefgh"}

    def put(mark):
        c = mark.group(1)
        if c in names:
            return names[c]
        if c.lower() in names:
            return names[c.lower()].title().replace("_", "")
        return {"n": lambda: str(random.randrange(1, 900)), "k": lambda: str(random.randrange(10)),
                "w": lambda: random.choice(WORDS), "s": lambda: sentence(random)[:-1],
                "S": lambda: sentence(random).capitalize()}[c]()

    return re.sub("§(.)", put, template)


def source(label, random):
    """Head, a body repeated with new names, and an end."""
    head, _, rest = (SOURCES / f"{label}.txt").read_text().partition("--- repeat\n")
    body, _, end = rest.partition("--- end\n")
    parts = [fill(head, random)]
    size = random.randrange(700, 3500)
    while sum(map(len, parts)) < size:
        parts.append(fill(body, random))
    return "".join([*parts, fill(end, random)]).encode()


def text(random, sentences=30):
    return "\n".join(sentence(random).capitalize() for _ in range(sentences))


def picture(kind, random):
    image = Image.fromarray(line("file", random.randrange(10**6))[0][:, :, ::-1])
    out = io.BytesIO()
    image.save(out, kind)
    return out.getvalue()


def sound(random):
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(random.choice((1, 2)))
        file.setsampwidth(2)
        file.setframerate(random.choice((8000, 16000, 44100)))
        t = np.arange(8000)
        tone = np.sin(t * random.uniform(0.01, 0.2)) * np.sin(t * random.uniform(1e-4, 1e-3))
        file.writeframes((8000 * tone).astype("<i2").tobytes())
    return out.getvalue()


def archive(random, names=None, opened=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", opened) as file:
        for name in names or [f"{random.choice(WORDS)}/{i}.txt" for i in range(random.randrange(2, 9))]:
            file.writestr(name, text(random))
    return out.getvalue()


def office(kind, random):
    """The parts that make a document of Office Open XML."""
    main = {"docx": "word/document.xml", "xlsx": "xl/workbook.xml", "pptx": "ppt/presentation.xml"}[kind]
    folder = main.split("/")[0]
    return archive(random, ["[Content_Types].xml", "_rels/.rels", "docProps/app.xml", "docProps/core.xml", main,
                            f"{folder}/_rels/{main.split('/')[1]}.rels", f"{folder}/styles.xml",
                            f"{folder}/theme/theme1.xml"])


def tar(random):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as file:
        for i in range(random.randrange(2, 6)):
            info = tarfile.TarInfo(f"{random.choice(WORDS)}/{random.choice(WORDS)}{i}.txt")
            data = text(random).encode()
            info.size, info.mtime = len(data), 1_600_000_000 + random.randrange(10**7)
            file.addfile(info, io.BytesIO(data))
    return out.getvalue()


def database(random):
    connection = sqlite3.connect(":memory:")
    for _ in range(3):
        name = f"{random.choice(WORDS)}_{random.randrange(1000)}"
        connection.execute(f"CREATE TABLE '{name}' (id INTEGER PRIMARY KEY, name TEXT, amount REAL)")
        connection.executemany(f"INSERT INTO '{name}' (name, amount) VALUES (?, ?)",
                               [(sentence(random), random.random()) for _ in range(40)])
    return connection.serialize()


def elf(random):
    """A 64-bit executable: headers by the book, then what looks like code and names."""
    sections = [b".text", b".data", b".bss", b".rodata", b".symtab", b".strtab", b".shstrtab", b".dynamic", b".comment"]
    code = b"".join(random.choice((b"\x55\x48\x89\xe5", b"\x48\x83\xec\x20",
                                   b"\xe8" + random.randbytes(2) + b"\x00\x00", b"\x48\x8b\x45\xf8", b"\xc9\xc3", b"\x89\x45" + random.randbytes(1),
                                   b"\x0f\x1f\x44\x00\x00", b"\x31\xc0", b"\xf3\x0f\x1e\xfa"))
                    for _ in range(random.randrange(500, 2000)))
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", random.choice((2, 3)), 62, 1, 0x401000, 64, 64 + 56 * 4 + len(code), 0, 64, 56, 4, 64, 9, 8)
    programs = b"".join(struct.pack("<IIQQQQQQ", k, 5, 0, 0x400000, 0x400000, 4096, 4096, 4096) for k in (6, 3, 1, 2))
    names = b"\0/lib64/ld-linux-x86-64.so.2\0libc.so.6\0__libc_start_main\0GLIBC_2.34\0" + b"\0".join(
        random.choice(WORDS).encode() for _ in range(60)) + b"\0GCC: (Debian 12.2.0-14) 12.2.0\0" + b"\0".join(sections)
    table = b"".join(struct.pack("<IIQQQQIIQQ", i, 1, 6, 0x401000 + i, 64, 256, 0, 0, 16, 0) for i in range(9))
    return header + programs + code + names + table


def pdf(random):
    """Objects, a page of text in a compressed stream, the cross reference."""
    lines = " ".join(f"({sentence(random)}) Tj T*" for _ in range(30))
    stream = zlib.compress(f"BT /F1 12 Tf 14 TL 72 720 Td {lines} ET".encode())
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
               b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R "
               b"/Resources << /Font << /F1 5 0 R >> >> >>",
               b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(stream), stream),
               b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
               b"<< /Title (%s) /Producer (%s) >>" % (sentence(random).encode(), random.choice(WORDS).encode())]
    out, places = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", []
    for i, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (i, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"trailer\n<< /Size %d /Root 1 0 R /Info 6 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(out))
    return out + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + trailer


def midi(random):
    notes = b"".join(bytes((random.randrange(10, 90), 0x90, random.randrange(40, 90), random.choice((0, 64))))
                     for _ in range(300))
    track = b"\x00\xff\x03\x05Piano\x00\xff\x51\x03\x07\xa1\x20\x00\xc0\x00" + notes + b"\x00\xff\x2f\x00"
    return b"MThd" + struct.pack(">IHHH", 6, 0, 1, 480) + b"MTrk" + struct.pack(">I", len(track)) + track


def array(random):
    out = io.BytesIO()
    np.save(out, np.array([random.random() for _ in range(400)]).reshape(20, 20))
    return out.getvalue()


def notebook(random):
    cells = [{"cell_type": "code", "execution_count": i, "metadata": {}, "outputs": [],
              "source": source("python", random).decode().splitlines(True)[:12]} for i in range(4)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps({"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5},
                      indent=1).encode()


BINARY = {
    **{kind: (lambda r, k=kind: picture(k, r)) for kind in ("png", "gif", "bmp", "jpeg", "webp", "tiff", "ico")},
    "wav": sound, "zip": archive, "tar": tar, "sqlite": database, "elf": elf, "pdf": pdf, "midi": midi, "npy": array,
    "ipynb": notebook,
    "docx": lambda r: office("docx", r), "xlsx": lambda r: office("xlsx", r), "pptx": lambda r: office("pptx", r),
    "gzip": lambda r: gzip.compress(text(r, 90).encode(), mtime=r.randrange(2**31)),
    "bzip": lambda r: bz2.compress(text(r, 90).encode()),
    "xz": lambda r: lzma.compress(text(r, 90).encode()),
    "pickle": lambda r: pickle.dumps({sentence(r): [r.random(), r.choice(WORDS)] for _ in range(30)}),
    "txt": lambda r: text(r).encode(),
    "unknown": lambda r: r.randbytes(2000),
}
TYPES = sorted({*BINARY, *(path.stem for path in SOURCES.glob("*.txt"))})


def file(label, split, index):
    random = random_of("file", label, split, index)
    return BINARY[label](random) if label in BINARY else source(label, random)
