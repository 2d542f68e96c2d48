"""The pages: what Python prints is so, links lead somewhere, the site builds without a warning."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import penstock
from penstock.cli.main import parser
from penstock.cli.reference import markdown

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?:\n\n```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
ELSEWHERE = {
    "how-to/join-dataframes.md": "tests/spark/jobs/test_pages_on_spark.py",
    "how-to/run-a-job.md": "tests/spark/jobs/test_examples.py, after the example has run",
    "reference/events.md": "tests/spark/jobs/test_examples.py, after the example has run",
    "explanation/jit.md": "tests/experiments/test_jit_walkthrough.py",
}
PAGES = sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
WITH_CODE = [
    page for page in PAGES if page not in ELSEWHERE and BLOCK.search((DOCS / page).read_text())
]


@pytest.mark.parametrize("page", WITH_CODE)
def test_python_prints_what_the_page_says(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # No calibration of this machine.
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, block in enumerate(BLOCK.finditer((DOCS / page).read_text())):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block["code"], f"{page}, block {number}", "exec"), names)
        if block["output"] is not None:
            assert printed.getvalue() == block["output"], f"block {number}"


def test_what_is_run_elsewhere_exists() -> None:
    assert set(ELSEWHERE) <= set(PAGES)
    assert len(WITH_CODE) >= 10


def test_the_page_of_commands_is_current() -> None:
    written = (DOCS / "reference" / "cli.md").read_text()
    assert written == markdown(parser()), "run make docs"


def test_every_option_is_described() -> None:
    written = (DOCS / "reference" / "options.md").read_text()
    for kind in (penstock.Engine, penstock.Feedback, penstock.Limits):
        for name in inspect.signature(kind).parameters:
            assert f"`{name}`" in written, f"{kind.__name__} has {name}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


class Links(HTMLParser):
    """Everything that a page loads, and everything that it leads to."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.names |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link":
            self.loaded.append(values.get("href", ""))
        elif "src" in values:
            self.loaded.append(values["src"])


def read(page: Path) -> Links:
    links = Links()
    links.feed(page.read_text())
    return links


def test_every_page_is_built_and_every_link_leads_somewhere(site: Path) -> None:
    pages = {page: read(page) for page in site.rglob("*.html") if page.name != "404.html"}
    assert len(pages) >= len(PAGES)
    for page, links in pages.items():
        for link in (*links.links, *links.loaded):
            target, _, anchor = link.partition("#")
            if "://" in link or target.startswith(("mailto:", "data:")):
                continue
            aim = (page.parent / target).resolve() if target else page
            aim = aim / "index.html" if aim.is_dir() else aim
            assert aim.exists(), f"{page.name} leads to {link}"
            if anchor and aim in pages:
                assert anchor in pages[aim].names, f"{page.name} leads to {link}"


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        for loaded in read(page).loaded:
            assert "://" not in loaded, f"{page.name} loads {loaded}"
            assert not loaded.startswith("//")
