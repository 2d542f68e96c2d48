"""How soon a signal is answered: the time from when it is due until what its handler raises is out.

Signals wait while an engine changes (:mod:`penstock.kernels.held_signals`), so Ctrl-C takes as
long as the portion of work that is under way. What is measured here are pushes that take long: many
rows, many results, a key so frequent that the push is refused, pairs that are all tried, texts,
groups. A timer of the system sends the signal at a random moment of a push; one that comes when the
push is done is not counted.
"""

from __future__ import annotations

import random
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa

from penstock import Engine
from penstock.errors import TooManyResults
from penstock.query.parse import parse
from penstock.testing.interrupted import Interrupt

_SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("v", pa.int64()), ("s", pa.string())])
_THREE = "FROM A [RANGE 60 SECONDS], B [RANGE 60 SECONDS], C [RANGE 60 SECONDS] "
_TWO = "FROM A [RANGE 60 SECONDS], B [RANGE 60 SECONDS] "
_STEP = 10_000
"""Milliseconds of event time that a push covers."""


@dataclass(frozen=True)
class Load:
    """A query and pushes of so many ``rows`` of each stream, with keys from so many ``values``."""

    text: str
    rows: int
    values: int


LOADS = {
    "10,000 rows": Load(f"SELECT A.v AS a, C.v AS c {_THREE}WHERE A.k = B.k AND B.v = C.v",
                        10_000, 30_000),
    "300,000 rows": Load(f"SELECT A.v AS a, C.v AS c {_THREE}WHERE A.k = B.k AND B.v = C.v",
                         300_000, 1_000_000),
    "texts": Load(f"SELECT A.s AS a, B.s AS b {_TWO}WHERE A.s = B.s", 200_000, 150_000),
    "groups": Load(f"SELECT A.k AS k, COUNT(*) AS n, MIN(B.v) AS m {_TWO}WHERE A.k = B.k "
                   "GROUP BY A.k", 20_000, 10_000),
    "many results": Load(f"SELECT A.v AS a, B.v AS b {_TWO}WHERE A.k = B.k", 20_000, 200),
    "an explosion": Load(f"SELECT A.v AS a, B.v AS b {_TWO}WHERE A.k = B.k", 32_000, 1),
    "all pairs": Load(f"SELECT A.v AS a, B.v AS b {_TWO}WHERE A.k < B.k AND A.v > B.v",
                      5_000, 40),
    "rows": Load("SELECT A.v AS a, B.v AS b FROM A [ROWS 50000], B [ROWS 50000] WHERE A.k = B.k",
                 50_000, 20_000),
}  # fmt: skip


class _Alarm:
    """A signal that is due at some moment, and raises."""

    def __init__(self) -> None:
        self.is_set = False
        signal.signal(signal.SIGALRM, self._raise)

    def set(self, seconds: float) -> float:
        """Let it come in so many seconds; when that is."""
        self.is_set = True
        signal.setitimer(signal.ITIMER_REAL, seconds)
        return time.perf_counter() + seconds

    def clear(self) -> None:
        self.is_set = False
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _raise(self, number: int, frame: FrameType | None) -> None:
        if self.is_set:
            self.is_set = False
            raise Interrupt


def latencies(name: str, count: int, seed: int = 0) -> list[float]:
    """Seconds that ``count`` signals at random moments of pushes took to come out."""
    load, chance = LOADS[name], random.Random(seed)
    graph = parse(load.text, dict.fromkeys("ABC", _SCHEMA), event_time="ts")
    engine = Engine(graph)
    alarm = _Alarm()
    push, usual = 0, 0.0
    found: list[float] = []
    while len(found) < count:
        batches = {source: _rows(load, push, ord(source)) for source in graph.sources}
        began = time.perf_counter()
        due = alarm.set(max(usual * chance.random(), 1e-4)) if usual else began
        try:
            _push(engine, batches)
            alarm.clear()
            usual = max(time.perf_counter() - began, 1e-3)
            push += 1
        except Interrupt:
            found.append(time.perf_counter() - due)
    return found


def _push(engine: Engine, batches: dict[str, Any]) -> None:
    with suppress(TooManyResults):
        engine.push(batches)


def _rows(load: Load, push: int, seed: int) -> pa.RecordBatch:
    draw = np.random.RandomState(1_000 * push + seed)
    keys = draw.randint(0, load.values, load.rows)
    columns = [
        np.sort(draw.randint(0, _STEP, load.rows)) + _STEP * push,
        keys,
        draw.randint(0, load.values, load.rows),
        np.char.add("a text with the number ", keys.astype(str)),
    ]
    return pa.RecordBatch.from_arrays(
        [pa.array(each, field.type) for each, field in zip(columns, _SCHEMA, strict=True)],
        schema=_SCHEMA,
    )
