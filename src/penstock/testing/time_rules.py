"""Random rules of time for a case: delays by source, policies, idle streams.

Delays are drawn around the step of the case's event times, so that some rows are late under some
rules and no rule makes all of them late; some sources have none. With delays of their own, streams
are also made to run ahead of each other: whole pushes of a source may come later than they did.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from penstock.testing.case import Case


def with_time_rules(case: Case, chance: random.Random) -> Case:
    """``case`` (on event time) under other rules."""
    graph = case.graph()
    streams = {s.source: s for block in graph.blocks for s in block.streams}
    moving = [source for source in graph.sources if not streams[source].is_static]
    longest = max((getattr(streams[s].window, "milliseconds", 0) for s in moving), default=0)
    scale = max(1, longest // chance.choice([1, 4, 10]))
    lateness = {
        source: chance.choice([0, chance.randint(0, scale), chance.randint(0, 3 * scale)])
        for source in moving
        if chance.random() < 0.8
    }
    idle = chance.choice([None, None, 0, scale, 2 * scale])
    policy = chance.choice(["min", "min", "max"])
    pushes: Sequence[Mapping[str, pa.Table]] = case.pushes
    if len(pushes) > 2 and chance.random() < 0.5:
        slow = chance.choice(moving)
        pushes = _held_back(pushes, slow, chance.randint(1, len(pushes) - 1))
    return replace(
        case, lateness=lateness, idle=idle, policy=policy, pushes=tuple(pushes), watermarks=()
    )


def _held_back(
    pushes: Sequence[Mapping[str, pa.Table]], source: str, count: int
) -> list[dict[str, pa.Table]]:
    """The rows of ``source`` come ``count`` pushes later; the last pushes bring what is left."""
    before = [dict(push) for push in pushes]
    held = [push.pop(source, None) for push in before]
    after = before + [{} for _ in range(count)]
    for number, table in enumerate(held):
        if table is not None:
            after[number + count][source] = table
    return after
