"""Blocks of code on pages of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"


def block_of(page: str, language: str, part: str = "") -> str:
    """The first block of ``language`` on a page of the documentation that has ``part`` in it."""
    text = (HOW_TO / page).read_text()
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return next(str(each) for each in blocks if part in each)
