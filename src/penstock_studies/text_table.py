"""Rows of an experiment as aligned text, under a line that says what was run and where."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence

import penstock

Cell = str | float | int | None


def heading(name: str, seed: int) -> str:
    """What a reader needs to run it again."""
    return (
        f"{name}: penstock {penstock.__version__}, Python {platform.python_version()}, "
        f"{platform.machine()}, {os.cpu_count()} cores, seed {seed}"
    )


def text_table(headings: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Numbers to the right, with three digits; None is a dash."""
    lines = [list(headings), *([_text(cell) for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(headings))]
    numeric = [
        all(not isinstance(row[i], str) for row in rows) and bool(rows)
        for i in range(len(headings))
    ]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    )


def _text(cell: Cell) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return (
            f"{cell:.3g}"
            if abs(cell) < 1e5
            else f"{cell:,.0f}"
            if abs(cell) < 1e9
            else f"{cell:.2e}"
        )
    return f"{cell:,}" if isinstance(cell, int) else cell
