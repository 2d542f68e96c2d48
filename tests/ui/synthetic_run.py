"""Events of a run that never was: as many batches and cells as wanted, and decisions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

BEGIN = datetime(2026, 1, 1, 12, tzinfo=UTC)
FIRST, SECOND = "((A B) C)", "((B C) A)"


def at(seconds: float) -> str:
    return (BEGIN + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")


def event(kind: str, moment: float, /, **fields: Any) -> dict[str, Any]:
    return {"version": 1, "event": kind, "at": at(moment), "run": "r", **fields}


def start(cells: int = 4, **more: Any) -> dict[str, Any]:
    fields = {
        "job": "synthetic",
        "query": "SELECT A.id\nFROM A [RANGE 1 MINUTE], B [RANGE 1 MINUTE], C [RANGE 1 MINUTE]\n"
        "WHERE A.x = B.x AND B.y = C.y",
        "plan": FIRST,
        "cells": cells,
        "placement": "x: 4",
        "sources": {"A": "kafka", "B": "kafka", "C": "parquet"},
        "sink": "parquet",
        "versions": {"penstock": "0", "spark": "4"},
        "limits": {"cpu": 0.4, "memory": 30_000_000},
    }
    return event("start", 0, **fields | more)


def operators(plan: str, scale: float, completion: float = 1.0) -> list[dict[str, Any]]:
    state = "{A, B}" if plan == FIRST else "{B, C}"
    windows = [
        {
            "plan": plan,
            "streams": f"{{{name}}}",
            "rows": int(40_000 * share * scale),
            "bytes": int(3e6 * share * scale),
            "made": int(9_000 * share * scale),
            "asleep": int(1_200 * share * scale) if name == "A" else 0,
            "avoided": int(5_000 * scale) if name == "A" else 0,
        }
        for name, share in (("A", 1.0), ("B", 0.5), ("C", 0.1))
    ]
    joins = [
        {
            "plan": plan,
            "streams": state,
            "rows": int(120_000 * scale * completion),
            "bytes": int(9e6 * scale * completion),
            "made": int(20_000 * scale),
            "probes": int(50_000 * scale),
            "completion": completion,
        },
        {
            "plan": plan,
            "streams": "{A, B, C}",
            "made": int(800 * scale),
            "probes": int(21_000 * scale),
        },
    ]
    return windows + joins


def batch(
    number: int, plan: str = FIRST, cells: int = 4, completion: float = 1.0
) -> dict[str, Any]:
    scale = 1.0 + 0.4 * math.sin(number / 9)
    rows = {"A": int(9_000 * scale), "B": int(4_500 * scale), "C": int(900 * scale)}
    shares = [2.5 if cell == 0 else 1.0 for cell in range(cells)]
    return event(
        "batch",
        number,
        batch=number,
        seconds=0.6 + 0.2 * scale,
        rows=rows,
        results=int(800 * scale),
        late={"A": number % 3},
        state_bytes=int(16e6 * scale),
        stored_bytes=int(20e6 * scale),
        engine_seconds=0.9 * scale,
        cells=[
            {
                "cell": cell,
                "rows": {
                    name: int(count * shares[cell] / sum(shares)) for name, count in rows.items()
                },
                "results": int(800 * scale / cells),
                "late": {},
                "state_bytes": int(16e6 * scale / cells),
                "stored_bytes": 0,
                "engine_seconds": 0.9 * scale * shares[cell] / sum(shares),
                "total_seconds": 0.5,
                "origin": "live",
                "plan": plan if cell < max(1, cells * 3 // 4) else FIRST,
            }
            for cell in range(cells)
        ],
        operators=operators(plan, scale, completion),
    )


def overloaded(number: int, fits: float | None) -> dict[str, Any]:
    """A batch of four cells with a budget, two of them short of CPU unless ``fits`` is None."""
    told = batch(number)
    for each in told["cells"]:
        short = fits is not None and each["cell"] < 2
        each["overload"] = {
            "policy": "shed",
            "budget": "1,000 probes per second",
            "short": short,
            "short_for": 12.0 if short else 0.0,
            "needed": 1_000 if short else 100,
            "allowed": round(1_000 * (fits or 0.0)) if short else 1_000,
            "lost": {"results": 100, "error": 10},
            "debt": {"probes": 0, "age": 0.0},
            "stale": 0,
            "parts": {"rows": 0.25, "probes and results": 0.75},
        }
    if fits is not None:
        for each in told["operators"]:
            each["allowance"] = fits
        told["operators"][0]["staleness"] = 42.0
    return told


def migration(seconds: float) -> dict[str, Any]:
    return event(
        "migration",
        seconds,
        reason="saves 38 % of CPU and repays its cost in 4.2 s",
        before=FIRST,
        plan=SECOND,
        cpu={"now": 0.62, "then": 0.38},
        observed={"rate A": 9_000, "rate B": 4_500, "A-B": 0.02, "B-C": 0.001},
    )


def run(batches: int = 60, cells: int = 4) -> Iterator[dict[str, Any]]:
    """A start, batches with a migration in their middle, a new kind of event, a stop."""
    yield start(cells)
    half = batches // 2
    for number in range(1, batches + 1):
        if number == half:
            yield migration(number - 0.5)
        if number == half + max(1, batches // 6):
            yield event(
                "overload_on",
                number,
                reason="needs 1.4 times the CPU",
                allowance={"A": 0.6, "B": 1.0},
            )
        after = number - half
        plan = FIRST if after < 0 else SECOND
        yield batch(number, plan, cells, 1.0 if after < 0 else min(1.0, 0.1 + after / 20))
    yield event(
        "stop", batches + 1, reason="finished", batches=batches, rows=1, results=1, seconds=60
    )
