"""The Python of the walk-through runs from top to bottom and prints what the page says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "jit.md"
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?:\n\n```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


def test_blocks_print_what_follows_them() -> None:
    blocks = list(BLOCK.finditer(PAGE.read_text()))
    assert sum(block["output"] is not None for block in blocks) >= 8
    names: dict[str, object] = {}
    for number, block in enumerate(blocks):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block["code"], f"{PAGE.name}, block {number}", "exec"), names)
        assert printed.getvalue() == (block["output"] or ""), f"block {number}"
