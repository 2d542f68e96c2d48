"""The front of CPU against memory as text: a scatter of letters and a legend."""

from __future__ import annotations

import math
import string

from penstock.explain.explanation import Alternative, Explanation
from penstock.explain.quantities import memory_text, share_text

WIDTH, HEIGHT = 56, 12


def front_text(explanation: Explanation) -> str:
    """Plans of the front as letters, the chosen plan as ``●``; both axes are logarithmic."""
    points = list(explanation.front)
    if not any(each.plan == explanation.outline for each in points):
        chosen = Alternative("", explanation.outline, explanation.cost, explanation.qualified)
        points.append(chosen)
    shown = _spread(points, len(string.ascii_letters), explanation.outline)
    xs = [math.log(max(each.cost.memory, 1e-300)) for each in shown]
    ys = [math.log(max(each.cost.cpu, 1e-300)) for each in shown]
    grid = [[" "] * WIDTH for _ in range(HEIGHT)]
    marks = []
    letters = iter(string.ascii_letters)
    for each, x, y in zip(shown, xs, ys, strict=True):
        mark = "●" if each.plan == explanation.outline else next(letters)
        marks.append(mark)
        column = _place(x, xs, WIDTH)
        row = HEIGHT - 1 - _place(y, ys, HEIGHT)
        if grid[row][column] in (" ", *string.ascii_letters):
            grid[row][column] = mark
    lines = ["front of CPU against memory (● is this plan)"]
    if len(shown) > 1:
        lines += _picture(grid, xs, ys)
    for mark, each in zip(marks, shown, strict=True):
        note = "" if each.qualified else "  not qualified"
        cpu, memory = share_text(each.cost.cpu), memory_text(each.cost.memory)
        lines.append(f"  {mark}  CPU {cpu:>8}  memory {memory:>9}  {each.plan}{note}")
    return "\n".join(line.rstrip() for line in lines)


def _picture(grid: list[list[str]], xs: list[float], ys: list[float]) -> list[str]:
    lines = ["CPU"]
    top, bottom = share_text(math.exp(max(ys))), share_text(math.exp(min(ys)))
    margin = max(len(top), len(bottom))
    for number, cells in enumerate(grid):
        label = top if number == 0 else bottom if number == HEIGHT - 1 else ""
        lines.append(f"{label:>{margin}} │{''.join(cells)}")
    lines.append(f"{'':>{margin}} └{'─' * WIDTH} memory")
    least, most = memory_text(math.exp(min(xs))), memory_text(math.exp(max(xs)))
    lines.append(f"{'':>{margin}}  {least}{most:>{max(1, WIDTH - len(least))}}")
    return lines


def _spread(points: list[Alternative], most: int, always: str) -> list[Alternative]:
    """At most ``most`` points, evenly taken; the plan called ``always`` is among them."""
    if len(points) <= most:
        return points
    step = len(points) / (most - 1)
    taken = {int(number * step) for number in range(most - 1)}
    return [each for i, each in enumerate(points) if i in taken or each.plan == always]


def _place(value: float, values: list[float], size: int) -> int:
    low, high = min(values), max(values)
    return 0 if high == low else round((value - low) / (high - low) * (size - 1))
