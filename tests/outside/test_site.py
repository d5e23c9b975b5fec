"""The documentation as a site: it builds without a warning, leads nowhere but to itself, and opens in a browser from disk."""
import html.parser
import pathlib
import re

import chromium
import pytest
from conftest import needs_extras, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
pytestmark = needs_extras


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = run(ROOT / "tools/site", folder / "site")
    assert done.code == 0 and not done.err.strip(), done.out + done.err
    return folder / "site"


class Addresses(html.parser.HTMLParser):
    """What a page loads, and where its links lead."""

    def __init__(self, text):
        super().__init__()
        self.loads, self.links, self.items = [], [], 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.items += tag == "li"
        if tag in ("script", "img", "iframe", "source") and given.get("src"):
            self.loads.append(given["src"])
        if tag == "link" and given.get("rel") != "canonical" and given.get("href"):
            self.loads.append(given["href"])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])


def test_every_page_of_the_project_is_there(site):
    names = {page.stem for page in (ROOT / "docs").glob("*.md")} | {"index", "changelog", "security"}
    assert {page.stem for page in site.glob("*.html")} - {"404"} == names
    assert (site / "files-of-the-project/examples/serve/server.py.html").exists(), "a file that pages speak of"


def test_nothing_is_loaded_from_elsewhere(site):
    for page in site.rglob("*.html"):
        found = Addresses(page.read_text())
        assert not [address for address in found.loads if re.match(r"\w+:|//", address) and not address.startswith("data:")], page.name
        if page.name != "404.html":  # made for a server
            for link in found.links:
                target = link.split("#")[0]
                assert not target or re.match(r"\w+:", target) or (page.parent / target).exists(), f"{page.name}: {link}"


def test_lists_are_lists(site):
    """Which need an empty line in front of them here, unlike where the pages are read otherwise."""
    for name, page in (("README.md", "index"), ("docs/python.md", "python"), ("CHANGELOG.md", "changelog")):
        text = re.sub(r"^```.*?^```$", "", (ROOT / name).read_text(), flags=re.M | re.S)
        content = (site / f"{page}.html").read_text().split('<article class="md-content__inner')[1].split("</article>")[0]
        assert Addresses(content).items >= len(re.findall(r"^[-*] ", text, re.M)) > 0, name


@pytest.mark.skipif(not chromium.program(), reason="no Chromium here: tools/setup --browser installs it")
@pytest.mark.parametrize("width", [1400, 420])
def test_it_opens_from_disk(site, width):
    with chromium.page() as page:
        page.size(width)
        for name in ("index", "tutorial", "report"):
            page.open(site / f"{name}.html")
            assert not [problem for problem in page.problems if "origin 'null'" not in problem and "search" not in problem.lower()], page.problems
            assert page.run("document.querySelector('h1').innerText.length") > 3
            assert page.run("document.documentElement.scrollWidth") <= width
