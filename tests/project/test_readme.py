"""The README's Python runs, in one go from top to bottom, and prints what the README says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?:\n\n```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


def test_python_blocks_print_what_follows_them() -> None:
    blocks = list(BLOCK.finditer(README))
    assert blocks
    names: dict[str, object] = {}
    for number, block in enumerate(blocks):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block["code"], f"README.md, block {number}", "exec"), names)
        if block["output"] is not None:
            assert printed.getvalue() == block["output"]


def test_the_first_example_is_short() -> None:
    first = BLOCK.search(README)
    assert first is not None
    assert len([line for line in first["code"].splitlines() if line.strip()]) <= 22


def test_links_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_images_are_there_and_need_nothing_from_elsewhere() -> None:
    for image in (ROOT / "docs" / "images").glob("*.svg"):
        text = image.read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert "://" not in text
