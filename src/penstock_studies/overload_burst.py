"""A burst of several times the capacity, in the engine: what each policy does with it, as data.

One push per second of event time brings ``rate`` rows of each of three streams; during the burst it
is ``factor`` times as many. The capacity is a budget of probes per second of event time, ``room``
times what the calm load needs. Everything but the CPU seconds follows from the seed.

>>> from penstock_studies.overload_burst import run_burst
>>> rows = run_burst("defer")                       # doctest: +SKIP

With ``--endless`` the burst does not pass: an hour of event time under ``defer``, a row per minute,
beside an engine that makes all probes, so that what is told of the loss can be compared.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pyarrow as pa

import penstock
from penstock_studies.text_table import heading, text_table

ABOUT = "a burst of 5 times the capacity under exact, shed and defer"
Row = dict[str, Any]
Policy = Literal["exact", "shed", "defer"]
POLICIES: tuple[Policy, ...] = ("exact", "shed", "defer")

_SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("k", pa.int64())])
_STREAMS = "ABC"


def run_burst(
    policy: Policy,
    *,
    plan: str = "((A B) C)",
    rate: int = 100,
    factor: int = 4,
    room: float = 2.0,
    phases: tuple[int, int, int] = (20, 30, 330),
    seed: int = 1,
) -> list[Row]:
    """A row per second: what came, what left, what is owed or lost, and what it took.

    Four times the rows need about eleven times the probes, over five times the capacity, since the
    windows have four times the partners as well.
    """
    calm, burst, after = phases
    capacity = room * _need(plan, rate, seed)
    engine = penstock.Engine(
        _query(rate), plan, overload=penstock.Overload(policy, probes=capacity, seed=seed)
    )
    rows = []
    for second, batch in enumerate(_seconds(rate, factor, calm, burst, after, seed)):
        start = time.process_time()
        results = engine.push(batch)
        seconds = time.process_time() - start
        metrics = engine.metrics()
        overload = metrics["overload"]
        rows.append(
            {
                "second": second,
                "policy": policy,
                "rows": sum(len(table) for table in batch.values()),
                "results": len(results),
                "short": overload["short"],
                "capacity": capacity,
                "needed": overload["needed"],
                "allowed": overload["allowed"],
                "probes": overload["probes"],
                "debt": overload["debt"]["probes"],
                "debt_age": overload["debt"]["age"],
                "lost": overload["lost"]["results"],
                "lost_error": overload["lost"]["error"],
                "cpu_seconds": seconds,
                "state_bytes": metrics["state"]["bytes"] + overload["debt"]["bytes"],
            }
        )
    return rows


def _query(rate: int, window: int = 10, freshness: str = "10 MINUTES") -> Any:
    """A chain of equalities where a row meets two of each other stream when all is calm."""
    streams = ", ".join(f"{s} [RANGE {window} SECONDS] FRESHNESS {freshness}" for s in _STREAMS)
    return penstock.parse(
        f"SELECT A.id AS a, B.id AS b, C.id AS c FROM {streams} WHERE A.k = B.k AND B.k = C.k",
        schemas=dict.fromkeys(_STREAMS, _SCHEMA),
    )


def _seconds(
    rate: int, factor: int, calm: int, burst: int, after: int, seed: int
) -> Iterator[dict[str, pa.Table]]:
    chance = np.random.default_rng(seed)
    for second in range(calm + burst + after):
        count = rate * (factor if calm <= second < calm + burst else 1)
        yield {
            stream: pa.table(
                [
                    np.arange(count) + 1_000_000 * second,
                    np.sort(1000 * second + chance.integers(0, 1000, count)),
                    chance.integers(0, 5 * rate, count),
                ],
                schema=_SCHEMA,
            )
            for stream in _STREAMS
        }


def _need(plan: str, rate: int, seed: int) -> float:
    """Probes per second of the calm load, once windows are full."""
    engine = penstock.Engine(_query(rate), plan, overload=penstock.Overload(probes=1e12))
    before = 0
    for batch in _seconds(rate, 1, 30, 0, 0, seed):
        before = engine.metrics()["overload"].get("probes", 0)
        engine.push(batch)
    return float(engine.metrics()["overload"]["probes"] - before)


def run_endless(
    *,
    plan: str = "((A B) C)",
    rate: int = 100,
    factor: int = 4,
    room: float = 2.0,
    minutes: int = 60,
    seed: int = 1,
) -> list[Row]:
    """A row per minute of a burst that never ends: what is owed, forgotten, and missing."""
    capacity = room * _need(plan, rate, seed)
    option = penstock.Overload("defer", probes=capacity, seed=seed)
    engine = penstock.Engine(_query(rate, freshness="1 MINUTE"), plan, overload=option)
    exact = penstock.Engine(_query(rate), plan)
    rows: list[Row] = []
    missing, spent = 0, 0.0
    for second, batch in enumerate(_seconds(rate, factor, 0, 60 * minutes, 0, seed)):
        start = time.process_time()
        made = engine.push(batch).num_rows
        spent += time.process_time() - start
        missing += exact.push(batch).num_rows - made
        if second % 60 == 59:
            rows.append(_told(second // 60 + 1, engine, missing, spent / 60))
            spent = 0.0
    rows.append(_told("end", engine, missing - engine.finish().num_rows, 0.0))
    return rows


def _told(minute: int | str, engine: penstock.Engine, missing: int, seconds: float) -> Row:
    """What an engine says, and how many results are missing so far, those that are owed included; a
    push takes so many ``seconds``."""
    metrics = engine.metrics()
    overload = metrics["overload"]
    return {
        "minute": minute,
        "owed": overload["debt"]["probes"],
        "forgotten": overload["forgotten"],
        "missing": missing,
        "told": round(overload["lost"]["results"]),
        "± error": round(overload["lost"]["error"]),
        "MiB": round((metrics["state"]["bytes"] + overload["debt"]["bytes"]) / 2**20, 1),
        "CPU ms/push": round(1000 * seconds, 2),
    }


def summary(rows: list[Row]) -> Row:
    """What became of a run."""
    short = [row["second"] for row in rows if row["short"]]
    return {
        "policy": rows[0]["policy"],
        "results": sum(row["results"] for row in rows),
        "peak/capacity": max(row["needed"] for row in rows) / rows[0]["capacity"],
        "probes": rows[-1]["probes"],
        "lost": round(rows[-1]["lost"]),
        "± error": round(rows[-1]["lost_error"]),
        "most owed": max(row["debt"] for row in rows),
        "owed": rows[-1]["debt"],
        "short from": short[0] if short else None,
        "to": short[-1] if short else None,
        "most MiB": round(max(row["state_bytes"] for row in rows) / 2**20, 1),
        "CPU s": round(sum(row["cpu_seconds"] for row in rows), 2),
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rate", type=int, default=100, help="rows per second and stream")
    parser.add_argument("--factor", type=int, default=4, help="how much larger the burst is")
    parser.add_argument("--plan", default="((A B) C)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--endless", action="store_true", help="a burst that does not pass")
    parser.add_argument("--minutes", type=int, default=60, help="of an endless burst")


def run(options: argparse.Namespace) -> None:
    if options.endless:
        given = {name: getattr(options, name) for name in ("plan", "rate", "factor", "seed")}
        rows = run_endless(**given, minutes=options.minutes)
        print(heading("endless burst", options.seed))
        print(text_table(list(rows[0]), [list(each.values()) for each in rows]))
        return
    found = [
        summary(
            run_burst(
                policy,
                plan=options.plan,
                rate=options.rate,
                factor=options.factor,
                seed=options.seed,
            )
        )
        for policy in POLICIES
    ]
    print(heading("burst", options.seed))
    print(text_table(list(found[0]), [list(each.values()) for each in found]))


if __name__ == "__main__":
    _parser = argparse.ArgumentParser(description=ABOUT)
    add_arguments(_parser)
    run(_parser.parse_args())
