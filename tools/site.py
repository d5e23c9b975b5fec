#!/usr/bin/env python3
"""The pages of docs/ as a site: python site.py FOLDER, with mkdocs-material installed (tools/site sees to that).

FOLDER is one that is empty, not there yet, or a site that this made, which is replaced. Pages keep their words; links between
them lead to their places in the site, and links to files of the project to pages that show these files. Whatever mkdocs warns of
is an error. The site asks nobody for anything and opens from disk."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Where pages of the top folder lie in the site.
NAMES = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
NAV = [("ModelFlow", ["index", "tutorial", "python", "commands", "compose", "deploy", "gpu", "peers"]),
       ("What it does", ["report", "quantization", "accuracy", "coverage", "exports", "exports-avx512", "exports-amx", "passes"]),
       ("Why to trust it", ["trust", "measuring", "security"]),
       ("How it works", ["architecture", "kernels", "text", "files", "building", "changelog"])]
MARK = ".modelflow-site"  # a file in each site: who has it may be replaced
LANGUAGES = {".py": "python", ".cpp": "cpp", ".c": "c", ".h": "cpp", ".txt": "cmake", ".sh": "sh"}
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")

CONFIG = {
    "site_name": "ModelFlow", "docs_dir": "pages", "use_directory_urls": False, "strict": True,
    "theme": {"name": "material", "font": False, "features": ["navigation.sections", "navigation.top", "content.code.copy", "toc.follow"],
              "palette": [{"media": f"(prefers-color-scheme: {kind})", "scheme": scheme, "primary": "indigo",
                           "toggle": {"icon": icon, "name": f"Switch to {other}"}}
                          for kind, scheme, icon, other in (("light", "default", "material/weather-night", "dark"),
                                                            ("dark", "slate", "material/weather-sunny", "light"))]},
    "markdown_extensions": ["tables", "sane_lists", {"toc": {"permalink": True}}, "pymdownx.superfences", {"pymdownx.highlight": {"use_pygments": True}}],
    "plugins": ["search"], "extra": {"generator": False},
    "validation": {"nav": {"omitted_files": "warn", "not_found": "warn"}, "links": {"not_found": "warn", "anchors": "warn", "unrecognized_links": "warn"}}}


def pages():
    """By the file of each page its place in the site."""
    found = {ROOT / name: place for name, place in NAMES.items()}
    found.update({page: page.name for page in sorted((ROOT / "docs").glob("*.md"))})
    return found


def fenced(file):
    text = file.read_text()
    fence = "`" * (max([2, *map(len, re.findall(r"`+", text))]) + 1)
    return f"{fence}{LANGUAGES.get(file.suffix, '')}\n{text.rstrip()}\n{fence}\n"


def shown(target, sources):
    """The place of a page that shows a file, or all files of a folder."""
    name = target.relative_to(ROOT).as_posix()
    files = [target] if target.is_file() else sorted(path for path in target.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    place = f"files-of-the-project/{name}.md"
    sources[place] = f"# {name}\n\n" + "\n".join(fenced(file) if target.is_file() else f"## {file.relative_to(target)}\n\n{fenced(file)}" for file in files)
    return place


def for_the_site(page, place, known, sources):
    """A page's text with links that lead to places in the site."""
    def link(match):
        target = (page.parent / match[1]).resolve()
        there = known.get(target) or shown(target, sources)
        return f"]({os.path.relpath(there, pathlib.PurePosixPath(place).parent)}{match[2] or ''})"

    parts = re.split(r"(^```.*?^```$)", page.read_text(), flags=re.M | re.S)  # no links within code
    text = "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)
    return re.sub(r"(?m)^(?![-*\d|\s#>`])(.+)\n(?=[-*] )", r"\1\n\n", text)  # a list begins behind an empty line here


def refuse_what_is_no_site(out):
    """Whatever lies in a folder that this did not make is somebody's."""
    if out.exists() and not (out / MARK).exists() and (not out.is_dir() or any(out.iterdir())):
        print(f"site: '{out}' is there and is no site of this tool (no {MARK} in it): name another folder, or remove it yourself", file=sys.stderr)
        sys.exit(2)


def main():
    out = pathlib.Path(sys.argv[1]).resolve()
    refuse_what_is_no_site(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as folder:
        folder, known, sources = pathlib.Path(folder), pages(), {}
        texts = {place: for_the_site(page, place, known, sources) for page, place in known.items()}
        for place, text in {**texts, **sources}.items():
            (folder / "pages" / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / "pages" / place).write_text(text)
        nav = [{title: [f"{name}.md" for name in names if f"{name}.md" in texts]} for title, names in NAV]
        nav.append({"Files": sorted(sources)})
        (folder / "mkdocs.yml").write_text(yaml.safe_dump({**CONFIG, "nav": nav}, sort_keys=False))
        subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--config-file", folder / "mkdocs.yml", "--site-dir", folder / "site"], check=True,
                       env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})  # praise of its successor
        (folder / "site" / MARK).touch()
        if out.exists():
            shutil.rmtree(out)
        (folder / "site").rename(out)
    print(out / "index.html")


if __name__ == "__main__":
    main()
