"""The tutorial, run: every command and program of docs/tutorial.md in one folder, in order, and what they say."""
import os
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/tutorial.md"
BLOCK = re.compile(r"```(console|python|text)\n(.*?)```", re.S)


def said(command, folder, path):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, env={**os.environ, "PATH": f"{path}:{os.environ['PATH']}"})
    if done.returncode or done.stderr.strip():
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return "".join(line.rstrip() + "\n" for line in done.stdout.splitlines())


def run(folder, path, text=None):
    """The page as it is with the commands in the folder `path`. Python programs print into the text block behind them."""
    printed = ""

    def block(match):
        nonlocal printed
        kind, body = match[1], match[2]
        if kind == "console":
            commands = [line[2:] for line in body.splitlines() if line.startswith("$ ")]
            body = "".join(f"$ {command}\n{said(['bash', '-e', '-o', 'pipefail', '-c', command], folder, path)}" for command in commands)
        elif kind == "python":
            printed = said([str(pathlib.Path(path) / "python"), "-c", body], folder, path)
        else:
            body, printed = printed, ""
        return f"```{kind}\n{body}```"

    made = BLOCK.sub(block, text or PAGE.read_text())
    assert not printed, f"a program printed what the page does not show: {printed}"
    return made


def blurred(page):
    """What does not depend on the machine and on what else it does."""
    words = re.sub(r"\d+(\.\d+)?(e[-+]\d+)?", "#", page)
    words = re.sub(r"(?m)^(most of '[^']*'): .*$", r"\1", words)  # one session or more
    return re.sub(r"[ \t]+", " ", words.replace("KiB", "MiB"))


if __name__ == "__main__":  # FOLDER-OF-COMMANDS EMPTY-FOLDER: writes the page anew
    PAGE.write_text(run(sys.argv[2], sys.argv[1]))
