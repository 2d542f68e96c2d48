"""Limits on memory against what is held: chains, stars and cliques, with and without bursts.

A limit is a multiple of what one mjoin holds at most in steady streams, which is the least that any
plan holds. Engines choose their plans (``plan="auto"``) and are asked after every push how many
bytes they hold. Without disk a limit can be kept by plans alone, and in a burst it may break, since
rows have to be somewhere; then it must be told in the same push. With disk it must hold.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import penstock
from penstock.planning.limits import size_text
from penstock.query.join_graph import JoinGraph
from penstock_studies.process_status import process_status
from penstock_studies.text_table import heading, text_table

ABOUT = "memory limits against bytes held: chains, stars, cliques, steady and in bursts"
FACTORS = (1.3, 1.8, 2.5)
"""Limits, in times of what one mjoin holds."""
TOLERATED = 1.05
"""Times the limit that may be held."""
_ROWS = 50
"""Rows of each stream in a push."""
_WINDOW = 20
"""Pushes that a window holds."""
_PUSHES = 300
_LAST = 100
"""Pushes at the end that count."""
_BURST = 4
"""Times as many rows in a burst, in the pushes from …_FROM to …_TO of every hundred."""
_BURST_FROM, _BURST_TO = 40, 60


@dataclass(frozen=True)
class Shape:
    """A join graph: the streams and the pairs that a predicate links."""

    streams: int
    links: tuple[tuple[int, int], ...]
    values: int
    """Values of each column, from which rows draw."""

    def query(self) -> JoinGraph:
        """The query; ``S1.c2`` is compared with ``S2.c1``."""
        names = [f"S{number}" for number in range(self.streams)]
        span = 1000 * _WINDOW
        sources = ", ".join(f"{name} [RANGE {span} MILLISECONDS]" for name in names)
        where = " AND ".join(f"S{a}.c{b} = S{b}.c{a}" for a, b in self.links)
        select = ", ".join(f"{name}.ts AS t{name}" for name in names)
        return penstock.parse(
            f"SELECT {select} FROM {sources} WHERE {where}",
            {name: self.schema(number) for number, name in enumerate(names)},
        )

    def schema(self, stream: int) -> pa.Schema:
        """The schema of ``stream``: its event time, and a column for each link."""
        others = [b if a == stream else a for a, b in self.links if stream in (a, b)]
        return pa.schema([("ts", pa.int64()), *((f"c{other}", pa.int64()) for other in others)])

    def batches(self, seed: int, bursts: bool) -> Iterator[dict[str, pa.Table]]:
        """A second of event time after the other."""
        for push in range(_PUSHES):
            chance = np.random.default_rng([seed, push])
            is_burst = bursts and _BURST_FROM <= push % 100 < _BURST_TO
            rows = _ROWS * (_BURST if is_burst else 1)
            times = 1000 * push + np.arange(rows) * 1000 // rows
            made = {}
            for stream in range(self.streams):
                schema = self.schema(stream)
                columns = [chance.integers(0, self.values, rows) for _ in schema.names[1:]]
                made[f"S{stream}"] = pa.table([times, *columns], schema=schema)
            yield made


SHAPES = {
    "chain of 6": Shape(6, tuple(itertools.pairwise(range(6))), 800),
    "star of 6": Shape(6, tuple((0, other) for other in range(1, 6)), 800),
    "clique of 4": Shape(4, tuple(itertools.combinations(range(4), 2)), 250),
}


@dataclass
class Held:
    """What an engine held."""

    most: float = 0.0
    """Bytes after a push, at most."""
    over: int = 0
    """Of the last pushes, those after which more than tolerated was held."""
    untold: int = 0
    """Those of them after which the limit was not said to be exceeded."""
    disk: int = 0
    """Bytes of files, at most."""
    private: int = 0
    """Bytes that the memory of the process in no file has grown by, at most."""
    results: int = 0
    plan: str = ""


def held(shape: Shape, limits: penstock.Limits | None, seed: int, bursts: bool) -> Held:
    """What an engine under ``limits`` holds; without, one mjoin that stays."""
    if limits is None:
        mjoin = f"({' '.join(f'S{number}' for number in range(shape.streams))})"
        engine = penstock.Engine(shape.query(), plan=mjoin)
    else:
        engine = penstock.Engine(shape.query(), limits=limits)
    found = Held()
    before = process_status()["RssAnon"]
    for push, batches in enumerate(shape.batches(seed, bursts)):
        found.results += len(engine.push(batches))
        metrics = engine.metrics()
        now = metrics["state"]["bytes"]
        found.most = max(found.most, now)
        found.private = max(found.private, process_status()["RssAnon"] - before)
        if limits is not None and limits.memory is not None:
            found.disk = max(found.disk, metrics["state"].get("disk", {"bytes": 0})["bytes"])
            if push >= _PUSHES - _LAST and now > TOLERATED * limits.memory:
                found.over += 1
                found.untold += "memory" not in metrics["control"]["exceeded"]
    found.plan = str(engine.plan)
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--shape", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="default: 1")


def run(options: argparse.Namespace) -> bool:
    """Print the table; whether every limit held that had to, and every other was told."""
    print(heading("limits", options.seed))
    rows = []
    holds = True
    for name in options.shape:
        shape = SHAPES[name]
        mjoins = {bursts: held(shape, None, options.seed, bursts) for bursts in (False, True)}
        for bursts, disk in ((False, 0), (False, None), (True, 0), (True, None)):
            alone = mjoins[bursts]
            for factor in FACTORS:
                most = int(factor * mjoins[False].most)
                limits = penstock.Limits(memory=most, disk=disk)
                found = held(shape, limits, options.seed, bursts)
                must_hold = disk is None or not bursts
                is_right = found.results == alone.results and not found.untold
                holds &= is_right and not (must_hold and found.over)
                rows.append(
                    [
                        name,
                        "bursts" if bursts else "steady",
                        "plans" if disk == 0 else "plans and disk",
                        f"{factor:g} times: {size_text(most)}",
                        f"{found.most / most:.2f}",
                        found.over,
                        found.untold,
                        size_text(found.disk),
                        size_text(found.private),
                        "same" if found.results == alone.results else "DIFFERENT",
                        found.plan.split("|")[0].strip(") ") + ")",
                    ]
                )
    heads = ["graph", "streams", "by", "limit", "most held", "over", "untold", "files", "process"]
    print(text_table([*heads, "results", "plan at the end"], rows))
    print(
        f"most held: in limits, of all {_PUSHES} pushes; over: of the last {_LAST}, by more than "
        f"{100 * TOLERATED - 100:.0f} %; untold: not said to be exceeded; process: what it grew "
        "by in memory (RssAnon), with all that is beside windows and states"
    )
    return holds
