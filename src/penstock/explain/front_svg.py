"""The front of CPU against memory as a picture (SVG), with limits and the chosen plan marked."""

from __future__ import annotations

import math
from xml.sax.saxutils import escape

from penstock.explain.explanation import Alternative, Explanation
from penstock.explain.quantities import memory_text, share_text

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 400, 76, 48, 28, 24
_STYLE = (
    "text{font:12px sans-serif;fill:#333}.axis{stroke:#888}.front{fill:none;stroke:#4a7ebb;"
    "stroke-width:1.5}.plan{fill:#4a7ebb}.chosen{fill:#c0392b}.limit{stroke:#c0392b;"
    "stroke-dasharray:5 4}.other{fill:#999}"
)


def front_svg(explanation: Explanation) -> str:
    """A standalone SVG document; both axes are logarithmic, each point has its plan as a title."""
    chosen = Alternative("", explanation.outline, explanation.cost, explanation.qualified)
    front = list(explanation.front)
    others = [each for each in explanation.alternatives if each.plan != explanation.outline]
    limits = explanation.limits
    xs = [each.cost.memory for each in (*front, *others, chosen)]
    ys = [each.cost.cpu for each in (*front, *others, chosen)]
    if limits.memory is not None:
        xs.append(float(limits.memory))
    if limits.cpu is not None:
        ys.append(limits.cpu)
    across = _Scale(xs, LEFT, WIDTH - RIGHT)
    up = _Scale(ys, HEIGHT - BOTTOM, TOP)
    floor, wall = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}"><style>{_STYLE}</style>',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<line class="axis" x1="{LEFT}" y1="{floor}" x2="{wall}" y2="{floor}"/>',
        f'<line class="axis" x1="{LEFT}" y1="{TOP}" x2="{LEFT}" y2="{floor}"/>',
        f'<text x="{(LEFT + wall) // 2}" y="{HEIGHT - 8}" text-anchor="middle">memory</text>',
        f'<text x="{LEFT}" y="{TOP - 10}" text-anchor="middle">CPU</text>',
    ]
    parts += [
        f'<text x="{across(value):.1f}" y="{floor + 18}" text-anchor="middle">'
        f"{memory_text(value)}</text>"
        for value in across.ticks()
    ]
    parts += [
        f'<text x="{LEFT - 6}" y="{up(value) + 4:.1f}" text-anchor="end">{share_text(value)}</text>'
        for value in up.ticks()
    ]
    if limits.memory is not None:
        x = across(float(limits.memory))
        parts.append(f'<line class="limit" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{floor}"/>')
    if limits.cpu is not None:
        y = up(limits.cpu)
        parts.append(f'<line class="limit" x1="{LEFT}" y1="{y:.1f}" x2="{wall}" y2="{y:.1f}"/>')
    path = " ".join(f"{across(e.cost.memory):.1f},{up(e.cost.cpu):.1f}" for e in front)
    parts.append(f'<polyline class="front" points="{path}"/>')
    for kind, points in (("other", others), ("plan", front), ("chosen", [chosen])):
        for each in points:
            title = f"{each.name} {each.plan}".strip()
            parts.append(
                f'<circle class="{kind}" cx="{across(each.cost.memory):.1f}" '
                f'cy="{up(each.cost.cpu):.1f}" r="{6 if kind == "chosen" else 4}">'
                f"<title>{escape(title)}: CPU {share_text(each.cost.cpu)}, "
                f"memory {memory_text(each.cost.memory)}</title></circle>"
            )
    return "\n".join([*parts, "</svg>", ""])


class _Scale:
    """Values to places, by their logarithms."""

    def __init__(self, values: list[float], start: float, end: float) -> None:
        logs = [math.log(max(value, 1e-300)) for value in values]
        pad = 0.05 * (max(logs) - min(logs)) or 0.5
        self.low, self.high = min(logs) - pad, max(logs) + pad
        self.start, self.end = start, end

    def __call__(self, value: float) -> float:
        share = (math.log(max(value, 1e-300)) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        return [math.exp(self.low + (self.high - self.low) * n / 4) for n in range(5)]
