"""Figures 7 to 12 of the JISC paper: rows of data, and whether the paper's claim is there.

Each ``figure_n`` measures and returns rows; each ``verdict_n`` is a pure function of such rows. CPU
seconds are of this engine, columnar and in batches, where the paper's were of Java, tuple at a
time; so the claims are about ratios, and not all of them need carry over. Where the paper ran 10
million tuples, a few windows are run: between transitions nothing changes from window to window.

Departures: parallel track shares the windows with the old plan here and knows duplicates by their
row numbers, and CACQ routes whole batches; both are much cheaper than what the paper compares with.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import penstock
from penstock_studies.jisc.contest import Spent, contest, least, ordinary
from penstock_studies.jisc.setting import (
    Setting,
    best_case,
    left_deep,
    worst_case,
)

Row = dict[str, Any]
Progress = Callable[[str], None]
Case = Callable[[Sequence[str]], tuple[str, ...]]


@dataclass(frozen=True)
class Finding:
    """A claim of the paper beside what was measured."""

    claim: str
    measured: str
    holds: bool


def _silent(_: str) -> None:
    """Nobody watches."""


# -- Figures 7 and 8: the migration stage -----------------------------------------------------


def migration_stage(setting: Setting, case: Case, seed: int, rounds: int = 1) -> Row:
    """CPU seconds from a transition until parallel track discards the old plan: one window.

    ``unchanged`` is the old plan with no transition: what the others take beyond that is the price
    of the change.
    """
    seconds = least([_migration_stage(setting, case, seed, turn) for turn in range(rounds)])
    return {
        "joins": setting.joins,
        **{f"{name} s": spent for name, spent in seconds.items()},
        "parallel-track / jisc": seconds["parallel-track"] / seconds["jisc"],
        "cacq / jisc": seconds["cacq"] / seconds["jisc"],
    }


def _migration_stage(setting: Setting, case: Case, seed: int, turn: int) -> Spent:
    old = setting.streams
    new = left_deep(case(old))
    engines = {
        name: setting.engine("cacq" if name == "cacq" else left_deep(old))
        for name in ("jisc", "parallel-track", "cacq", "unchanged")
    }
    contest(engines, setting.batches(1.5, seed))
    for name in ("jisc", "parallel-track"):
        engines[name].migrate(new, name)
    return contest(engines, setting.batches(1.1, seed + 1, start=1.5), seed=turn)


def _stages(case: Case, quick: bool, seed: int, progress: Progress) -> list[Row]:
    rows = []
    for joins in (3, 6) if quick else (4, 8, 12, 16, 20):
        progress(f"{joins} joins")
        window, batch = (400, 100) if quick else (10_000, 1_000)
        rows.append(migration_stage(Setting(joins, window, batch), case, seed))
    return rows


def figure_7(quick: bool, seed: int, progress: Progress = _silent) -> list[Row]:
    """The migration stage against the number of joins, one state incomplete (best case)."""
    return _stages(best_case, quick, seed, progress)


def figure_8(quick: bool, seed: int, progress: Progress = _silent) -> list[Row]:
    """The migration stage against the number of joins, all states incomplete (worst case)."""
    return _stages(worst_case, quick, seed, progress)


def _verdict_stage(rows: Sequence[Row], claim: str) -> Finding:
    tracks = [row["parallel-track / jisc"] for row in rows]
    eddies = [row["cacq / jisc"] for row in rows]
    measured = (
        f"parallel track takes {min(tracks):.2f} to {max(tracks):.2f} times as long as JISC, "
        f"CACQ {min(eddies):.2f} to {max(eddies):.2f} times"
    )
    prices = [row["parallel-track s"] / row["unchanged s"] for row in rows if "unchanged s" in row]
    if prices:
        measured += f"; parallel track {min(prices):.2f} to {max(prices):.2f} times the old plan"
    return Finding(claim, measured, min(tracks[-1], eddies[-1]) > 1)


def verdict_7(rows: Sequence[Row]) -> Finding:
    """JISC is fastest with many joins."""
    return _verdict_stage(
        rows, "with many joins JISC is up to 10 times faster than parallel track, and beats CACQ"
    )


def verdict_8(rows: Sequence[Row]) -> Finding:
    """JISC is fastest in the worst case as well."""
    return _verdict_stage(rows, "also with no complete state JISC beats parallel track and CACQ")


# -- Figure 9: normal operation ---------------------------------------------------------------


def figure_9(quick: bool, seed: int, progress: Progress = _silent) -> list[Row]:
    """Normal operation: a plan that was migrated to and is complete, the same plan from the start
    (pure symmetric hash joins), and CACQ; three windows of ordinary pushes."""
    setting = Setting(10, 2_000, 100) if quick else Setting(20, 10_000, 1_000)
    turns = range(1 if quick else 7)
    seconds = ordinary([_normal_operation(setting, seed, turn, progress) for turn in turns], "jisc")
    return [
        {"strategy": name, "s": spent, "of jisc": spent / seconds["jisc"]}
        for name, spent in seconds.items()
    ]


def _normal_operation(setting: Setting, seed: int, turn: int, progress: Progress) -> Spent:
    plan = left_deep(worst_case(setting.streams))
    engines = {
        "jisc": setting.engine(left_deep(setting.streams)),
        "symmetric hash join": setting.engine(plan),
        "cacq": setting.engine("cacq"),
    }
    progress("before the transition")
    contest(engines, setting.batches(0.5, seed))
    engines["jisc"].migrate(plan, "jisc")
    progress("until all states are complete")
    contest(engines, setting.batches(1.2, seed + 1, start=0.5))
    progress("normal operation")
    return contest(engines, setting.batches(3.0, seed + 2, start=1.7), seed=turn)


def verdict_9(rows: Sequence[Row]) -> Finding:
    """JISC costs nothing when nothing is incomplete, and CACQ twice as much."""
    ratio = {row["strategy"]: row["of jisc"] for row in rows}
    overhead = 1 / ratio["symmetric hash join"] - 1
    return Finding(
        "JISC is within 3 % of symmetric hash joins in normal operation, and nearly twice as fast "
        "as CACQ",
        f"JISC takes {overhead:+.1%} against symmetric hash joins; CACQ {ratio['cacq']:.2f} times "
        "as long as JISC",
        overhead <= 0.03 and ratio["cacq"] > 1,
    )


# -- Figure 10: latency -----------------------------------------------------------------------


def latency(setting: Setting, strategy: str, seed: int) -> float:
    """CPU seconds from the transition until the first result after it has left.

    What a process loads for its first transition is loaded before, by a small one.
    """
    _latency(replace(setting, window=200, batch=20), strategy, seed)
    return _latency(setting, strategy, seed)


def _latency(setting: Setting, strategy: str, seed: int) -> float:
    engine = setting.engine(left_deep(setting.streams))
    for batches in setting.batches(1.0, seed):
        engine.push(batches)
    pushes = list(setting.batches(0.5, seed + 1, start=1.0))
    started = time.process_time()
    engine.migrate(left_deep(worst_case(setting.streams)), strategy)
    for batches in pushes:
        if engine.push(batches).num_rows:
            return time.process_time() - started
    raise penstock.PenstockError("no result within half a window: the setting is too small")


def figure_10(quick: bool, seed: int, progress: Progress = _silent) -> list[Row]:
    """Latency of the first result after a transition against the size of the window."""
    sizes = {
        "hash": (500, 2_000) if quick else (10_000, 100_000, 1_000_000),
        "nested-loops": (200, 800) if quick else (1_000, 3_000, 10_000),
    }
    rows = []
    for join, windows in sizes.items():
        for window in windows:
            progress(f"{join}, windows of {window:,}")
            setting = Setting(3, window, max(10, window // 1_000), join)
            seconds = {s: latency(setting, s, seed) for s in ("jisc", "moving-state")}
            rows.append(
                {
                    "join": join,
                    "window": window,
                    **{f"{name} s": spent for name, spent in seconds.items()},
                    "moving-state / jisc": seconds["moving-state"] / seconds["jisc"],
                }
            )
    return rows


def verdict_10(rows: Sequence[Row]) -> Finding:
    """Moving state halts the longer the larger the windows; JISC does not."""
    largest = [max((r for r in rows if r["join"] == j), key=lambda r: r["window"]) for j in _JOINS]
    measured = "; ".join(
        f"{r['join']}, windows of {r['window']:,}: moving state {r['moving-state s']:.3f} s, "
        f"JISC {r['jisc s']:.3f} s"
        for r in largest
    )
    return Finding(
        "latency of JISC is negligible; that of moving state grows with the window, and is very "
        "high for nested loops",
        measured,
        all(row["moving-state / jisc"] > 2 for row in largest),
    )


_JOINS = ("hash", "nested-loops")


# -- Figures 11 and 12: frequency of transitions ----------------------------------------------


def frequency(
    setting: Setting, case: Case, every: float, windows: float, seed: int, rounds: int = 1
) -> Row:
    """CPU seconds for ``windows`` windows with a transition after each ``every`` of a window."""
    turns = range(rounds)
    seconds = least([_frequency(setting, case, every, windows, seed, turn) for turn in turns])
    return {
        "windows between transitions": every,
        **{f"{name} s": spent for name, spent in seconds.items()},
        "parallel-track / jisc": seconds["parallel-track"] / seconds["jisc"],
        "cacq / jisc": seconds["cacq"] / seconds["jisc"],
    }


def _frequency(
    setting: Setting, case: Case, every: float, windows: float, seed: int, turn: int
) -> Spent:
    plans = [left_deep(setting.streams), left_deep(case(setting.streams))]
    names = ("jisc", "parallel-track", "cacq")
    engines = {n: setting.engine("cacq" if n == "cacq" else plans[0]) for n in names}
    contest(engines, setting.batches(1.0, seed))
    period = max(1, round(every * setting.window / setting.batch))

    def between(name: str, engine: penstock.Engine, number: int) -> None:
        if name != "cacq" and number % period == 0:
            engine.migrate(plans[(number // period + 1) % 2], name)

    return contest(engines, setting.batches(windows, seed + 1, start=1.0), between, turn)


def _frequencies(case: Case, quick: bool, seed: int, progress: Progress) -> list[Row]:
    setting = Setting(5, 400, 100) if quick else Setting(20, 10_000, 1_000)
    rows = []
    for every in (0.5, 1.0) if quick else (0.2, 0.5, 1.0, 2.0):
        progress(f"a transition every {every:g} windows")
        rows.append(frequency(setting, case, every, 2.0 if quick else 4.0, seed))
    return rows


def figure_11(quick: bool, seed: int, progress: Progress = _silent) -> list[Row]:
    """Frequent transitions, all states incomplete after each (worst case)."""
    return _frequencies(worst_case, quick, seed, progress)


def figure_12(quick: bool, seed: int, progress: Progress = _silent) -> list[Row]:
    """Frequent transitions, one state incomplete after each (best case)."""
    return _frequencies(best_case, quick, seed, progress)


def _verdict_frequency(rows: Sequence[Row], case: str) -> Finding:
    tracks = [row["parallel-track / jisc"] for row in rows]
    eddies = [row["cacq / jisc"] for row in rows]
    return Finding(
        f"JISC has a higher throughput than CACQ and parallel track at any frequency ({case})",
        f"parallel track takes {min(tracks):.2f} to {max(tracks):.2f} times as long as JISC, "
        f"CACQ {min(eddies):.2f} to {max(eddies):.2f} times",
        min(*tracks, *eddies) > 1,
    )


def verdict_11(rows: Sequence[Row]) -> Finding:
    """JISC wins at every frequency."""
    return _verdict_frequency(rows, "worst case")


def verdict_12(rows: Sequence[Row]) -> Finding:
    """JISC wins at every frequency."""
    return _verdict_frequency(rows, "best case")
