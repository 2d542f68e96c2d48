"""A tree as a picture (SVG): streams on the left, the root on the right; for notebooks and pages.

Colours are those of the text around it (``currentColor``), so the picture is at home on a light and
on a dark ground.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import escape

_LETTER, _LINE, _PAD, _ACROSS, _DOWN = 7.2, 16, 10, 46, 12


@dataclass(frozen=True, slots=True)
class Box:
    """A node of the picture: a title, lines below it, and what flows into it."""

    title: str
    lines: tuple[str, ...] = ()
    inputs: tuple[Box, ...] = ()


def tree_svg(roots: list[Box], title: str) -> str:
    """Trees below each other, as one standalone picture."""
    depth = max(_depth(root) for root in roots)
    boxes = [box for root in roots for box in _walk(root)]
    width = max(
        _LETTER * max(map(len, (box.title, *box.lines)), default=1) + 2 * _PAD for box in boxes
    )
    height = _LINE * (1 + max(len(box.lines) for box in boxes)) + _PAD
    parts: list[str] = []
    row = 0

    def place(box: Box, level: int) -> float:
        """Draw ``box`` and what is below it; the height of its middle."""
        nonlocal row
        x = level * (width + _ACROSS) + 1
        middles = [place(each, level - 1) for each in box.inputs]
        if middles:
            middle = (middles[0] + middles[-1]) / 2
        else:
            middle = row * (height + _DOWN) + height / 2 + 1
            row += 1
        for each in middles:
            start, end = x - _ACROSS, (x - _ACROSS / 2)
            parts.append(
                f'<path d="M{start:.0f},{each:.1f} C{end:.0f},{each:.1f} {end:.0f},{middle:.1f} '
                f'{x:.0f},{middle:.1f}" fill="none" stroke="currentColor" opacity="0.5"/>'
            )
        top = middle - height / 2
        parts.append(
            f'<rect x="{x:.0f}" y="{top:.1f}" width="{width:.0f}" height="{height}" '
            f'rx="{6 if box.inputs else 12}" fill="none" stroke="currentColor"/>'
        )
        for number, text in enumerate((box.title, *box.lines)):
            weight = ' font-weight="600"' if number == 0 else ' opacity="0.75"'
            parts.append(
                f'<text x="{x + _PAD:.0f}" y="{top + _LINE * (number + 1):.1f}" '
                f'fill="currentColor"{weight}>{escape(text)}</text>'
            )
        return middle

    for root in roots:
        place(root, depth - 1)
    whole, tall = depth * (width + _ACROSS) - _ACROSS + 2, row * (height + _DOWN) - _DOWN + 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole:.0f}" height="{tall:.0f}" '
        f'viewBox="0 0 {whole:.0f} {tall:.0f}" font-family="sans-serif" font-size="12" role="img">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )


def _walk(box: Box) -> list[Box]:
    return [box, *(inner for each in box.inputs for inner in _walk(each))]


def _depth(box: Box) -> int:
    return 1 + max((_depth(each) for each in box.inputs), default=0)
