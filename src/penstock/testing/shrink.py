"""Making a failing case smaller: fewer pushes, fewer tuples, fewer columns of trouble.

Plain delta debugging. Each step proposes a smaller case and keeps it if it still fails, so what is
left has no push and no row that can go. The query and the plan stay as they are: for smaller
queries, look for another seed with fewer streams or features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa

from penstock.testing.case import Case


def shrink(case: Case, fails: Callable[[Case], bool], most: int = 2_000) -> Case:
    """The smallest case found below ``case`` for which ``fails`` is true, in ``most`` tries."""
    tries = 0
    progress = True
    while progress and tries < most:
        progress = False
        for smaller in _smaller(case):
            tries += 1
            if fails(smaller):
                case, progress = smaller, True
                break
            if tries >= most:
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    """Cases that have less than ``case``, the largest steps first."""
    count = len(case.pushes)
    size = count
    while size >= 1:
        for start in range(0, count, size):
            yield _without_pushes(case, start, start + size)
        size //= 2
    for number, push in enumerate(case.pushes):
        for source, rows in push.items():
            yield _with_push(case, number, {s: t for s, t in push.items() if s != source})
            size = rows.num_rows // 2
            while size >= 1:
                for start in range(0, rows.num_rows, size):
                    kept = pa.concat_tables([rows.slice(0, start), rows.slice(start + size)])
                    yield _with_push(case, number, {**push, source: kept})
                size //= 2


def _without_pushes(case: Case, start: int, stop: int) -> Case:
    pushes = [*case.pushes[:start], *case.pushes[stop:]]
    watermarks = [*case.watermarks[:start], *case.watermarks[stop:]]
    return replace(case, pushes=pushes, watermarks=watermarks)


def _with_push(case: Case, number: int, push: dict[str, pa.Table]) -> Case:
    return replace(case, pushes=[*case.pushes[:number], push, *case.pushes[number + 1 :]])
