"""What each operator of a plan did in one micro-batch: made of ``engine.metrics()``, added up.

An engine counts from its start, and a new plan counts anew. So a count that is smaller than before
began again in between, and all of it is new: the rule of counters in monitoring systems. Windows
and joins are named by the streams that they cover, written as ``{A, B}``, and belong to a plan:
cells may run different ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

MOST_PLANS = 8
"""Plans that are reported in one micro-batch, at most: those that most cells run."""
_COUNTS = ("rows", "bytes", "made", "probes", "matches", "asleep", "slept", "resumed", "avoided")


@dataclass(frozen=True, slots=True)
class OperatorBatch:
    """A window or a join, in one cell or in all cells that run its plan."""

    plan: str
    streams: str
    """The streams that it covers: ``{A}`` is a window, ``{A, B}`` a join."""
    cells: int = 1
    rows: int = 0
    """Rows that it holds; a join that stores nothing has none."""
    bytes: int = 0
    """Bytes that they take in memory."""
    made: int = 0
    """Rows that a window took in, and that a join made, in this micro-batch."""
    probes: int = 0
    matches: int = 0
    asleep: int = 0
    """Rows that wait at its inputs, because no consumer wants them now."""
    slept: int = 0
    """Rows that fell asleep in this micro-batch."""
    resumed: int = 0
    """Rows that were woken in this micro-batch."""
    avoided: int = 0
    """Partial results that rows asleep would have made."""
    completion: float = 1.0
    """The share of a state that is there after a change of plan: 1 is all of it."""
    allowance: float = 1.0
    """The share of the probes with its rows that are allowed under overload: 1 is all of them."""
    staleness: float = 0.0
    """The age in seconds of the oldest of its rows in results, where freshness is limited."""


def operator_batches(
    plan: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[OperatorBatch, ...]:
    """The operators of ``plan`` between two results of ``engine.metrics()``."""
    found = []
    for alias, window in after["state"]["windows"].items():
        source = window["source"]
        taken = _grown(before["sources"].get(source, {}), after["sources"][source], "rows")
        found.append(
            OperatorBatch(
                plan, f"{{{alias}}}", rows=window["rows"], bytes=window["bytes"], made=taken
            )
        )
    overload = after.get("overload", {})
    shares, ages = overload.get("shares") or {}, overload.get("staleness") or {}
    then = {each["streams"]: each for each in before["joins"]}
    states = after["state"]["joins"]
    for join in after["joins"]:
        earlier, state = then.get(join["streams"], {}), states.get(join["streams"], {})
        found.append(
            OperatorBatch(
                plan,
                join["streams"],
                rows=state.get("rows", 0),
                bytes=state.get("bytes", 0),
                made=_grown(earlier, join, "made"),
                probes=_grown(earlier, join, "probes"),
                matches=_grown(earlier, join, "matches"),
                completion=state.get("completion", 1.0),
            )
        )
    aliases = {f"{{{alias}}}": alias for alias in after["state"]["windows"]}
    rationed = [
        replace(
            each,
            allowance=shares.get(each.streams, 1.0),
            staleness=ages.get(aliases.get(each.streams, ""), 0.0),
        )
        for each in found
    ]
    return _with_guards(rationed, before["feedback"]["guards"], after["feedback"]["guards"])


def in_all_cells(operators: Iterable[OperatorBatch]) -> tuple[OperatorBatch, ...]:
    """The operators of many cells, added up by plan; the plans of most cells first."""
    sums: dict[tuple[str, str], OperatorBatch] = {}
    for each in operators:
        key = (each.plan, each.streams)
        sums[key] = _sum(sums[key], each) if key in sums else each
    cells: dict[str, int] = {}
    for each in sums.values():
        cells[each.plan] = max(cells.get(each.plan, 0), each.cells)
    shown = sorted(cells, key=lambda plan: -cells[plan])[:MOST_PLANS]
    return tuple(each for plan in shown for each in sums.values() if each.plan == plan)


def _sum(one: OperatorBatch, other: OperatorBatch) -> OperatorBatch:
    cells = one.cells + other.cells
    return replace(
        one,
        cells=cells,
        completion=(one.completion * one.cells + other.completion * other.cells) / cells,
        allowance=(one.allowance * one.cells + other.allowance * other.cells) / cells,
        staleness=max(one.staleness, other.staleness),
        **{name: getattr(one, name) + getattr(other, name) for name in _COUNTS},
    )


def _with_guards(
    operators: list[OperatorBatch],
    before: Iterable[Mapping[str, Any]],
    after: Iterable[Mapping[str, Any]],
) -> tuple[OperatorBatch, ...]:
    """What waits at a guard belongs to the operator whose rows wait there."""
    then = {(each["input"], each["waits_for"]): each for each in before}
    places = {each.streams: position for position, each in enumerate(operators)}
    for guard in after:
        place = places.get(guard["input"])
        if place is None:
            continue
        earlier = then.get((guard["input"], guard["waits_for"]), {})
        waiting = operators[place]
        operators[place] = replace(
            waiting,
            asleep=waiting.asleep + guard["asleep"],
            slept=waiting.slept + _grown(earlier, guard, "slept"),
            resumed=waiting.resumed + _grown(earlier, guard, "resumed"),
            avoided=waiting.avoided + _grown(earlier, guard, "avoided"),
        )
    return tuple(operators)


def _grown(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> int:
    then, now = int(before.get(name, 0)), int(after[name])
    return now - then if now >= then else now
